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

struct nnd_convolution {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images;
  struct nnd_activation activation;
  int planar;   /* the input is NCHW */
  int residual; /* one is added before the activation; laid out like the output */
  int stream;
};

/* Multiply-adds of `count` values that lie `step` floats apart in the input, one row of the kernel. */
NND_INLINE void nnd_convolution_taps(struct nnd_convolution s, vf *sums, int pixels, int vectors, nnd_size first,
                                     int edge, const float *row, nnd_size count, nnd_size step, nnd_size pixel_step,
                                     const float *weights) {
  NND_UNROLL for (int kx = 0; kx < s.x.kernel; kx++) {
    const float *w = weights + kx * s.in_channels * vectors * NND_LANES;
    NND_NO_UNROLL for (nnd_size i = 0; i < count; i++) {
      vf line[4];
      NND_UNROLL for (int v = 0; v < vectors; v++) line[v] = nnd_load(w + (i * vectors + v) * NND_LANES);
      NND_UNROLL for (int p = 0; p < pixels; p++) {
        const nnd_size at = first + p * s.x.stride + kx * s.x.dilation;
        if (edge && (at < 0 || at >= s.x.size)) continue;
        const float x = row[i * step + at * pixel_step];
        NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] += line[v] * x;
      }
    }
  }
}

NND_INLINE void nnd_convolution_tile(struct nnd_convolution s, int pixels, int vectors, nnd_size column, int edge,
                                     nnd_size top, struct nnd_pointwise_data d) {
  vf sums[NND_ACCUMULATORS];
  const nnd_size plane = s.y.size * s.x.size, out_plane = s.y.out_size * s.x.out_size * NND_LANES;
  const nnd_size first = column * s.x.stride - s.x.pad, end = nnd_tap_end(s.y, top);
  NND_UNROLL for (int p = 0; p < pixels; p++)
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] = nnd_load(d.bias + v * NND_LANES);
  for (nnd_size ky = nnd_tap_begin(s.y, top); ky < end; ky++) {
    const nnd_size y = top + ky * s.y.dilation;
    const float *weights = d.weights + ky * s.x.kernel * s.in_channels * vectors * NND_LANES;
    if (s.planar) {
      nnd_convolution_taps(s, sums, pixels, vectors, first, edge, d.in + y * s.x.size, s.in_channels, plane, 1,
                           weights);
      continue;
    }
    const nnd_size full = s.in_channels / NND_LANES, rest = s.in_channels % NND_LANES;
    const float *row = d.in + y * s.x.size * NND_LANES;
    NND_NO_UNROLL for (nnd_size block = 0; block < full; block++)
      nnd_convolution_taps(s, sums, pixels, vectors, first, edge, row + block * plane * NND_LANES, NND_LANES, 1,
                           NND_LANES, weights + block * NND_LANES * vectors * NND_LANES);
    if (rest)
      nnd_convolution_taps(s, sums, pixels, vectors, first, edge, row + full * plane * NND_LANES, rest, 1, NND_LANES,
                           weights + full * NND_LANES * vectors * NND_LANES);
  }
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf slope = s.activation.kind == NND_PRELU ? nnd_load(d.slopes + v * NND_LANES) : nnd_splat(0.0f);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const nnd_size at = v * out_plane + (column + p) * NND_LANES;
      vf sum = sums[p * vectors + v];
      if (s.residual) sum += nnd_load(d.residual + at);
      sum = nnd_activate(s.activation, sum, slope);
      if (s.stream) nnd_stream(d.out + at, sum);
      else nnd_store(d.out + at, sum);
    }
  }
}

/* One output row of one panel; `d.out` and `d.residual` at the row. */
NND_INLINE void nnd_convolution_row(struct nnd_convolution s, int vectors, nnd_size top, struct nnd_pointwise_data d) {
  const nnd_size tiles = nnd_ceil_div(s.x.out_size, NND_ACCUMULATORS / vectors);
  const nnd_size pixels = nnd_ceil_div(s.x.out_size, tiles), used = nnd_ceil_div(s.x.out_size, pixels);
  if (nnd_edges_are_outer(s.x, used, pixels)) {
    const nnd_size last = (used - 1) * pixels;
    nnd_convolution_tile(s, (int)nnd_min(pixels, s.x.out_size), vectors, 0, 1, top, d);
    for (nnd_size column = pixels; column < last; column += pixels)
      nnd_convolution_tile(s, (int)pixels, vectors, column, 0, top, d);
    if (used > 1) nnd_convolution_tile(s, (int)(s.x.out_size - last), vectors, last, 1, top, d);
  } else {
    for (nnd_size column = 0; column < s.x.out_size; column++)
      nnd_convolution_tile(s, 1, vectors, column, 1, top, d);
  }
}

/* Units [first, last): output rows of all images. Weights: [panel][kernel rows][kernel columns][in_channels][vectors
 * of the panel][c]; `d.residual` like the output. */
NND_INLINE void nnd_convolution_run(struct nnd_convolution s, struct nnd_pointwise_data d, nnd_size first,
                                    nnd_size last) {
  const nnd_size taps = s.y.kernel * s.x.kernel * s.in_channels, blocks = nnd_blocks(s.out_channels);
  const nnd_size in_blocks = s.planar ? s.in_channels : nnd_blocks(s.in_channels) * NND_LANES;
  const nnd_size out_plane = s.y.out_size * s.x.out_size * NND_LANES;
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / s.y.out_size, row = unit % s.y.out_size;
    const nnd_size at = image * blocks * out_plane + row * s.x.out_size * NND_LANES;
    struct nnd_pointwise_data p = d;
    p.in += image * in_blocks * s.y.size * s.x.size;
    p.out += at;
    if (s.residual) p.residual += at;
    for (nnd_size panel = 0; panel < nnd_full_panels(blocks); panel++) {
      nnd_convolution_row(s, NND_PANEL, row * s.y.stride - s.y.pad, p);
      p.weights += taps * NND_PANEL * NND_LANES;
      p.bias += NND_PANEL * NND_LANES;
      if (s.activation.kind == NND_PRELU) p.slopes += NND_PANEL * NND_LANES;
      p.out += NND_PANEL * out_plane;
      if (s.residual) p.residual += NND_PANEL * out_plane;
    }
    nnd_convolution_row(s, nnd_last_panel(blocks), row * s.y.stride - s.y.pad, p);
  }
}

#endif
