/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense k x k convolution, from NCHW (the first of a network: no conversion before it) or NCHWc, to NCHWc.
 *
 * The micro-kernel is the pointwise one, pixels of one output row x vectors of output channels; rows of the kernel
 * outside the image are left out by the bounds of a loop, columns by variants of the first and the last tile.
 */
#ifndef NND_CONVOLUTION_H
#define NND_CONVOLUTION_H

#include "depthwise.h"
#include "pointwise.h"

/* Workers share output rows of all images; tiles of them where there are few. */
struct nnd_convolution_step {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images;
  int stream;
  int panels_outside; /* the weights do not fit the second cache: a panel stays for all rows of a worker */
  nnd_size out_plane; /* elements from one channel block to the next, 0 where they follow each other */
  struct nnd_end end;
};

#define NND_ROW_SHARES 64  /* into which a row is cut where there are few */
#define NND_FEW_ROWS 8 /* fewer would leave workers idle, and parts of a paced step empty */

/* The edges that a tile touches: the left one, the right one by `over` columns. */
struct nnd_edges {
  int left;
  nnd_size over;
};

/* Pixel p of a tile reads column NND_AT(p). */
#define NND_AT(p) (first + (p) * t->x.stride + kx * t->x.dilation)
#define NND_BEHIND(p) ((tile.pixels - 1 - (p)) * t->x.stride + (t->x.kernel - 1 - kx) * t->x.dilation)
#define NND_INSIDE(p) ((!edges.left || NND_AT(p) >= 0) && NND_BEHIND(p) >= edges.over)

/* A loop over many columns of a kernel stays a loop: unrolled for each pixel it is megabytes of code. */
#define NND_UNROLLED_TAPS 15
#define NND_FOR_TAPS(kx, DO)                                                               \
  {                                                                                        \
    if (t->x.kernel <= NND_UNROLLED_TAPS) NND_UNROLL for (int kx = 0; kx < t->x.kernel; kx++) DO; \
    else NND_NO_UNROLL for (int kx = 0; kx < t->x.kernel; kx++) DO;                        \
  }

/* Multiply-adds of column `kx` of a row of the kernel from NCHW: `plane` floats from channel to channel. */
NND_INLINE void nnd_planar_tap(const struct nnd_convolution_step *t, struct nnd_tile tile, vf *sums, nnd_size first,
                               struct nnd_edges edges, int kx, const float *row, const float *weights) {
  const nnd_size plane = t->y.size * t->x.size;
  const float *of_column = weights + kx * t->in_channels * tile.vectors * NND_LANES;
  NND_NO_UNROLL for (nnd_size i = 0; i < t->in_channels; i++) {
    vf w[4];
    NND_UNROLL for (int v = 0; v < tile.vectors; v++)
      w[v] = nnd_load(of_column + (i * tile.vectors + v) * NND_LANES);
    NND_UNROLL for (int p = 0; p < tile.pixels; p++) {
      if (!NND_INSIDE(p)) continue;
      const float x = row[i * plane + NND_AT(p)];
      NND_UNROLL for (int v = 0; v < tile.vectors; v++) sums[p * tile.vectors + v] += w[v] * x;
    }
  }
}

NND_INLINE void nnd_planar_taps(const struct nnd_convolution_step *t, struct nnd_tile tile, vf *sums, nnd_size first,
                                struct nnd_edges edges, const float *row, const float *weights) {
  NND_FOR_TAPS(kx, nnd_planar_tap(t, tile, sums, first, edges, kx, row, weights))
}

/* The same of `count` channels of one block of NCHWc. */
NND_INLINE void nnd_blocked_tap(const struct nnd_convolution_step *t, struct nnd_tile tile, vf *sums, nnd_size first,
                                struct nnd_edges edges, int kx, const nnd_elem *row, nnd_size count,
                                const nnd_weight *weights) {
  const vi upper = tile.half ? nnd_upper_lanes() : (vi){0};
  const nnd_weight *of_column = weights + kx * nnd_grouped_channels(t->in_channels) * tile.vectors * NND_LANES;
  NND_NO_UNROLL for (nnd_size i = 0; i < count; i += NND_GROUP) {
    nnd_weights w[4];
    NND_UNROLL for (int v = 0; v < tile.vectors; v++)
      w[v] = nnd_load_weights(of_column + (i * tile.vectors + v * NND_GROUP) * NND_LANES);
#define NND_X(p) nnd_broadcast(row + NND_AT(p) * NND_LANES + i, i + 1 < count)
    NND_MULTIPLY_TILE(tile, sums, w, upper, NND_INSIDE, NND_X)
#undef NND_X
  }
}

