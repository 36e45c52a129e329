/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution on NCHWc: each lane is a channel, so that one vector is one pixel of one channel block.
 *
 * A tile is up to NND_DEPTHWISE_TILE neighbouring pixels of one output row; the rows of the kernel are a loop whose
 * bounds leave out what lies above and below the image, its columns are unrolled. Columns outside the image are left
 * out at compile time: the first and the last tile of a row are variants of their own. Nothing is padded or copied.
 */
#ifndef NND_DEPTHWISE_H
#define NND_DEPTHWISE_H

#include "step.h"

#if NND_LANES == 8
#define NND_DEPTHWISE_TILE 8
#else
#define NND_DEPTHWISE_TILE 14
#endif
#define NND_DEPTHWISE_TAPS 31 /* columns of the widest kernel */

struct nnd_depthwise {
  struct nnd_axis y, x;
  struct nnd_end end; /* no residual */
  nnd_size ring; /* rows that the input is kept in, row y at y % ring; 0: the whole input lies there */
};

/* True where some output of a tile reads the pixel `at` behind the tile's first. */
NND_INLINE int nnd_is_read(struct nnd_axis x, nnd_size at, nnd_size pixels) {
  for (nnd_size kx = 0; kx < x.kernel; kx++) {
    const nnd_size ahead = at - kx * x.dilation;
    if (ahead >= 0 && ahead % x.stride == 0 && ahead / x.stride < pixels) return 1;
  }
  return 0;
}

/* `pixels` outputs from `column` on. `in` is the plane, `top` the row that tap 0 reads; with `edge` the tile may touch
 * the left or the right edge, and `column` should be a compile-time constant. */
NND_INLINE void nnd_depthwise_tile(struct nnd_depthwise s, int pixels, nnd_size column, int edge, nnd_size top,
                                   const nnd_elem *in, const float *weights, vf bias, vf number, nnd_elem *out) {
  vf sums[NND_DEPTHWISE_TILE];
  NND_UNROLL for (int p = 0; p < pixels; p++) sums[p] = bias;
  const nnd_size first = column * s.x.stride - s.x.pad;
  const nnd_size span = (pixels - 1) * s.x.stride + (s.x.kernel - 1) * s.x.dilation + 1;
  const nnd_size end = nnd_tap_end(s.y, top);
  for (nnd_size ky = nnd_tap_begin(s.y, top); ky < end; ky++) {
    const nnd_size y = top + ky * s.y.dilation;
    const nnd_elem *row = in + ((s.ring ? y % s.ring : y) * s.x.size + first) * NND_LANES;
    vf w[NND_DEPTHWISE_TAPS];
    NND_UNROLL for (int kx = 0; kx < s.x.kernel; kx++) w[kx] = nnd_load(weights + (ky * s.x.kernel + kx) * NND_LANES);
    NND_UNROLL for (nnd_size at = 0; at < span; at++) { /* each pixel is loaded once */
      if (edge && (first + at < 0 || first + at >= s.x.size)) continue;
      if (!nnd_is_read(s.x, at, pixels)) continue;
      const vf x = nnd_read(row + at * NND_LANES);
      NND_UNROLL for (int kx = 0; kx < s.x.kernel; kx++) {
        const nnd_size ahead = at - kx * s.x.dilation;
        if (ahead >= 0 && ahead % s.x.stride == 0 && ahead / s.x.stride < pixels) sums[ahead / s.x.stride] += w[kx] * x;
      }
    }
  }
  NND_UNROLL for (int p = 0; p < pixels; p++)
    nnd_write(out + p * NND_LANES, nnd_end_sum(&s.end, sums[p], 0, 0, number));
}

/* True where only the first and the last of `tiles` tiles touch an edge. */
NND_INLINE int nnd_edges_are_outer(struct nnd_axis x, nnd_size tiles, nnd_size pixels) {
  const nnd_size second = pixels * x.stride - x.pad;
  const nnd_size before_last = ((tiles - 1) * pixels - 1) * x.stride - x.pad + (x.kernel - 1) * x.dilation;
  return tiles < 3 || (second >= 0 && before_last < x.size);
}

