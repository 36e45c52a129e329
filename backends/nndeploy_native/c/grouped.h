/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions with groups of more than one channel, and transposed ones, on NCHWc.
 */
#ifndef NND_GROUPED_H
#define NND_GROUPED_H

#include "convolution.h"

struct nnd_grouped_step {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images, groups;
  nnd_size span; /* input channels, whole blocks, that hold all groups of any output block */
  struct nnd_end end;
};

/* Each output block is a dense convolution of the `span` channels that its groups are among; what is of other groups
 * has weights of zero, so that an infinity there makes a NaN. Weights: [blocks of O][kernel rows][kernel
 * columns][span][c].
 * Workers share output rows of all images. */
NND_INLINE void nnd_grouped_step(const struct nnd_grouped_step *t, nnd_elem *out, const nnd_elem *in,
                                 const nnd_weight *weights, const float *bias, const nnd_elem *residual,
                                 const float *numbers, struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->out_channels), in_blocks = nnd_blocks(t->in_channels);
  const nnd_size in_plane = t->y.size * t->x.size * NND_LANES, out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size last_from = in_blocks - t->span / NND_LANES, taps = t->y.kernel * t->x.kernel;
  const struct nnd_convolution_step whole = {.y = t->y, .x = t->x, .in_channels = t->span, .out_channels = NND_LANES,
                                             .images = t->images, .end = t->end};
  struct nnd_convolution_step cut = whole; /* the last channels: their block is not full */
  cut.in_channels = t->in_channels - last_from * NND_LANES;
  nnd_size unit, finish;
  nnd_share(t->images * t->y.out_size, part, &unit, &finish);
  for (; unit < finish; unit++) {
    const nnd_size image = unit / t->y.out_size, row = unit % t->y.out_size, top = row * t->y.stride - t->y.pad;
    for (nnd_size block = 0; block < blocks; block++) {
      const nnd_size group = block * NND_LANES / (t->out_channels / t->groups);
      const nnd_size from = nnd_min(group * (t->in_channels / t->groups) / NND_LANES, last_from);
      const nnd_size at = (image * blocks + block) * out_plane + row * t->x.out_size * NND_LANES;
      const struct nnd_convolution_data d = {
          .in = in + (image * in_blocks + from) * in_plane, .weights = weights + block * taps * t->span * NND_LANES,
          .bias = bias + block * NND_LANES, .numbers = t->end.number ? numbers + block * NND_LANES : 0,
          .residual = t->end.residual ? residual + at : 0, .out = out + at};
      if (cut.in_channels == t->span || from < last_from) nnd_convolution_row(&whole, 0, 1, 0, top, d);
      else nnd_convolution_row(&cut, 0, 1, 0, top, d);
    }
  }
}

/* Transposed. Output columns of one phase, those equal modulo the stride, read neighbouring input columns: each tap of
 * a phase is a pointwise convolution. Weights: panels [kernel rows][kernel columns][in_channels][vectors][c]. `y` and
 * `x` are axes of the output's window: size of the input, out_size of the output. */

/* Where output column x + `phase`, x a multiple of the stride, reads tap `kx`: x / stride plus this. 0 is returned
 * where it is not read. */
NND_INLINE int nnd_transposed_reach(struct nnd_axis axis, nnd_size phase, nnd_size k, nnd_size *reach) {
  const nnd_size distance = phase + axis.pad - k * axis.dilation;
  *reach = distance / axis.stride;
  return distance % axis.stride == 0;
}

