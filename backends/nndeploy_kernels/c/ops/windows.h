/* SPDX-License-Identifier: Apache-2.0
 *
 * The sliding window of a fused convolution, from the capacity of its buffer.
 *
 * The window is the largest whose first result fits the buffer: as many whole rows as possible; where not one row fits,
 * fewer columns of one row; where even few columns do not fit, fewer channels, whose partial sums are added up.
 */
#ifndef NND_WINDOWS_H
#define NND_WINDOWS_H

#include "kernels/pointwise.h"
#include "model/model.h"

#define NND_USUAL_L2 ((nnd_size)1 << 20)
#define NND_LARGE_L2 ((nnd_size)2 << 20)
#define NND_LEAST_WINDOW ((nnd_size)128 << 10)
#define NND_FEW_ROWS_READ 4
#define NND_LARGE_INPUT ((nnd_size)8 << 20)
/* Outputs from this size on are stored past the caches: AMD Zen 5, L3 32 MiB, 2026-11-20. */
#define NND_STREAM_FROM ((nnd_size)16 << 20)
/* Weights from this size on are prefetched, panel by panel: inside a network other steps have driven all of them out of
 * L2. MobileNetV1 and V2 at 224 take 0.985 of the time: AMD Zen 5, 2026-11-20. */
#define NND_PREFETCH_FROM ((nnd_size)32 << 10)

struct nnd_window {
  nnd_size rows, columns, channels;
};

/* The second cache of the machine: for what must not depend on choices, as the bits of long sums would. */
NND_INLINE nnd_size nnd_machine_l2(const struct nnd_maker *m) {
  const nnd_size l2 = m->table->model->options.l2_bytes;
  return l2 > 0 ? l2 : NND_USUAL_L2;
}

/* The second cache as blocks and windows are counted with it. */
NND_INLINE nnd_size nnd_l2(const struct nnd_maker *m) {
  return m->choice->cache_bytes > 0 ? nnd_min(m->choice->cache_bytes, NND_MOST_BYTES) : nnd_machine_l2(m);
}

/* The bytes of the buffer of windows where that was said, by the user or by a choice; else 0. */
NND_INLINE nnd_size nnd_said_buffer(const struct nnd_maker *m) {
  const nnd_size chosen = m->choice->buffer_bytes;
  return chosen > 0 ? nnd_min(chosen, NND_MOST_BYTES) : nnd_max(0, m->table->model->options.buffer_bytes);
}

/* Whether what a step writes goes past the caches. */
NND_INLINE int nnd_streams(const struct nnd_maker *m, nnd_size num_bytes) {
  return m->choice->stores > 0 ? m->choice->stores == 2 : num_bytes > NND_STREAM_FROM;
}

/* Whether windows may be such that sums round otherwise than by the rule. */
NND_INLINE int nnd_may_round(const struct nnd_maker *m) { return m->choice->rounding == 1; }

/* The same step as the rule does it, on the machine as it is. */
NND_INLINE struct nnd_maker nnd_by_rule(const struct nnd_maker *m) {
  static const struct nnd_choice by_rule = {0};
  struct nnd_maker same = *m;
  same.choice = &by_rule;
  return same;
}

/* Tells how many bytes between the convolutions of a step never leave the second cache: all where what a window makes
 * of them, `held`, fits it. */
NND_INLINE void nnd_tell_kept(struct nnd_maker *m, nnd_size between, nnd_size held) {
  m->instance->kept_bytes = held <= nnd_machine_l2(m) ? between : 0;
}

NND_INLINE int nnd_threads(const struct nnd_maker *m) {
  return (int)nnd_max(1, nnd_min(256, m->table->model->options.threads));
}

/* The bytes of the buffer: what the user set, else a part of L2. Tuned: AMD Zen 5 class, L2 1 MiB, MobileNet shapes and
 * 32 x 640 x 640, 2026-11-20: 128 to 256 KiB is within 8% of the best everywhere, 512 KiB and more 11-36% worse on
 * inputs that exceed the caches. */