/* One output row of one channel block: `in` is the block's plane, `row` the output row. */
NND_INLINE void nnd_depthwise_row(struct nnd_depthwise s, nnd_size row, const nnd_elem *in, const float *weights,
                                  vf bias, vf number, nnd_elem *out) {
  const nnd_size top = row * s.y.stride - s.y.pad;
  const nnd_size pixels = nnd_ceil_div(s.x.out_size, nnd_ceil_div(s.x.out_size, NND_DEPTHWISE_TILE));
  const nnd_size tiles = nnd_ceil_div(s.x.out_size, pixels);
  if (nnd_edges_are_outer(s.x, tiles, pixels)) {
    const nnd_size last = (tiles - 1) * pixels;
    nnd_depthwise_tile(s, (int)(tiles == 1 ? s.x.out_size : pixels), 0, 1, top, in, weights, bias, number,
                       out);
    for (nnd_size column = pixels; column < last; column += pixels)
      nnd_depthwise_tile(s, (int)pixels, column, 0, top, in, weights, bias, number,
                         out + column * NND_LANES);
    if (tiles > 1)
      nnd_depthwise_tile(s, (int)(s.x.out_size - last), last, 1, top, in, weights, bias, number,
                         out + last * NND_LANES);
  } else { /* padding wider than a tile */
    for (nnd_size column = 0; column < s.x.out_size; column++)
      nnd_depthwise_tile(s, 1, column, 1, top, in, weights, bias, number, out + column * NND_LANES);
  }
}

/* Output columns [begin, end) of one row, for windows that are narrower than the image. */
NND_INLINE void nnd_depthwise_columns(struct nnd_depthwise s, nnd_size row, nnd_size begin, nnd_size end,
                                      const nnd_elem *in, const float *weights, vf bias, vf number, nnd_elem *out) {
  const nnd_size top = row * s.y.stride - s.y.pad, tile = NND_DEPTHWISE_TILE / 2;
  nnd_size column = begin;
  while (column < end) {
    const nnd_size at = column * s.x.stride - s.x.pad;
    const nnd_size reach = at + (tile - 1) * s.x.stride + (s.x.kernel - 1) * s.x.dilation;
    if (at >= 0 && reach < s.x.size && column + tile <= end) {
      nnd_depthwise_tile(s, (int)tile, column, 0, top, in, weights, bias, number, out);
      column += tile, out += tile * NND_LANES;
    } else {
      nnd_depthwise_tile(s, 1, column, 1, top, in, weights, bias, number, out);
      column += 1, out += NND_LANES;
    }
  }
}

/* One step by itself: workers share the output rows of all channel blocks of all images. */
struct nnd_depthwise_step {
  struct nnd_axis y, x;
  nnd_size channels, images;
  struct nnd_end end;
};

/* Weights: [blocks of channels][kernel rows][kernel columns][c]. */
NND_INLINE void nnd_depthwise_step(const struct nnd_depthwise_step *t, nnd_elem *out, const nnd_elem *in,
                                   const float *weights, const float *bias, const float *numbers,
                                   struct nnd_part part) {
  const struct nnd_depthwise s = {t->y, t->x, t->end, 0};
  const nnd_size blocks = nnd_blocks(t->channels), taps = t->y.kernel * t->x.kernel;
  nnd_size first, last;
  nnd_share(t->images * blocks * t->y.out_size, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size plane = unit / t->y.out_size, row = unit % t->y.out_size, block = plane % blocks;
    nnd_depthwise_row(s, row, in + plane * t->y.size * t->x.size * NND_LANES, weights + block * taps * NND_LANES,
                      nnd_load(bias + block * NND_LANES), nnd_end_number(&s.end, numbers, block),
                      out + unit * t->x.out_size * NND_LANES);
  }
}

#endif
