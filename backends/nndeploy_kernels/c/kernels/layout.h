/* SPDX-License-Identifier: Apache-2.0
 *
 * NCHW <-> NCHWc, at the edges of a submodel. NCHW may lie at any float; its planes are H * W floats.
 *
 * NND_LANES pixels of NND_LANES channels are transposed in registers. The channel tail is written as zeros.
 */
#ifndef NND_LAYOUT_H
#define NND_LAYOUT_H

#include "base/step.h"

#if NND_LANES >                                                                                                        \
    4 /* by shuffles inside quarters of 16 lanes or halves of 8, then of these: cheaper than across a vector */
#define NND_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if NND_LANES == 16
#define NND_LOW(a, b) NND_PICK(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define NND_HIGH(a, b) NND_PICK(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define NND_LOW_PAIRS(a, b) NND_PICK(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define NND_HIGH_PAIRS(a, b) NND_PICK(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define NND_EVEN_QUARTERS(a, b) NND_PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define NND_ODD_QUARTERS(a, b) NND_PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#else
#define NND_LOW(a, b) NND_PICK(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define NND_HIGH(a, b) NND_PICK(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define NND_LOW_PAIRS(a, b) NND_PICK(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define NND_HIGH_PAIRS(a, b) NND_PICK(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#endif

NND_INLINE void nnd_transpose(vf *rows) {
  vf a[NND_LANES], b[NND_LANES];
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i += 2) {
    a[i] = NND_LOW(rows[i], rows[i + 1]);
    a[i + 1] = NND_HIGH(rows[i], rows[i + 1]);
  }
  NND_UNROLL
  for (int i = 0; i < NND_LANES;
       i += 4) { /* four lanes from 4 * k on of b[i + j]: column 4 * k + j of rows i to i + 3 */
    b[i] = NND_LOW_PAIRS(a[i], a[i + 2]);
    b[i + 1] = NND_HIGH_PAIRS(a[i], a[i + 2]);
    b[i + 2] = NND_LOW_PAIRS(a[i + 1], a[i + 3]);
    b[i + 3] = NND_HIGH_PAIRS(a[i + 1], a[i + 3]);
  }
  NND_UNROLL
  for (int j = 0; j < 4; j++) {
#if NND_LANES == 16
    const vf even = NND_EVEN_QUARTERS(b[j], b[4 + j]), even_below = NND_EVEN_QUARTERS(b[8 + j], b[12 + j]);
    const vf odd = NND_ODD_QUARTERS(b[j], b[4 + j]), odd_below = NND_ODD_QUARTERS(b[8 + j], b[12 + j]);
    rows[j] = NND_EVEN_QUARTERS(even, even_below);
    rows[4 + j] = NND_EVEN_QUARTERS(odd, odd_below);
    rows[8 + j] = NND_ODD_QUARTERS(even, even_below);
    rows[12 + j] = NND_ODD_QUARTERS(odd, odd_below);
#else
    rows[j] = NND_PICK(b[j], b[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[4 + j] = NND_PICK(b[j], b[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
#endif
  }
}
#else /* interleaving vector i with vector i + 2, twice */
NND_INLINE void nnd_transpose(vf *rows) {
  NND_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    vf next[4];
    NND_UNROLL
    for (int i = 0; i < 2; i++) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 2], 0, 4, 1, 5);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 2], 2, 6, 3, 7);
    }
    NND_UNROLL
    for (int i = 0; i < 4; i++) rows[i] = next[i];
  }
}
#endif

/* `pixels` neighbours of the `held` channels of one block: from planes that lie `plane` floats apart, to NCHWc. */
NND_INLINE void nnd_blocked_run(nnd_size held, nnd_size pixels, nnd_size plane, const float *from, nnd_elem *to) {
  for (nnd_size begin = 0; pixels >= NND_LANES && begin < pixels; begin += NND_LANES) {
    const nnd_size pixel = nnd_min(begin, pixels - NND_LANES); /* the last vector may overlap the one before */
    vf rows[NND_LANES];
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) rows[i] = i < held ? nnd_load_any(from + i * plane + pixel) : nnd_splat(0.0f);
    nnd_transpose(rows);
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) nnd_write(to + (pixel + i) * NND_LANES, rows[i]);
  }
  for (nnd_size pixel = 0; pixels < NND_LANES && pixel < pixels; pixel++)
    for (nnd_size i = 0; i < NND_LANES; i++)
      to[pixel * NND_LANES + i] = nnd_to_elem(i < held ? from[i * plane + pixel] : 0.0f);
}

/* Fewer pixels than a vector has lanes, to planes. No part of its callers, some of which it would make spill. */
NND_NOINLINE void nnd_plain_few(nnd_size held, nnd_size pixels, nnd_size plane, const nnd_elem *from, float *to) {
  for (nnd_size i = 0; i < held; i++)
    for (nnd_size pixel = 0; pixel < pixels; pixel++) to[i * plane + pixel] = nnd_to_float(from[pixel * NND_LANES + i]);
}

/* The way back; with `stream` past the caches, where every plane and `to` begin at a vector. */
NND_INLINE void nnd_plain_run(nnd_size held, nnd_size pixels, nnd_size plane, int stream, const nnd_elem *from,
                              float *to) {
  for (nnd_size begin = 0; pixels >= NND_LANES && begin < pixels; begin += NND_LANES) {
    const nnd_size pixel = nnd_min(begin, pixels - NND_LANES);
    vf rows[NND_LANES];
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_read(from + (pixel + i) * NND_LANES);
    nnd_transpose(rows);
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) {
      if (i >= held) continue;
      if (stream)
        __builtin_nontemporal_store(rows[i], (vf *)(to + i * plane + pixel));
      else
        nnd_store_any(to + i * plane + pixel, rows[i]);
    }
  }
  if (pixels < NND_LANES) nnd_plain_few(held, pixels, plane, from, to);
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
                                 block / blocks * t->channels + channel, begin, nnd_min(t->pixels, begin + NND_RUN)};
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