NND_INLINE nnd_size nnd_capacity(const struct nnd_maker *m, nnd_size input_bytes) {
  const nnd_size buffer = nnd_said_buffer(m);
  return buffer > 0 ? buffer : nnd_l2(m) / (input_bytes > NND_LARGE_INPUT ? 8 : 4);
}

/* Fused or apart. A pair apart writes its first result and reads it again, in long runs of memory, which the processor
 * fetches ahead by itself. Done window by window it does neither, but reads its input in one short run a window, and
 * waits at the beginning of each. So small windows are faster only where the next one's input is fetched between the
 * products of this one; else windows are large. A window that is the whole image is the pair apart. Apart / fused of
 * images that L2 does not hold, AMD EPYC, L2 1 MiB, 2026-11-29:
 *
 *                                          L2 / 8, fetched   L2 / 8   2 L2, fetched   2 L2
 *   64 -> 64, 3 x 3, 320 x 320                        1.14     0.99            1.14   1.04
 *   32 -> 64, 3 x 3 by 2, 320 x 320                   1.18     1.03            1.07   1.01
 *   32 -> 4, 3 x 3, 320 x 320                         1.15     0.99            1.31   1.13
 *   336 -> 3, 2 x 2 by 3, 32 x 32                     0.80     0.98            1.00   1.02
 *   48 -> 48, 1 x 9, 1 x 80000                        0.97     0.90            0.99   1.00
 */

/* Whether the input of a window is fetched while the one before is multiplied: it exceeds L2, and each vector of it meets
 * half a vector of outputs. */
NND_INLINE int nnd_pair_fetches(const struct nnd_maker *m, nnd_size input_bytes, nnd_size out_channels,
                                const struct nnd_axis *y, const struct nnd_axis *x) {
  const nnd_size halves = nnd_ceil_div(out_channels, NND_LANES / 2);
  return input_bytes > nnd_l2(m) && halves >= y->stride * x->stride;
}

/* What the windows of a pair follow from, in bytes: its input, all of its first result, a row of each, the weights of the
 * pointwise part; and the input rows that an output row reads. */
struct nnd_pair_sizes {
  nnd_size input, first, row, input_row, weights, out_channels, rows_read;
};

NND_INLINE struct nnd_pair_sizes nnd_pair_sizes_of(nnd_size input, nnd_size first, nnd_size images,
                                                   const struct nnd_axis *y, nnd_size in_channels,
                                                   nnd_size out_channels) {
  return (struct nnd_pair_sizes){.input = input,
                                 .first = first,
                                 .row = first / (images * y->out_size),
                                 .input_row = input / (images * y->size),
                                 .weights = in_channels * out_channels * (nnd_size)sizeof(nnd_weight),
                                 .out_channels = out_channels,
                                 .rows_read = nnd_min(y->size, (y->kernel - 1) * y->dilation + 1)};
}

/* Where L2 is large, what has left it comes back so slowly that small windows always pay, but those with many weights,
 * each of which reads them all again. Apart / fused, geometric mean and how many below 0.99, Intel Xeon, L2 2 MiB,
 * 2026-11-30; in the last column 4 times the weights, from 128 to 512 KiB:
 *
 *                                       64 KiB     128 KiB     256 KiB     512 KiB      2 L2    by weights
 *   blocks that L2 does not hold, 39   1.14  8     1.16  5     1.14  5     1.12 10   1.03 15       1.15  4
 *   442 pairs                          1.09 122    1.11 96     1.12 93     1.11 100                1.12 86
 *
 * A kernel of many rows, of which so many do not fit L2, reads each row anew for each window: such pairs are apart. */
NND_INLINE nnd_size nnd_small_capacity(const struct nnd_maker *m, const struct nnd_pair_sizes *sizes) {
  if (sizes->rows_read > NND_FEW_ROWS_READ && sizes->rows_read * sizes->input_row > nnd_l2(m)) return NND_MOST_BYTES;
  return nnd_min(nnd_capacity(m, sizes->input), nnd_max(NND_LEAST_WINDOW, 4 * sizes->weights));
}

/* The bytes of the first result of a window of a pair that reads blocks. Where two vectors of outputs are enough work to
 * fetch behind, windows are small: with strides the input of a window is larger than its first result, and should leave
 * in L2 what is in use. */
