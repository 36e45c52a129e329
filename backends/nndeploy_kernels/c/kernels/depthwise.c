/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/depthwise.h"

#define NND_DEPTHWISE_TILE 14
#define NND_DEPTHWISE_TAPS 7 /* columns of the widest kernel that is compiled in */

/* True where some output of a tile reads the pixel `at` behind the tile's first. */
NND_INLINE int nnd_is_read(nnd_size kernel, nnd_size stride, nnd_size at, nnd_size pixels) {
  for (nnd_size kx = 0; kx < kernel; kx++) {
    const nnd_size ahead = at - kx;
    if (ahead >= 0 && ahead % stride == 0 && ahead / stride < pixels) return 1;
  }
  return 0;
}

/* `pixels` outputs from `column` on; where `is_edge`, those may read beside the image. */
NND_INLINE void nnd_depthwise_tile(const struct nnd_depthwise *s, int kernel, int stride, int pixels, int is_edge,
                                   nnd_size column, nnd_size top, const nnd_elem *in, const float *weights,
                                   const float *bias, vf number, nnd_elem *out) {
  vf sums[NND_DEPTHWISE_TILE];
  const vf begin = nnd_load(bias);
  NND_UNROLL for (int p = 0; p < pixels; p++) sums[p] = begin;
  const nnd_size first = column * stride - s->x.pad, low = -first, high = s->x.size - first;
  const nnd_size span = (pixels - 1) * stride + kernel, end = nnd_tap_end(s->y, top);
  for (nnd_size ky = nnd_tap_begin(s->y, top); ky < end; ky++) {
    const nnd_size y = top + ky * s->y.dilation;
    const nnd_elem *row = in + ((s->ring ? y % s->ring : y) * s->x.size + first) * NND_LANES;
    vf w[NND_DEPTHWISE_TAPS];
    NND_UNROLL for (int kx = 0; kx < kernel; kx++) w[kx] = nnd_load(weights + (ky * kernel + kx) * NND_LANES);
    NND_UNROLL for (nnd_size at = 0; at < span; at++) { /* each pixel is loaded once */
      const int may_be_beside = at < kernel - 1 || at > span - kernel; /* fewer zeros stand there than the kernel is wide */
      if (is_edge && may_be_beside && (at < low || at >= high)) continue;
      if (!nnd_is_read(kernel, stride, at, pixels)) continue;
      const vf x = nnd_read(row + at * NND_LANES);
      NND_UNROLL for (int kx = 0; kx < kernel; kx++) {
        const nnd_size ahead = at - kx;
        if (ahead >= 0 && ahead % stride == 0 && ahead / stride < pixels) sums[ahead / stride] += w[kx] * x;
      }
    }
  }
  nnd_end_sums(&s->end, sums, pixels, 0, number);
  NND_UNROLL for (int p = 0; p < pixels; p++) nnd_write(out + p * NND_LANES, sums[p]);
}

/* Tiles from `begin` to `end`, all of `pixels`; the last overlaps the one before. */
NND_INLINE void nnd_depthwise_tiles(const struct nnd_depthwise *s, int kernel, int stride, int pixels, nnd_size top,
                                    nnd_size begin, nnd_size end, const nnd_elem *in, const float *weights,
                                    const float *bias, vf number, nnd_elem *out) {
  for (nnd_size at = begin; at < end; at += pixels) {
    const nnd_size column = nnd_min(at, end - pixels), first = column * stride - s->x.pad;
    nnd_elem *to = out + (column - begin) * NND_LANES;
    if (first >= 0 && first + (pixels - 1) * stride + kernel <= s->x.size)
      nnd_depthwise_tile(s, kernel, stride, pixels, 0, column, top, in, weights, bias, number, to);
    else nnd_depthwise_tile(s, kernel, stride, pixels, 1, column, top, in, weights, bias, number, to);
  }
}

/* Kernels of a width and stride that are compiled in. */
#define NND_DEPTHWISE_CASE(K, S, P)                                                                      \
  case P:                                                                                                \
    for (nnd_size r = 0; r < rows; r++)                                                                  \
      nnd_depthwise_tiles(s, K, S, P, (row + r) * s->y.stride - s->y.pad, begin, end, in, weights, bias, \
                          number, out + r * pitch * NND_LANES);                                          \
    return;
