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

/* The rows of the kernel that lie inside for one output row: taps [begin, end), the first of which reads row `slot` of
 * memory, the others `step` rows further on each, at row 0 again behind row `ring`. */
struct nnd_row_taps {
  nnd_size begin, end, slot, step, ring;
};

NND_INLINE struct nnd_row_taps nnd_row_taps_of(const struct nnd_depthwise *s, nnd_size row) {
  const struct nnd_axis y = s->y;
  const nnd_size top = row * y.stride - y.pad, ring = s->ring ? s->ring : y.size;
  struct nnd_row_taps taps = {nnd_max(0, -top), nnd_min(y.kernel, y.size - top), 0, 1, ring};
  if (y.dilation != 1) { /* divisions take as long as half a tile */
    taps.begin = nnd_tap_begin(y, top), taps.end = nnd_tap_end(y, top);
    taps.step = y.dilation % ring;
  }
  if (taps.begin < taps.end) {
    const nnd_size first = top + taps.begin * y.dilation;
    taps.slot = first < ring ? first : first % ring;
  }
  return taps;
}

/* The row of memory of the next tap. */
NND_INLINE nnd_size nnd_next_slot(const struct nnd_row_taps *taps, nnd_size slot) {
  const nnd_size next = slot + taps->step;
  return next < taps->ring ? next : next - taps->ring;
}

/* How much of a tile may lie beside the image: some columns, or exactly one, as usual, which is left out at compile
 * time. */
enum nnd_edge { NND_INSIDE, NND_ONE_LEFT, NND_ONE_RIGHT, NND_ONE_EACH, NND_ANY_EDGE };

/* The sums of `pixels` outputs, of which the first one reads column `first` at its first tap. */
NND_INLINE void nnd_depthwise_sums(const struct nnd_depthwise *s, int kernel, int stride, int pixels, int edge,
                                   nnd_size first, const struct nnd_row_taps *taps, const nnd_elem *in,
                                   const float *weights, vf *sums) {
  const nnd_size low = -first, high = s->x.size - first, span = (pixels - 1) * stride + kernel;
  nnd_size slot = taps->slot;
  for (nnd_size ky = taps->begin; ky < taps->end; ky++, slot = nnd_next_slot(taps, slot)) {
    const nnd_elem *row = in + (slot * s->x.size + first) * NND_LANES;
    vf w[NND_DEPTHWISE_TAPS];
    NND_UNROLL
    for (int kx = 0; kx < kernel; kx++) w[kx] = nnd_load(weights + (ky * kernel + kx) * NND_LANES);
    NND_UNROLL
    for (nnd_size at = 0; at < span; at++) { /* each pixel is loaded once */
      if ((edge == NND_ONE_LEFT || edge == NND_ONE_EACH) && at == 0) continue;
      if ((edge == NND_ONE_RIGHT || edge == NND_ONE_EACH) && at == span - 1) continue;
      const int may_be_beside = at < kernel - 1 || at > span - kernel; /* fewer zeros than the kernel is wide */
      if (edge == NND_ANY_EDGE && may_be_beside && (at < low || at >= high)) continue;
      if (!nnd_is_read(kernel, stride, at, pixels)) continue;
      const vf x = nnd_read(row + at * NND_LANES);
      NND_UNROLL
      for (int kx = 0; kx < kernel; kx++) {
        const nnd_size ahead = at - kx;
        if (ahead >= 0 && ahead % stride == 0 && ahead / stride < pixels) sums[ahead / stride] += w[kx] * x;
      }
    }
  }
}

#define NND_SUMS(edge) nnd_depthwise_sums(s, kernel, stride, pixels, edge, first, &taps, in, weights, sums)

/* Tiles from `begin` to `end`, all of `pixels`; the last overlaps the one before. What sums become is compiled in once,
 * not for each edge. */
NND_INLINE void nnd_depthwise_tiles(const struct nnd_depthwise *s, int kernel, int stride, int pixels, nnd_size row,
                                    nnd_size begin, nnd_size end, const nnd_elem *in, const float *weights,
                                    const float *bias, vf number, nnd_elem *out) {
  const struct nnd_row_taps taps = nnd_row_taps_of(s, row);
  for (nnd_size at = begin; at < end; at += pixels) {
    const nnd_size column = nnd_min(at, end - pixels), first = column * stride - s->x.pad;
    const nnd_size left = -first, right = first + (pixels - 1) * stride + kernel - s->x.size; /* columns beside */
    nnd_elem *to = out + (column - begin) * NND_LANES;
    vf sums[NND_DEPTHWISE_TILE];
    NND_UNROLL
    for (int p = 0; p < pixels; p++) sums[p] = nnd_load(bias);
    if (left <= 0 && right <= 0)
      NND_SUMS(NND_INSIDE);
    else if (kernel == 3 && left == 1 && right <= 0)
      NND_SUMS(NND_ONE_LEFT);
    else if (kernel == 3 && left <= 0 && right == 1)
      NND_SUMS(NND_ONE_RIGHT);
    else if (kernel == 3 && left == 1 && right == 1)
      NND_SUMS(NND_ONE_EACH);
    else
      NND_SUMS(NND_ANY_EDGE);
    nnd_end_sums(&s->end, sums, pixels, 0, number);
    NND_UNROLL
    for (int p = 0; p < pixels; p++) nnd_write(to + p * NND_LANES, sums[p]);
  }
}

/* Kernels of a width, a stride and a tile that are compiled in. Each tile has a function of its own: in one function
 * they take a compiler several times as long. */