NND_INLINE nnd_size nnd_pair_capacity(const struct nnd_maker *m, const struct nnd_pair_sizes *sizes, int fetches) {
  if (nnd_said_buffer(m) > 0) return nnd_said_buffer(m);
  const int is_large = nnd_l2(m) >= NND_LARGE_L2;
  const nnd_size capacity = is_large ? nnd_small_capacity(m, sizes) : nnd_capacity(m, sizes->input);
  if (sizes->input <= nnd_l2(m)) return capacity;
  if (!fetches || sizes->out_channels < 2 * NND_LANES || sizes->row > capacity)
    return is_large ? capacity : 2 * nnd_l2(m);
  const double share = (double)sizes->first / (double)nnd_max(sizes->first, sizes->input);
  return nnd_max((nnd_size)((double)capacity * share), sizes->row);
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

/* A window of all channels that threads share evenly. */
NND_INLINE struct nnd_window nnd_shared_window(struct nnd_window w, nnd_size out_rows, nnd_size out_columns,
                                               nnd_size images, int threads) {
  if (w.columns == out_columns)
    w.rows = nnd_shared_rows(w.rows, out_rows, images, threads);
  else
    w.columns = nnd_shared_rows(w.columns, out_columns, images * nnd_ceil_div(out_rows, w.rows), threads);
  return w;
}

/* Pixels of the first result whose channels take a quarter of L2: the panels of the pointwise part read them in turn. */
NND_INLINE nnd_size nnd_piece(const struct nnd_maker *m, nnd_size channels) {
  return nnd_max(NND_MOST_PIXELS, nnd_l2(m) / 4 / (nnd_blocks(channels) * NND_LANES * (nnd_size)sizeof(nnd_elem)));
}

/* Takes tiles of AMX for a pointwise part where they are quicker for all of an image's pixels, whatever its windows are:
 * then the bits are the same. The most pixels of a window are packed behind what is in scratch. */
NND_INLINE void nnd_take_tiles(struct nnd_maker *m, struct nnd_pointwise *s, nnd_size pixels, nnd_size of_window) {
  if (!(NND_HAS_THIRDS ? nnd_thirds_pay_for_pixels(pixels, s->in_channels, s->out_channels)
                       : nnd_bf16_takes_tiles(pixels, s->in_channels, s->out_channels)))
    return;
  s->by_tiles = 1;
  s->packed_at = nnd_ceil_div(m->scratch_bytes, NND_ALIGNMENT) * NND_ALIGNMENT;
  m->scratch_bytes = s->packed_at + nnd_packed_pixels_bytes(of_window, s->in_channels);
}

/* What the text of a step says of it. */
NND_INLINE const char *nnd_shown_tiles(int by_tiles) { return by_tiles ? ", by amx" : ""; }

/* Pixels at a time as chosen, where the bits are those of the rule: no sums are split by either. */
NND_INLINE nnd_size nnd_same_bits(nnd_size chosen, nnd_size rule, nnd_size pixels, nnd_size out_channels) {
  const int is_same = chosen == rule || (!nnd_pieces_split(pixels, chosen, out_channels, 0) &&
                                         !nnd_pieces_split(pixels, rule, out_channels, 0));
  return is_same ? chosen : rule;
}

/* Whether some sums of the pointwise part of windows of an image of rows x columns are split; each takes `piece` pixels
 * at a time. A choice may change windows where none are, by the rule and by itself: the bits are the same then. */
NND_INLINE int nnd_windows_split(struct nnd_window w, nnd_size rows, nnd_size columns, nnd_size piece,
                                 nnd_size out_channels, int exact) {
  const nnd_size heights[2] = {nnd_min(rows, w.rows), rows % w.rows};
  const nnd_size widths[2] = {nnd_min(columns, w.columns), columns % w.columns};
  for (int i = 0; i < 4; i++) {
    const nnd_size pixels = heights[i / 2] * widths[i % 2];
    if (pixels && (nnd_pointwise_splits(pixels, out_channels, exact) ||
                   nnd_pieces_split(pixels, nnd_evened(pixels, piece), out_channels, exact)))
      return 1;
  }
  return 0;
}

#endif
