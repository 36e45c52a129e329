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

/* `pixels` neighbours of the `held` channels of one block: from planes that lie `plane` floats apart, to NCHWc. */
NND_INLINE void nnd_blocked_run(nnd_size held, nnd_size pixels, nnd_size plane, const float *from, nnd_elem *to) {
  for (nnd_size begin = 0; pixels >= NND_LANES && begin < pixels; begin += NND_LANES) {
    const nnd_size pixel = nnd_min(begin, pixels - NND_LANES); /* the last vector may overlap the one before */
    vf rows[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES; i++)
      rows[i] = i < held ? nnd_load_any(from + i * plane + pixel) : nnd_splat(0.0f);
    nnd_transpose(rows);
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) nnd_write(to + (pixel + i) * NND_LANES, rows[i]);
  }
  for (nnd_size pixel = 0; pixels < NND_LANES && pixel < pixels; pixel++)
    for (nnd_size i = 0; i < NND_LANES; i++)
      to[pixel * NND_LANES + i] = nnd_to_elem(i < held ? from[i * plane + pixel] : 0.0f);
}

/* The way back; with `stream` past the caches, where every plane and `to` begin at a vector. */
NND_INLINE void nnd_plain_run(nnd_size held, nnd_size pixels, nnd_size plane, int stream, const nnd_elem *from,
                              float *to) {
  for (nnd_size begin = 0; pixels >= NND_LANES && begin < pixels; begin += NND_LANES) {
    const nnd_size pixel = nnd_min(begin, pixels - NND_LANES);
    vf rows[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_read(from + (pixel + i) * NND_LANES);
    nnd_transpose(rows);
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) {
      if (i >= held) continue;
      if (stream) __builtin_nontemporal_store(rows[i], (vf *)(to + i * plane + pixel));
      else nnd_store_any(to + i * plane + pixel, rows[i]);
    }
  }
  for (nnd_size pixel = 0; pixels < NND_LANES && pixel < pixels; pixel++)
    for (nnd_size i = 0; i < held; i++) to[i * plane + pixel] = nnd_to_float(from[pixel * NND_LANES + i]);
}

/* `pixels` is H * W. Workers share runs of NND_RUN pixels of all channel blocks of all images. */
struct nnd_layout_step {
  nnd_size images, channels, pixels;
};

#define NND_RUN 1024

/* Run `unit`: its channel block of all images, its first channel and that one's plane, its pixels [begin, end). */
struct nnd_layout_run {
  nnd_size block, held, plane, begin, end;
};

NND_INLINE struct nnd_layout_run nnd_layout_run(const struct nnd_layout_step *t, nnd_size unit) {
  const nnd_size blocks = nnd_blocks(t->channels), runs = nnd_ceil_div(t->pixels, NND_RUN);
  const nnd_size block = unit / runs, channel = block % blocks * NND_LANES, begin = unit % runs * NND_RUN;
  return (struct nnd_layout_run){block, nnd_min(NND_LANES, t->channels - channel),
                                 block / blocks * t->channels + channel, begin,
                                 nnd_min(t->pixels, begin + NND_RUN)};
}

NND_INLINE void nnd_blocked_from_plain_step(const struct nnd_layout_step *t, nnd_elem *out, const float *in,
                                            struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->images * nnd_blocks(t->channels) * nnd_ceil_div(t->pixels, NND_RUN), part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const struct nnd_layout_run r = nnd_layout_run(t, unit);
    nnd_blocked_run(r.held, r.end - r.begin, t->pixels, in + r.plane * t->pixels + r.begin,
                    out + (r.block * t->pixels + r.begin) * NND_LANES);
  }
}

NND_INLINE void nnd_plain_from_blocked_step(const struct nnd_layout_step *t, float *out, const nnd_elem *in,
                                            struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->images * nnd_blocks(t->channels) * nnd_ceil_div(t->pixels, NND_RUN), part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const struct nnd_layout_run r = nnd_layout_run(t, unit);
    nnd_plain_run(r.held, r.end - r.begin, t->pixels, 0, in + (r.block * t->pixels + r.begin) * NND_LANES,
                  out + r.plane * t->pixels + r.begin);
  }
}

#endif