NND_INLINE void nnd_blocked_taps(const struct nnd_convolution_step *t, struct nnd_tile tile, vf *sums, nnd_size first,
                                 struct nnd_edges edges, const nnd_elem *row, nnd_size count,
                                 const nnd_weight *weights) {
  NND_FOR_TAPS(kx, nnd_blocked_tap(t, tile, sums, first, edges, kx, row, count, weights))
}

#define NND_FETCH_ROWS 2

/* Fetches the columns of a tile of NCHW into the first cache, from the rows that output rows add NND_FETCH_ROWS further
 * down: a tile reads few floats of many rows, which the processor does not foresee. */
NND_INLINE void nnd_planar_fetch(const struct nnd_convolution_step *t, int pixels, nnd_size first, nnd_size top,
                                 const float *in) {
  const nnd_size behind = top + (NND_FETCH_ROWS - 1) * t->y.stride + (t->y.kernel - 1) * t->y.dilation + 1;
  const nnd_size lines = nnd_ceil_div(((pixels - 1) * t->x.stride + 1) * sizeof(float), NND_LINE_BYTES);
  for (nnd_size i = 0; i < t->in_channels; i++) {
    for (nnd_size row = behind; row < behind + t->y.stride; row++) {
      const char *from = (const char *)(in + (i * t->y.size + row) * t->x.size + first);
      NND_UNROLL for (nnd_size line = 0; line < lines; line++)
        __builtin_prefetch(from + line * NND_LINE_BYTES, 0, 3);
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

NND_INLINE void nnd_convolution_tile(const struct nnd_convolution_step *t, int planar, struct nnd_tile tile,
                                     nnd_size column, struct nnd_edges edges, nnd_size top,
                                     struct nnd_convolution_data d) {
  vf sums[NND_ACCUMULATORS], spread[2 * NND_ACCUMULATORS];
  const nnd_size plane = t->y.size * t->x.size;
  const nnd_size out_plane = t->out_plane ? t->out_plane : t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size first = column * t->x.stride - t->x.pad, end = nnd_tap_end(t->y, top);
  if (planar) nnd_planar_fetch(t, tile.pixels, first, top, (const float *)d.in);
  nnd_first_sums(tile, sums, 1, d.bias, 0, 0);
  for (nnd_size ky = nnd_tap_begin(t->y, top); ky < end; ky++) {
    const nnd_size y = top + ky * t->y.dilation;
    if (planar) {
      nnd_planar_taps(t, tile, sums, first, edges, (const float *)d.in + y * t->x.size,
                      (const float *)d.weights + ky * t->x.kernel * t->in_channels * tile.vectors * NND_LANES);
      continue;
    }
    const nnd_size full = t->in_channels / NND_LANES, rest = t->in_channels % NND_LANES;
    const nnd_size of_block = NND_LANES * tile.vectors * NND_LANES;
    const nnd_weight *weights = (const nnd_weight *)d.weights +
                                ky * t->x.kernel * nnd_grouped_channels(t->in_channels) * tile.vectors * NND_LANES;
    const nnd_elem *row = (const nnd_elem *)d.in + y * t->x.size * NND_LANES;
    NND_NO_UNROLL for (nnd_size block = 0; block < full; block++)
      nnd_blocked_taps(t, tile, sums, first, edges, row + block * plane * NND_LANES, NND_LANES,
                       weights + block * of_block);
    if (rest)
      nnd_blocked_taps(t, tile, sums, first, edges, row + full * plane * NND_LANES, rest, weights + full * of_block);
  }
  nnd_spread_halves(tile, sums, spread);
  if (t->end.residual) d.residual += column * NND_LANES;
  nnd_store_tile(&t->end, spread, tile.pixels, tile.vectors, out_plane, t->stream, d.residual, d.numbers,
                 d.out + column * NND_LANES);
}

#undef NND_INSIDE
#undef NND_BEHIND
#undef NND_AT

/* Shares `from` to `to` of one output row of one panel; `d.out` and `d.residual` at the row. */
NND_INLINE void nnd_convolution_tiles(const struct nnd_convolution_step *t, int planar, int vectors, int half,
                                      nnd_size top, nnd_size from, nnd_size to, struct nnd_convolution_data d) {
  const struct nnd_row_tiles tiles = nnd_row_tiles(t->x, nnd_tile_pixels(vectors, half));
  from = from * tiles.count / NND_ROW_SHARES, to = to * tiles.count / NND_ROW_SHARES;
#ifdef NND_ANY_SHAPE
  for (nnd_size tile = from; tile < to; tile++) {
    const nnd_size column = nnd_row_tile_begin(t->x, tiles, tile);
#define NND_DO(pixels, left, over)                                                                       \
  nnd_convolution_tile(t, planar, (struct nnd_tile){pixels, vectors, half}, (pixels) > 1 && (left) ? 0 : column, \
                       (struct nnd_edges){left, over}, top, d)
    NND_ROW_TILE(t->x, tiles, tile, nnd_tile_pixels(vectors, half), column, NND_DO)
#undef NND_DO
  }
#else
  const nnd_size last = (tiles.count - 1) * tiles.pixels, end = t->x.out_size - 1;
  const struct nnd_tile whole = {(int)nnd_min(tiles.pixels, t->x.out_size), vectors, half};
  const struct nnd_tile rest = {(int)(t->x.out_size - last), vectors, half};
  if (from == 0 && to > 0)
    nnd_convolution_tile(t, planar, whole, 0, (struct nnd_edges){1, nnd_overhang(t->x, whole.pixels - 1)}, top, d);
  for (nnd_size column = nnd_max(1, from) * tiles.pixels; column < nnd_min(to * tiles.pixels, last);
       column += tiles.pixels) {
    const int single = tiles.pixels == 1;
    const struct nnd_edges edges = {single, single ? nnd_overhang(t->x, column) : 0};
    nnd_convolution_tile(t, planar, whole, column, edges, top, d);
  }
  if (tiles.count > 1 && from < to && to == tiles.count)
    nnd_convolution_tile(t, planar, rest, last, (struct nnd_edges){1, nnd_overhang(t->x, end)}, top, d);
#endif
}

NND_INLINE void nnd_convolution_row(const struct nnd_convolution_step *t, int planar, int vectors, int half,
                                    nnd_size top, struct nnd_convolution_data d) {
  nnd_convolution_tiles(t, planar, vectors, half, top, 0, NND_ROW_SHARES, d);
}

/* Row `unit` of all images, panel `panel`, shares `from` to `to` of it. */
NND_INLINE void nnd_convolution_unit(const struct nnd_convolution_step *t, int planar, nnd_size panel, nnd_size unit,
                                     nnd_size from, nnd_size to, struct nnd_convolution_data d) {
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
  const int half = !planar && nnd_has_half(t->out_channels); /* NCHW has no vectors to take two pixels from at once */
  if (panel < full) nnd_convolution_tiles(t, planar, NND_PANEL, 0, top, from, to, d);
  else nnd_convolution_tiles(t, planar, nnd_last_panel(blocks), half, top, from, to, d);
}

NND_INLINE void nnd_convolution_any(const struct nnd_convolution_step *t, int planar, struct nnd_convolution_data d,
                                    struct nnd_part part) {
  const nnd_size panels = nnd_full_panels(nnd_blocks(t->out_channels)) + 1, all = t->images * t->y.out_size;
  const int few = all < NND_FEW_ROWS;
  nnd_size first, last;
  nnd_share(few ? panels * all * NND_ROW_SHARES : all, part, &first, &last);
  const nnd_size rows = last - first, end = few ? rows : rows * panels;
  for (nnd_size i = 0; i < end;) { /* one call, for where it is not known which of these it is, each is much code */
    nnd_size panel, unit, from = 0, to = NND_ROW_SHARES;
    if (few) {
      const nnd_size at = (first + i) / NND_ROW_SHARES;
      from = (first + i) % NND_ROW_SHARES, to = nnd_min(NND_ROW_SHARES, from + end - i);
      panel = at / all, unit = at % all;
    } else if (t->panels_outside) {
      panel = i / rows, unit = first + i % rows;
    } else {
      panel = i % panels, unit = first + i / panels;
    }
    nnd_convolution_unit(t, planar, panel, unit, from, to, d);
    i += few ? to - from : 1;
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