/* A tile of the outputs of a phase from number `first` on; with `edge` it is one, which may lack some taps. */
NND_INLINE void nnd_transposed_tile(const struct nnd_grouped_step *t, struct nnd_tile tile, nnd_size row,
                                    nnd_size phase, nnd_size first, int edge, struct nnd_pointwise_data d) {
  vf sums[NND_ACCUMULATORS], spread[2 * NND_ACCUMULATORS];
  const nnd_size plane = t->y.size * t->x.size * NND_LANES, out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size full = t->in_channels / NND_LANES, rest = t->in_channels % NND_LANES;
  const nnd_size of_block = NND_LANES * tile.vectors * NND_LANES;
  const nnd_size of_tap = nnd_grouped_channels(t->in_channels) * tile.vectors * NND_LANES;
  nnd_size above, left;
  nnd_first_sums(tile, sums, 1, d.bias, 0, 0);
  for (nnd_size ky = 0; ky < t->y.kernel; ky++) {
    if (!nnd_transposed_reach(t->y, row, ky, &above) || above < 0 || above >= t->y.size) continue;
    for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
      if (!nnd_transposed_reach(t->x, phase, kx, &left)) continue;
      if (edge && (first + left < 0 || first + left >= t->x.size)) continue;
      const nnd_elem *in = d.in + (above * t->x.size + first + left) * NND_LANES;
      const nnd_weight *w = d.weights + (ky * t->x.kernel + kx) * of_tap;
      NND_NO_UNROLL for (nnd_size block = 0; block < full; block++)
        nnd_pointwise_block(tile, sums, NND_LANES, nnd_in_blocks, in + block * plane, w + block * of_block,
                            nnd_no_prefetch);
      if (rest)
        nnd_pointwise_block(tile, sums, rest, nnd_in_blocks, in + full * plane, w + full * of_block, nnd_no_prefetch);
    }
  }
  nnd_spread_halves(tile, sums, spread);
  NND_UNROLL for (int v = 0; v < tile.vectors; v++) {
    const vf number = nnd_end_number(&t->end, d.numbers, v);
    NND_UNROLL for (int p = 0; p < tile.pixels; p++) {
      const nnd_size at = v * out_plane + (phase + (first + p) * t->x.stride) * NND_LANES;
      nnd_write(d.out + at, nnd_end_sum(&t->end, spread[p * tile.vectors + v], d.residual, at, number));
    }
  }
}

/* One phase of an output row; `d.out` and `d.residual` at the row. The last tile may overlap the one before. */
NND_INLINE void nnd_transposed_phase(const struct nnd_grouped_step *t, int vectors, int half, nnd_size row,
                                     nnd_size phase, struct nnd_pointwise_data d) {
#ifdef NND_ANY_SHAPE
  const nnd_size tile = nnd_tile_pixels(vectors, half);
#else
  const nnd_size tiles = nnd_ceil_div(t->x.size, nnd_tile_pixels(vectors, half)), tile = nnd_ceil_div(t->x.size, tiles);
#endif
  const struct nnd_tile whole = {(int)tile, vectors, half}, one = {1, vectors, half};
  const nnd_size count = nnd_ceil_div(t->x.out_size - phase, t->x.stride);
  nnd_size begin = 0, end = nnd_min(count, t->x.size), left;
  for (nnd_size kx = 0; kx < t->x.kernel; kx++) { /* the outputs that all taps reach */
    if (!nnd_transposed_reach(t->x, phase, kx, &left)) continue;
    begin = nnd_max(begin, -left);
    end = nnd_min(end, t->x.size - left);
  }
  if (end - begin < tile) begin = end = 0;
  for (nnd_size first = begin; first < end; first += tile)
    nnd_transposed_tile(t, whole, row, phase, nnd_min(first, end - tile), 0, d);
  for (nnd_size first = 0; first < count; first++)
    if (first < begin || first >= end) nnd_transposed_tile(t, one, row, phase, first, 1, d);
}

/* Workers share output rows of all images. */
NND_INLINE void nnd_transposed_step(const struct nnd_grouped_step *t, nnd_elem *out, const nnd_elem *in,
                                    const nnd_weight *weights, const float *bias, const nnd_elem *residual,
                                    const float *numbers, struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->out_channels), full = nnd_full_panels(blocks);
  const nnd_size out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const struct nnd_pointwise s = {.out_channels = t->out_channels, .out_plane = out_plane, .end = t->end,
                                  .panel_channels = t->y.kernel * t->x.kernel * nnd_grouped_channels(t->in_channels)};
  nnd_size begin, finish;
  nnd_share(t->images * t->y.out_size, part, &begin, &finish);
  for (nnd_size unit = begin; unit < finish; unit++) {
    const nnd_size image = unit / t->y.out_size, row = unit % t->y.out_size;
    const nnd_size at = image * blocks * out_plane + row * t->x.out_size * NND_LANES;
    const struct nnd_pointwise_data d = {
        in + image * nnd_blocks(t->in_channels) * t->y.size * t->x.size * NND_LANES, weights, bias, numbers,
        t->end.residual ? residual + at : 0, out + at};
    for (nnd_size panel = 0; panel <= full; panel++)
      for (nnd_size phase = 0; phase < t->x.stride; phase++) {
        if (panel < full) nnd_transposed_phase(t, NND_PANEL, 0, row, phase, nnd_pointwise_from(s, d, panel));
        else
          nnd_transposed_phase(t, nnd_last_panel(blocks), nnd_has_half(t->out_channels), row, phase,
                               nnd_pointwise_from(s, d, full));
      }
  }
}

#endif
