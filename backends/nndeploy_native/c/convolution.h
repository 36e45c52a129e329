/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense k x k convolution, from NCHW (the first of a network: no conversion before it) or NCHWc, to NCHWc.
 *
 * The register tile is the pointwise one, pixels of one output row x vectors of output channels; rows of the kernel
 * outside the image are left out by the bounds of a loop, columns by variants of the first and the last tile.
 */
#ifndef NND_CONVOLUTION_H
#define NND_CONVOLUTION_H

#include "depthwise.h"
#include "pointwise.h"

/* Workers share output rows of all images. */
struct nnd_convolution_step {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images;
  int stream;
  int panels_outside; /* the weights do not fit the second cache: a panel stays for all rows of a worker */
  struct nnd_end end;
};

/* Multiply-adds of one row of the kernel from NCHW: `plane` floats from channel to channel. */
NND_INLINE void nnd_planar_taps(const struct nnd_convolution_step *t, vf *sums, int pixels, int vectors, nnd_size first,
                                int edge, const float *row, const float *weights) {
  const nnd_size plane = t->y.size * t->x.size;
  NND_UNROLL for (int kx = 0; kx < t->x.kernel; kx++) {
    const float *w = weights + kx * t->in_channels * vectors * NND_LANES;
    NND_NO_UNROLL for (nnd_size i = 0; i < t->in_channels; i++) {
      vf line[4];
      NND_UNROLL for (int v = 0; v < vectors; v++) line[v] = nnd_load(w + (i * vectors + v) * NND_LANES);
      NND_UNROLL for (int p = 0; p < pixels; p++) {
        const nnd_size at = first + p * t->x.stride + kx * t->x.dilation;
        if (edge && (at < 0 || at >= t->x.size)) continue;
        const float x = row[i * plane + at];
        NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] += line[v] * x;
      }
    }
  }
}

/* The same of `count` channels of one block of NCHWc. */
NND_INLINE void nnd_blocked_taps(const struct nnd_convolution_step *t, vf *sums, int pixels, int vectors,
                                 nnd_size first, int edge, const nnd_elem *row, nnd_size count,
                                 const nnd_weight *weights) {
  NND_UNROLL for (int kx = 0; kx < t->x.kernel; kx++) {
    const nnd_weight *w = weights + kx * nnd_grouped_channels(t->in_channels) * vectors * NND_LANES;
    NND_NO_UNROLL for (nnd_size i = 0; i < count; i += NND_GROUP) {
      nnd_weights line[4];
      NND_UNROLL for (int v = 0; v < vectors; v++) line[v] = nnd_load_weights(w + (i * vectors + v * NND_GROUP) * NND_LANES);
      NND_UNROLL for (int p = 0; p < pixels; p++) {
        const nnd_size at = first + p * t->x.stride + kx * t->x.dilation;
        if (edge && (at < 0 || at >= t->x.size)) continue;
        const vf x = nnd_broadcast(row + at * NND_LANES + i, i + 1 < count);
        NND_UNROLL for (int v = 0; v < vectors; v++)
          sums[p * vectors + v] = nnd_multiply_add(sums[p * vectors + v], line[v], x);
      }
    }
  }
}

struct nnd_convolution_data {
  const void *in;      /* nnd_elem, or floats of NCHW where `planar` */
  const void *weights; /* [panel][kernel rows][kernel columns][in_channels][vectors of the panel][c] */
  const float *bias, *numbers;
  const nnd_elem *residual;
  nnd_elem *out;
};

NND_INLINE void nnd_convolution_tile(const struct nnd_convolution_step *t, int planar, int pixels, int vectors,
                                     nnd_size column, int edge, nnd_size top, struct nnd_convolution_data d) {
  vf sums[NND_ACCUMULATORS];
  const nnd_size plane = t->y.size * t->x.size, out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size first = column * t->x.stride - t->x.pad, end = nnd_tap_end(t->y, top);
  NND_UNROLL for (int p = 0; p < pixels; p++)
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] = nnd_load(d.bias + v * NND_LANES);
  for (nnd_size ky = nnd_tap_begin(t->y, top); ky < end; ky++) {
    const nnd_size y = top + ky * t->y.dilation;
    if (planar) {
      nnd_planar_taps(t, sums, pixels, vectors, first, edge, (const float *)d.in + y * t->x.size,
                      (const float *)d.weights + ky * t->x.kernel * t->in_channels * vectors * NND_LANES);
      continue;
    }
    const nnd_size full = t->in_channels / NND_LANES, rest = t->in_channels % NND_LANES;
    const nnd_weight *weights = (const nnd_weight *)d.weights +
                                ky * t->x.kernel * nnd_grouped_channels(t->in_channels) * vectors * NND_LANES;
    const nnd_elem *row = (const nnd_elem *)d.in + y * t->x.size * NND_LANES;
    NND_NO_UNROLL for (nnd_size block = 0; block < full; block++)
      nnd_blocked_taps(t, sums, pixels, vectors, first, edge, row + block * plane * NND_LANES, NND_LANES,
                       weights + block * NND_LANES * vectors * NND_LANES);
    if (rest)
      nnd_blocked_taps(t, sums, pixels, vectors, first, edge, row + full * plane * NND_LANES, rest,
                       weights + full * NND_LANES * vectors * NND_LANES);
  }
  nnd_store_tile(&t->end, sums, pixels, vectors, out_plane, t->stream, d.residual + column * NND_LANES, d.numbers,
                 d.out + column * NND_LANES);
}