#define NND_DEPTHWISE_TILES(K, S, P)                                                                                   \
  NND_NOINLINE void nnd_depthwise_##K##_##S##_##P(                                                                     \
      const struct nnd_depthwise *s, nnd_size row, nnd_size rows, nnd_size begin, nnd_size end, const nnd_elem *in,    \
      const float *weights, const float *bias, vf number, nnd_size pitch, nnd_elem *out) {                             \
    for (nnd_size r = 0; r < rows; r++)                                                                                \
      nnd_depthwise_tiles(s, K, S, P, row + r, begin, end, in, weights, bias, number, out + r * pitch * NND_LANES);    \
  }
#define NND_DEPTHWISE_CASE(K, S, P)                                                                                    \
  case P: nnd_depthwise_##K##_##S##_##P(s, row, rows, begin, end, in, weights, bias, number, pitch, out); return;
#define NND_DEPTHWISE(K, S)                                                                                            \
  NND_EACH_TILE(NND_DEPTHWISE_TILES, K, S)                                                                             \
  static void nnd_depthwise_##K##_##S(const struct nnd_depthwise *s, nnd_size row, nnd_size rows, nnd_size begin,      \
                                      nnd_size end, const nnd_elem *in, const float *weights, const float *bias,       \
                                      vf number, nnd_size pitch, nnd_elem *out) {                                      \
    switch (nnd_depthwise_pixels(end - begin)) { NND_EACH_TILE(NND_DEPTHWISE_CASE, K, S) }                             \
  }

#define NND_NARROW_TILES(DO, K, S)                                                                                     \
  DO(K, S, 1) DO(K, S, 2) DO(K, S, 3) DO(K, S, 4) DO(K, S, 5) DO(K, S, 6) DO(K, S, 7) DO(K, S, 8)
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
#define NND_EACH_TILE(DO, K, S) NND_NARROW_TILES(DO, K, S) DO(K, S, 10) DO(K, S, 12) DO(K, S, 14)
#else
#define NND_EACH_TILE NND_NARROW_TILES
#endif

NND_DEPTHWISE(3, 1)
NND_DEPTHWISE(3, 2)
NND_DEPTHWISE(5, 1)
NND_DEPTHWISE(5, 2)
NND_DEPTHWISE(7, 1)
NND_DEPTHWISE(7, 2)

#define NND_ANY_TILE (NND_ACCUMULATORS > 16 ? 8 : 4)

/* Adds one row of taps to `pixels` sums, whose first one reads `first` at its first tap. */
NND_INLINE void nnd_depthwise_add(const struct nnd_axis *x, int pixels, int is_inside, nnd_size first,
                                  const nnd_elem *line, const float *weights, vf *sums) {
  for (nnd_size kx = 0; kx < x->kernel; kx++, weights += NND_LANES, first += x->dilation) {
    const vf w = nnd_load(weights);
    NND_UNROLL
    for (int p = 0; p < pixels; p++) {
      const nnd_size column = first + p * x->stride;
      if (is_inside || (column >= 0 && column < x->size)) sums[p] += w * nnd_read(line + column * NND_LANES);
    }
  }
}

/* `pixels` outputs from `column` on, of any kernel, stride and dilation. */
NND_INLINE void nnd_depthwise_any_tile(const struct nnd_depthwise *s, int pixels, nnd_size column,
                                       const struct nnd_row_taps *taps, const nnd_elem *in, const float *weights,
                                       const float *bias, vf number, nnd_elem *out) {
  const struct nnd_axis *x = &s->x;
  const nnd_size first = column * x->stride - x->pad;
  const int is_inside = first >= 0 && first + (pixels - 1) * x->stride + (x->kernel - 1) * x->dilation < x->size;
  vf sums[NND_ANY_TILE];
  NND_UNROLL
  for (int p = 0; p < pixels; p++) sums[p] = nnd_load(bias);
  nnd_size slot = taps->slot;
  for (nnd_size ky = taps->begin; ky < taps->end; ky++, slot = nnd_next_slot(taps, slot)) {
    const nnd_elem *line = in + slot * x->size * NND_LANES;
    const float *of_row = weights + ky * x->kernel * NND_LANES;
    if (is_inside)
      nnd_depthwise_add(x, pixels, 1, first, line, of_row, sums);
    else
      nnd_depthwise_add(x, pixels, 0, first, line, of_row, sums);
  }
  nnd_end_sums(&s->end, sums, pixels, 0, number);
  NND_UNROLL
  for (int p = 0; p < pixels; p++) nnd_write(out + p * NND_LANES, sums[p]);
}

/* Any kernel, stride and dilation: tiles of pixels, of which the last overlaps the one before; of fewer pixels single
 * ones. */
static void nnd_depthwise_row(const struct nnd_depthwise *s, nnd_size row, nnd_size begin, nnd_size end,
                              const nnd_elem *in, const float *weights, const float *bias, vf number, nnd_elem *out) {
  const struct nnd_row_taps taps = nnd_row_taps_of(s, row);
  if (end - begin < NND_ANY_TILE) {
    for (nnd_size at = begin; at < end; at++, out += NND_LANES)
      nnd_depthwise_any_tile(s, 1, at, &taps, in, weights, bias, number, out);
    return;
  }
  for (nnd_size at = begin; at < end; at += NND_ANY_TILE) {
    const nnd_size column = nnd_min(at, end - NND_ANY_TILE);
    nnd_depthwise_any_tile(s, NND_ANY_TILE, column, &taps, in, weights, bias, number,
                           out + (column - begin) * NND_LANES);
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
