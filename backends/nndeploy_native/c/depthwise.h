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

#if NND_LANES == 8 || defined(NND_ANY_SHAPE)
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

/* `pixels` outputs from `column` on. `in` is the plane, `top` the row that tap 0 reads; with `left` the tile may touch
 * the left edge, and `column` should be a compile-time constant; it reaches `over` columns beyond the right one. */
NND_INLINE void nnd_depthwise_tile(struct nnd_depthwise s, int pixels, nnd_size column, int left, nnd_size over,
                                   nnd_size top, const nnd_elem *in, const float *weights, vf bias, vf number,
                                   nnd_elem *out) {
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
      if ((left && first + at < 0) || at >= span - over) continue;
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

/* The tiles of one output row, from left to right: `count` of `pixels` (at most `most`), the last may be smaller.
 * Where padding is wider than a tile they are single pixels, each of which may touch an edge. */
struct nnd_row_tiles {
  nnd_size count, pixels;
};

#ifdef NND_ANY_SHAPE
/* How many outputs reach beyond the left and the right edge. */
NND_INLINE nnd_size nnd_left_edge(struct nnd_axis x) { return nnd_ceil_div(nnd_max(0, x.pad), x.stride); }
NND_INLINE nnd_size nnd_right_edge(struct nnd_axis x) { return nnd_ceil_div(nnd_max(0, x.over), x.stride); }

/* Whether the first tile alone may touch the left edge, and the last one alone the right one. */
NND_INLINE int nnd_row_takes(struct nnd_axis x, nnd_size pixels) {
  const nnd_size left = nnd_left_edge(x), right = nnd_right_edge(x);
  return x.over <= NND_MOST_OVER && left + right <= pixels && x.out_size >= pixels + right &&
         (x.out_size == pixels || x.out_size >= pixels + left);
}

/* The same where sizes are not known here: `most` pixels, few, or one; tiles overlap so that none is smaller. */
NND_INLINE struct nnd_row_tiles nnd_row_tiles(struct nnd_axis x, nnd_size most) {
  const nnd_size pixels = nnd_row_takes(x, most) ? most : nnd_row_takes(x, NND_FEW_PIXELS) ? NND_FEW_PIXELS : 1;
  return (struct nnd_row_tiles){nnd_ceil_div(x.out_size, pixels), pixels};
}

NND_INLINE nnd_size nnd_row_tile_begin(struct nnd_axis x, struct nnd_row_tiles tiles, nnd_size tile) {
  if (tile + 1 >= tiles.count) return x.out_size - tiles.pixels;
  return tiles.pixels == 1 || tile == 0 ? tile * tiles.pixels
                                        : nnd_min(tile * tiles.pixels, x.out_size - tiles.pixels - nnd_right_edge(x));
}

/* DO(pixels, left, over): the tile in whichever of the sizes, with the edges that it touches. */
#define NND_ROW_TILE(x, tiles, tile, most, column, DO)                            \
  {                                                                               \
    const int is_last = (tile) + 1 == (tiles).count && (x).over > 0;              \
    if ((tiles).pixels == (most)) NND_ROW_TILE_OF(x, tile, most, is_last, DO)     \
    else if ((tiles).pixels == NND_FEW_PIXELS)                                    \
      NND_ROW_TILE_OF(x, tile, NND_FEW_PIXELS, is_last, DO)                       \
    else DO(1, 1, nnd_overhang(x, column));                                       \
  }
#define NND_ROW_TILE_OF(x, tile, pixels, is_last, DO)  \
  {                                                    \
    if ((tile) == 0) DO(pixels, 1, 0);                 \
    else if (!(is_last)) DO(pixels, 0, 0);             \
    else if ((x).over == 1) DO(pixels, 0, 1);          \
    else DO(pixels, 0, 2);                             \
  }
#else
NND_INLINE nnd_size nnd_row_tile_begin(struct nnd_axis x, struct nnd_row_tiles tiles, nnd_size tile) {
  return tile * tiles.pixels;
}

NND_INLINE struct nnd_row_tiles nnd_row_tiles(struct nnd_axis x, nnd_size most) {
  const nnd_size pixels = nnd_ceil_div(x.out_size, nnd_ceil_div(x.out_size, most));
  const struct nnd_row_tiles tiles = {nnd_ceil_div(x.out_size, pixels), pixels};
  return nnd_edges_are_outer(x, tiles.count, pixels) ? tiles : (struct nnd_row_tiles){x.out_size, 1};
}
#endif

/* Columns of the input that the tiles up to `tile` read. */
NND_INLINE nnd_size nnd_row_tile_reach(struct nnd_axis x, nnd_size tile) {
  const struct nnd_row_tiles tiles = nnd_row_tiles(x, NND_DEPTHWISE_TILE);
  const nnd_size last = nnd_min(x.out_size, nnd_row_tile_begin(x, tiles, tile) + tiles.pixels) - 1;
  return nnd_max(0, nnd_min(x.size, last * x.stride - x.pad + (x.kernel - 1) * x.dilation + 1));
}

/* Tile `tile` of output row `row` of one channel block: `in` is the block's plane, `out` the row. */
NND_INLINE void nnd_depthwise_row_tile(struct nnd_depthwise s, nnd_size tile, nnd_size row, const nnd_elem *in,
                                       const float *weights, vf bias, vf number, nnd_elem *out) {
  const struct nnd_row_tiles tiles = nnd_row_tiles(s.x, NND_DEPTHWISE_TILE);
  const nnd_size top = row * s.y.stride - s.y.pad;
  const nnd_size column = nnd_row_tile_begin(s.x, tiles, tile);
#ifdef NND_ANY_SHAPE
#define NND_DO(pixels, left, over)                                                                                  \
  nnd_depthwise_tile(s, pixels, (pixels) > 1 && (left) ? 0 : column, left, over, top, in, weights, bias, number, \
                     out + column * NND_LANES)
  NND_ROW_TILE(s.x, tiles, tile, NND_DEPTHWISE_TILE, column, NND_DO)
#undef NND_DO
#else
  const nnd_size last = (tiles.count - 1) * tiles.pixels;
  const int only = (int)nnd_min(tiles.pixels, s.x.out_size), rest = (int)(s.x.out_size - last);
  if (tile == 0)
    nnd_depthwise_tile(s, only, 0, 1, nnd_overhang(s.x, only - 1), top, in, weights, bias, number, out);
  else if (tile + 1 < tiles.count)
    nnd_depthwise_tile(s, (int)tiles.pixels, column, tiles.pixels == 1,
                       tiles.pixels == 1 ? nnd_overhang(s.x, column) : 0, top, in, weights, bias, number,
                       out + column * NND_LANES);
  else
    nnd_depthwise_tile(s, rest, last, 1, nnd_overhang(s.x, s.x.out_size - 1), top, in, weights, bias, number,
                       out + last * NND_LANES);
#endif
}

/* Tile `tile` of `rows` output rows from `row` on of `vectors` channel blocks from `block` on. `in` and `out` are those
 * of the first block: planes of `in` lie `in_plane` elements apart, of `out` the rows follow each other. */
NND_INLINE void nnd_depthwise_tile_rows(struct nnd_depthwise s, int vectors, nnd_size block, nnd_size tile,
                                        nnd_size rows, nnd_size row, const float *weights, const float *bias,
                                        const float *numbers, nnd_size in_plane, const nnd_elem *in, nnd_elem *out) {
  const nnd_size taps = s.y.kernel * s.x.kernel;
  NND_NO_UNROLL for (int v = 0; v < vectors; v++) {
    const float *of_block = weights + (block + v) * taps * NND_LANES;
    const vf first = nnd_load(bias + (block + v) * NND_LANES), number = nnd_end_number(&s.end, numbers, block + v);
    for (nnd_size r = 0; r < rows; r++)
      nnd_depthwise_row_tile(s, tile, row + r, in + v * in_plane, of_block, first, number,
                             out + (v * rows + r) * s.x.out_size * NND_LANES);
  }
}

/* One output row of one channel block. */
NND_INLINE void nnd_depthwise_row(struct nnd_depthwise s, nnd_size row, const nnd_elem *in, const float *weights,
                                  vf bias, vf number, nnd_elem *out) {
  const nnd_size count = nnd_row_tiles(s.x, NND_DEPTHWISE_TILE).count;
#ifdef NND_ANY_SHAPE
  for (nnd_size tile = 0; tile < count; tile++) nnd_depthwise_row_tile(s, tile, row, in, weights, bias, number, out);
#else
  nnd_depthwise_row_tile(s, 0, row, in, weights, bias, number, out);
  for (nnd_size tile = 1; tile + 1 < count; tile++)
    nnd_depthwise_row_tile(s, tile, row, in, weights, bias, number, out);
  if (count > 1) nnd_depthwise_row_tile(s, count - 1, row, in, weights, bias, number, out);
#endif
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
      nnd_depthwise_tile(s, (int)tile, column, 0, 0, top, in, weights, bias, number, out);
      column += tile, out += tile * NND_LANES;
    } else {
      nnd_depthwise_tile(s, 1, column, 1, nnd_overhang(s.x, column), top, in, weights, bias, number, out);
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
