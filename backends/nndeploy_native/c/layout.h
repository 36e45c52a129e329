/* SPDX-License-Identifier: Apache-2.0
 *
 * NCHW <-> NCHWc, at the edges of a submodel. NCHW may lie at any float; its planes are H * W floats.
 *
 * NND_LANES pixels of NND_LANES channels are transposed in registers: interleaving vector i with vector i + half,
 * log2(lanes) times, is a transposition. What is left over goes one by one. The channel tail is written as zeros.
 */
#ifndef NND_LAYOUT_H
#define NND_LAYOUT_H

#include "step.h"

#if NND_LANES == 16
#define NND_INTERLEAVE_LOW(a, b) \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define NND_INTERLEAVE_HIGH(a, b) \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif NND_LANES == 8
#define NND_INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define NND_INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define NND_INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define NND_INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

NND_INLINE void nnd_transpose(vf *rows) {
  NND_UNROLL for (int step = 1; step < NND_LANES; step *= 2) {
    vf next[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES / 2; i++) {
      next[2 * i] = NND_INTERLEAVE_LOW(rows[i], rows[i + NND_LANES / 2]);
      next[2 * i + 1] = NND_INTERLEAVE_HIGH(rows[i], rows[i + NND_LANES / 2]);
    }
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = next[i];
  }
}

/* `pixels` is H * W. Workers share runs of NND_RUN pixels of all channel blocks of all images. */
struct nnd_layout_step {
  nnd_size images, channels, pixels;
};

#define NND_RUN 1024

NND_INLINE void nnd_blocked_from_plain_step(const struct nnd_layout_step *t, nnd_elem *out, const float *in,
                                            struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->channels), runs = nnd_ceil_div(t->pixels, NND_RUN);
  nnd_size first, last;
  nnd_share(t->images * blocks * runs, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size plane = unit / runs, image = plane / blocks, channel = plane % blocks * NND_LANES;
    const nnd_size held = nnd_min(NND_LANES, t->channels - channel);
    const float *from = in + (image * t->channels + channel) * t->pixels;
    nnd_elem *to = out + plane * t->pixels * NND_LANES;
    nnd_size pixel = unit % runs * NND_RUN;
    const nnd_size end = nnd_min(t->pixels, pixel + NND_RUN);
    for (; pixel + NND_LANES <= end; pixel += NND_LANES) {
      vf rows[NND_LANES];
      NND_UNROLL for (int i = 0; i < NND_LANES; i++)
        rows[i] = i < held ? nnd_load_any(from + i * t->pixels + pixel) : nnd_splat(0.0f);
      nnd_transpose(rows);
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) nnd_write(to + (pixel + i) * NND_LANES, rows[i]);
    }
    for (; pixel < end; pixel++)
      for (nnd_size i = 0; i < NND_LANES; i++)
        to[pixel * NND_LANES + i] = nnd_to_elem(i < held ? from[i * t->pixels + pixel] : 0.0f);
  }
}

NND_INLINE void nnd_plain_from_blocked_step(const struct nnd_layout_step *t, float *out, const nnd_elem *in,
                                            struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->channels), runs = nnd_ceil_div(t->pixels, NND_RUN);
  nnd_size first, last;
  nnd_share(t->images * blocks * runs, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size plane = unit / runs, image = plane / blocks, channel = plane % blocks * NND_LANES;
    const nnd_size held = nnd_min(NND_LANES, t->channels - channel);
    const nnd_elem *from = in + plane * t->pixels * NND_LANES;
    float *to = out + (image * t->channels + channel) * t->pixels;
    nnd_size pixel = unit % runs * NND_RUN;
    const nnd_size end = nnd_min(t->pixels, pixel + NND_RUN);
    for (; pixel + NND_LANES <= end; pixel += NND_LANES) {
      vf rows[NND_LANES];
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_read(from + (pixel + i) * NND_LANES);
      nnd_transpose(rows);
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) {
        if (i < held) nnd_store_any(to + i * t->pixels + pixel, rows[i]);
      }
    }
    for (; pixel < end; pixel++)
      for (nnd_size i = 0; i < held; i++) to[i * t->pixels + pixel] = nnd_to_float(from[pixel * NND_LANES + i]);
  }
}

#endif