#define NND_DEPTHWISE(K, S)                                                                                     \
  static void nnd_depthwise_##K##_##S(const struct nnd_depthwise *s, nnd_size row, nnd_size rows, nnd_size begin, \
                                      nnd_size end, const nnd_elem *in, const float *weights, const float *bias,  \
                                      vf number, nnd_size pitch, nnd_elem *out) {                                 \
    switch (nnd_depthwise_pixels(end - begin)) {                                                                  \
      NND_DEPTHWISE_CASE(K, S, 1) NND_DEPTHWISE_CASE(K, S, 2) NND_DEPTHWISE_CASE(K, S, 3)                         \
      NND_DEPTHWISE_CASE(K, S, 4) NND_DEPTHWISE_CASE(K, S, 5) NND_DEPTHWISE_CASE(K, S, 6)                         \
      NND_DEPTHWISE_CASE(K, S, 7) NND_DEPTHWISE_CASE(K, S, 8) NND_WIDE_CASES(K, S)                                \
    }                                                                                                             \
  }

#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
#define NND_WIDE_CASES(K, S) \
  NND_DEPTHWISE_CASE(K, S, 10) NND_DEPTHWISE_CASE(K, S, 12) NND_DEPTHWISE_CASE(K, S, 14)
#else
#define NND_WIDE_CASES(K, S)
#endif

NND_DEPTHWISE(3, 1)
NND_DEPTHWISE(3, 2)
NND_DEPTHWISE(5, 1)
NND_DEPTHWISE(5, 2)
NND_DEPTHWISE(7, 1)
NND_DEPTHWISE(7, 2)

#define NND_ANY_TILE 4

/* Any kernel, stride and dilation. */
static void nnd_depthwise_row(const struct nnd_depthwise *s, nnd_size row, nnd_size begin, nnd_size end,
                              const nnd_elem *in, const float *weights, const float *bias, vf number, nnd_elem *out) {
  const struct nnd_axis x = s->x;
  const nnd_size top = row * s->y.stride - s->y.pad, last = nnd_tap_end(s->y, top);
  for (nnd_size at = begin; at < end; at += NND_ANY_TILE) {
    const int pixels = (int)nnd_min(NND_ANY_TILE, end - at);
    vf sums[NND_ANY_TILE];
    for (int p = 0; p < NND_ANY_TILE; p++) sums[p] = nnd_load(bias);
    for (nnd_size ky = nnd_tap_begin(s->y, top); ky < last; ky++) {
      const nnd_size y = top + ky * s->y.dilation;
      const nnd_elem *line = in + (s->ring ? y % s->ring : y) * x.size * NND_LANES;
      for (nnd_size kx = 0; kx < x.kernel; kx++) {
        const vf w = nnd_load(weights + (ky * x.kernel + kx) * NND_LANES);
        const nnd_size first = at * x.stride - x.pad + kx * x.dilation;
        for (int p = 0; p < pixels; p++) {
          const nnd_size column = first + p * x.stride;
          if (column >= 0 && column < x.size) sums[p] += w * nnd_read(line + column * NND_LANES);
        }
      }
    }
    nnd_end_sums(&s->end, sums, NND_ANY_TILE, 0, number);
    for (int p = 0; p < pixels; p++) nnd_write(out + (at - begin + p) * NND_LANES, sums[p]);
  }
}

static void nnd_depthwise_any(const struct nnd_depthwise *s, nnd_size row, nnd_size rows, nnd_size begin, nnd_size end,
                              const nnd_elem *in, const float *weights, const float *bias, vf number, nnd_size pitch,
                              nnd_elem *out) {
  for (nnd_size r = 0; r < rows; r++)
    nnd_depthwise_row(s, row + r, begin, end, in, weights, bias, number, out + r * pitch * NND_LANES);
}

nnd_depthwise_kernel nnd_depthwise_for(const struct nnd_axis *x) {
  const nnd_size behind = (x->out_size - 1) * x->stride - x->pad + x->kernel - x->size; /* zeros that are read there */
  if (x->dilation == 1 && x->stride <= 2 && x->pad < x->kernel && behind < x->kernel) {
    if (x->kernel == 3) return x->stride == 1 ? nnd_depthwise_3_1 : nnd_depthwise_3_2;
    if (x->kernel == 5) return x->stride == 1 ? nnd_depthwise_5_1 : nnd_depthwise_5_2;
    if (x->kernel == 7) return x->stride == 1 ? nnd_depthwise_7_1 : nnd_depthwise_7_2;
  }
  return nnd_depthwise_any;
}
