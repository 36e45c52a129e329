/* SPDX-License-Identifier: Apache-2.0
 *
 * NCHW <-> NCHWc, at the edges of a submodel. NCHW may lie at any float; its planes are H * W floats.
 *
 * NND_LANES pixels of NND_LANES channels are transposed in registers: interleaving vector i with vector i + half,
 * log2(lanes) times, is a transposition. What is left over goes one by one. The channel tail is written as zeros.
 */
#ifndef NND_LAYOUT_H
#define NND_LAYOUT_H

#include "vector.h"

#if defined(__clang__) && NND_LANES == 16
#define NND_INTERLEAVE_LOW(a, b) \
  __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define NND_INTERLEAVE_HIGH(a, b) \
  __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(__clang__) && NND_LANES == 8
#define NND_INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define NND_INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif defined(__clang__)
#define NND_INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define NND_INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

NND_INLINE void nnd_transpose(vf *rows) {
#if defined(__clang__)
  NND_UNROLL for (int step = 1; step < NND_LANES; step *= 2) {
    vf next[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES / 2; i++) {
      next[2 * i] = NND_INTERLEAVE_LOW(rows[i], rows[i + NND_LANES / 2]);
      next[2 * i + 1] = NND_INTERLEAVE_HIGH(rows[i], rows[i + NND_LANES / 2]);
    }
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = next[i];
  }
#else
  vf from[NND_LANES];
  memcpy(from, rows, sizeof from);
  for (int i = 0; i < NND_LANES; i++)
    for (int j = 0; j < NND_LANES; j++) rows[i][j] = from[j][i];
#endif
}

/* Units [first, last): channel blocks of all images. `pixels` is H * W. */
NND_INLINE void nnd_blocked_from_planar(nnd_size channels, nnd_size pixels, const float *in, float *out,
                                        nnd_size first, nnd_size last) {
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / nnd_blocks(channels), channel = unit % nnd_blocks(channels) * NND_LANES;
    const nnd_size held = nnd_min(NND_LANES, channels - channel);
    const float *from = in + (image * channels + channel) * pixels;
    float *to = out + unit * pixels * NND_LANES;
    nnd_size pixel = 0;
    for (; held == NND_LANES && pixel + NND_LANES <= pixels; pixel += NND_LANES) {
      vf rows[NND_LANES];
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_load_any(from + i * pixels + pixel);
      nnd_transpose(rows);
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) nnd_store(to + (pixel + i) * NND_LANES, rows[i]);
    }
    for (; pixel < pixels; pixel++)
      for (nnd_size i = 0; i < NND_LANES; i++) to[pixel * NND_LANES + i] = i < held ? from[i * pixels + pixel] : 0.0f;
  }
}

/* Units [first, last): channel blocks of all images. */
NND_INLINE void nnd_planar_from_blocked(nnd_size channels, nnd_size pixels, const float *in, float *out,
                                        nnd_size first, nnd_size last) {
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / nnd_blocks(channels), channel = unit % nnd_blocks(channels) * NND_LANES;
    const nnd_size held = nnd_min(NND_LANES, channels - channel);
    const float *from = in + unit * pixels * NND_LANES;
    float *to = out + (image * channels + channel) * pixels;
    nnd_size pixel = 0;
    for (; pixel + NND_LANES <= pixels; pixel += NND_LANES) {
      vf rows[NND_LANES];
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_load(from + (pixel + i) * NND_LANES);
      nnd_transpose(rows);
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) {
        if (i < held) nnd_store_any(to + i * pixels + pixel, rows[i]);
      }
    }
    for (; pixel < pixels; pixel++)
      for (nnd_size i = 0; i < held; i++) to[i * pixels + pixel] = from[pixel * NND_LANES + i];
  }
}

#endif
