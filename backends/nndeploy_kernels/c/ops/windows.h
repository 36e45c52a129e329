/* SPDX-License-Identifier: Apache-2.0
 *
 * The sliding window of a fused convolution, from the capacity of its buffer.
 *
 * The window is the largest whose first result fits the buffer: as many whole rows as possible; where not one row fits,
 * fewer columns of one row; where even few columns do not fit, fewer channels, whose partial sums are added up.
 */
#ifndef NND_WINDOWS_H
#define NND_WINDOWS_H

#include "kernels/tile.h"
#include "model/model.h"

#define NND_USUAL_L2 ((nnd_size)1 << 20)
#define NND_LARGE_INPUT ((nnd_size)8 << 20)
/* Outputs from this size on are stored past the caches: AMD Zen 5, L3 32 MiB, 2026-11-20. */
#define NND_STREAM_FROM ((nnd_size)16 << 20)
/* Weights from this size on are prefetched, panel by panel: inside a network other steps have driven all of them out of
 * L2. MobileNetV1 and V2 at 224 take 0.985 of the time: AMD Zen 5, 2026-11-20. */
#define NND_PREFETCH_FROM ((nnd_size)32 << 10)

struct nnd_window {
  nnd_size rows, columns, channels;
};

NND_INLINE nnd_size nnd_l2(const struct nnd_maker *m) {
  const nnd_size l2 = m->table->model->options.l2_bytes;
  return l2 > 0 ? l2 : NND_USUAL_L2;
}

NND_INLINE int nnd_threads(const struct nnd_maker *m) {
  return (int)nnd_max(1, nnd_min(256, m->table->model->options.threads));
}

/* The bytes of the buffer: what the user set, else a part of L2. Tuned: AMD Zen 5 class, L2 1 MiB, MobileNet shapes and
 * 32 x 640 x 640, 2026-11-20: 128 to 256 KiB is within 8% of the best everywhere, 512 KiB and more 11-36% worse on
 * inputs that exceed the caches. */
NND_INLINE nnd_size nnd_capacity(const struct nnd_maker *m, nnd_size input_bytes) {
  const nnd_size buffer = m->table->model->options.buffer_bytes;
  return buffer > 0 ? buffer : nnd_l2(m) / (input_bytes > NND_LARGE_INPUT ? 8 : 4);
}

/* The same for a pair, `first_bytes` of whose first result come of the input, `row_bytes` of which are one row. With
 * strides the input of a window is larger than its first result. Where it comes from beyond L2 it is prefetched, and
 * should leave there what is in use: stride 2 at 112 x 112, 96 channels, takes 0.87 of the time. */
NND_INLINE nnd_size nnd_pair_capacity(const struct nnd_maker *m, nnd_size input_bytes, nnd_size first_bytes,
                                      nnd_size row_bytes) {
  const nnd_size capacity = nnd_capacity(m, input_bytes);
  if (m->table->model->options.buffer_bytes > 0 || input_bytes <= nnd_l2(m)) return capacity;
  const double share = (double)first_bytes / (double)nnd_max(first_bytes, input_bytes);
  return nnd_max((nnd_size)((double)capacity * share), nnd_min(row_bytes, capacity));
}

/* The smallest part that needs no more windows than `largest` does. */
NND_INLINE nnd_size nnd_evened(nnd_size whole, nnd_size largest) {
  return nnd_max(1, nnd_ceil_div(whole, nnd_ceil_div(whole, nnd_max(1, largest))));
}

/* The window over an output of `rows` x `columns` whose first result has `channels`. A capacity that is too small for
 * anything gives the smallest window: one pixel of one vector of channels. */
NND_INLINE struct nnd_window nnd_window_for(nnd_size capacity, nnd_size rows, nnd_size columns, nnd_size channels) {
  const nnd_size element = sizeof(nnd_elem), wide = nnd_blocks(channels) * NND_LANES;
  const nnd_size pixels = capacity / (element * wide), tile = nnd_min(NND_ACCUMULATORS / NND_PANEL, columns);
  if (pixels >= columns) return (struct nnd_window){nnd_evened(rows, nnd_min(rows, pixels / columns)), columns, wide};
  if (pixels >= tile) return (struct nnd_window){1, nnd_evened(columns, pixels), wide};
  const nnd_size narrow = nnd_max(1, nnd_min(tile, capacity / (element * NND_LANES)));
  const nnd_size fitting = nnd_max(NND_LANES, capacity / (element * narrow) / NND_LANES * NND_LANES);
  return (struct nnd_window){1, narrow, nnd_min(wide, fitting)};
}

/* The rows of windows that threads share evenly: at most `rows`, a few windows more where it helps. */
NND_INLINE nnd_size nnd_shared_rows(nnd_size rows, nnd_size out_rows, nnd_size images, int threads) {
  const nnd_size count = nnd_ceil_div(out_rows, rows);
  if (threads < 2 || images * count % threads == 0 || images * count >= 8 * threads) return rows;
  for (nnd_size more = count + 1; more <= count + threads && more <= out_rows; more++)
    if (images * more % threads == 0) return nnd_ceil_div(out_rows, more);
  return rows;
}

#endif