/* One output row of one panel; `d.out` and `d.residual` at the row. */
NND_INLINE void nnd_convolution_row(const struct nnd_convolution_step *t, int planar, int vectors, nnd_size top,
                                    struct nnd_convolution_data d) {
  const nnd_size tiles = nnd_ceil_div(t->x.out_size, NND_ACCUMULATORS / vectors);
  const nnd_size pixels = nnd_ceil_div(t->x.out_size, tiles), used = nnd_ceil_div(t->x.out_size, pixels);
  if (nnd_edges_are_outer(t->x, used, pixels)) {
    const nnd_size last = (used - 1) * pixels;
    nnd_convolution_tile(t, planar, (int)nnd_min(pixels, t->x.out_size), vectors, 0, 1, top, d);
    for (nnd_size column = pixels; column < last; column += pixels)
      nnd_convolution_tile(t, planar, (int)pixels, vectors, column, 0, top, d);
    if (used > 1) nnd_convolution_tile(t, planar, (int)(t->x.out_size - last), vectors, last, 1, top, d);
  } else {
    for (nnd_size column = 0; column < t->x.out_size; column++)
      nnd_convolution_tile(t, planar, 1, vectors, column, 1, top, d);
  }
}

/* Row `unit` of all images, panel `panel`. */
NND_INLINE void nnd_convolution_unit(const struct nnd_convolution_step *t, int planar, nnd_size panel, nnd_size unit,
                                     struct nnd_convolution_data d) {
  const nnd_size blocks = nnd_blocks(t->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const nnd_size image = unit / t->y.out_size, row = unit % t->y.out_size;
  const nnd_size out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size at = (image * blocks + block) * out_plane + row * t->x.out_size * NND_LANES;
  const nnd_size taps = t->y.kernel * t->x.kernel, pixels = t->y.size * t->x.size;
  if (planar) {
    d.in = (const float *)d.in + image * t->in_channels * pixels;
    d.weights = (const float *)d.weights + block * NND_LANES * taps * t->in_channels;
  } else {
    d.in = (const nnd_elem *)d.in + image * nnd_blocks(t->in_channels) * NND_LANES * pixels;
    d.weights = (const nnd_weight *)d.weights + block * NND_LANES * taps * nnd_grouped_channels(t->in_channels);
  }
  d.bias += block * NND_LANES;
  if (t->end.number) d.numbers += block * NND_LANES;
  d.out += at;
  if (t->end.residual) d.residual += at;
  const nnd_size top = row * t->y.stride - t->y.pad;
  if (panel < full) nnd_convolution_row(t, planar, NND_PANEL, top, d);
  else nnd_convolution_row(t, planar, nnd_last_panel(blocks), top, d);
}

NND_INLINE void nnd_convolution_any(const struct nnd_convolution_step *t, int planar, struct nnd_convolution_data d,
                                    struct nnd_part part) {
  const nnd_size panels = nnd_full_panels(nnd_blocks(t->out_channels)) + 1;
  nnd_size first, last;
  nnd_share(t->images * t->y.out_size, part, &first, &last);
  const nnd_size rows = last - first;
  for (nnd_size i = 0; i < rows * panels; i++) {
    if (t->panels_outside) nnd_convolution_unit(t, planar, i / rows, first + i % rows, d);
    else nnd_convolution_unit(t, planar, i % panels, first + i / panels, d);
  }
}

NND_INLINE void nnd_convolution_step(const struct nnd_convolution_step *t, nnd_elem *out, const nnd_elem *in,
                                     const nnd_weight *weights, const float *bias, const nnd_elem *residual,
                                     const float *numbers, struct nnd_part part) {
  nnd_convolution_any(t, 0, (struct nnd_convolution_data){in, weights, bias, numbers, residual, out}, part);
}

/* From NCHW. */
NND_INLINE void nnd_first_convolution_step(const struct nnd_convolution_step *t, nnd_elem *out, const float *in,
                                           const float *weights, const float *bias, const nnd_elem *residual,
                                           const float *numbers, struct nnd_part part) {
  nnd_convolution_any(t, 1, (struct nnd_convolution_data){in, weights, bias, numbers, residual, out}, part);
}

#endif
