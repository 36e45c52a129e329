/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions with groups of more than one channel, and transposed ones, on NCHWc.
 *
 * Workers share output rows of all channel blocks of all images.
 */
#ifndef NND_GROUPED_H
#define NND_GROUPED_H

#include "pointwise.h"

struct nnd_grouped_step {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images, groups;
  struct nnd_end end;
};

/* The place of channel `channel` of pixel 0 of an image in NCHWc. */
NND_INLINE nnd_size nnd_place(nnd_size image, nnd_size channel, nnd_size channels, nnd_size pixels) {
  return (image * nnd_blocks(channels) + channel / NND_LANES) * pixels * NND_LANES + channel % NND_LANES;
}

/* Weights: [O][kernel rows][kernel columns][in_channels / groups] of O padded to whole blocks. */
NND_INLINE void nnd_grouped_step(const struct nnd_grouped_step *t, nnd_elem *out, const nnd_elem *in,
                                 const float *weights, const float *bias, const nnd_elem *residual,
                                 const float *numbers, struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->out_channels), pixels = t->y.size * t->x.size;
  const nnd_size group_in = t->in_channels / t->groups, group_out = t->out_channels / t->groups;
  nnd_size begin, finish;
  nnd_share(t->images * blocks * t->y.out_size, part, &begin, &finish);
  for (nnd_size unit = begin; unit < finish; unit++) {
    const nnd_size plane = unit / t->y.out_size, y = unit % t->y.out_size, image = plane / blocks;
    const nnd_size block = plane % blocks;
    for (nnd_size x = 0; x < t->x.out_size; x++) {
      vf sum = nnd_load(bias + block * NND_LANES);
      for (nnd_size lane = 0; lane < NND_LANES; lane++) {
        const nnd_size o = block * NND_LANES + lane;
        if (o >= t->out_channels) break;
        const nnd_size first = o / group_out * group_in;
        for (nnd_size ky = 0; ky < t->y.kernel; ky++)
          for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
            const nnd_size row = y * t->y.stride - t->y.pad + ky * t->y.dilation;
            const nnd_size column = x * t->x.stride - t->x.pad + kx * t->x.dilation;
            if (row < 0 || row >= t->y.size || column < 0 || column >= t->x.size) continue;
            const float *w = weights + ((o * t->y.kernel + ky) * t->x.kernel + kx) * group_in;
            for (nnd_size c = 0; c < group_in; c++)
              sum[lane] += w[c] * nnd_to_float(in[nnd_place(image, first + c, t->in_channels, pixels) +
                                                  (row * t->x.size + column) * NND_LANES]);
          }
      }
      const nnd_size at = (unit * t->x.out_size + x) * NND_LANES;
      nnd_write(out + at, nnd_end_sum(&t->end, sum, residual + at, nnd_end_number(&t->end, numbers, block)));
    }
  }
}

/* Transposed. Output columns of one phase, those equal modulo the stride, read neighbouring input columns: each tap of
 * a phase is a pointwise convolution. Weights: panels [kernel rows][kernel columns][in_channels][vectors][c]. `y` and
 * `x` are axes of the output's window: size of the input, out_size of the output. */

/* Where output column x + `phase`, x a multiple of the stride, reads tap `kx`: x / stride plus this. 0 is returned where
 * it is not read. */
NND_INLINE int nnd_transposed_reach(struct nnd_axis axis, nnd_size phase, nnd_size k, nnd_size *reach) {
  const nnd_size distance = phase + axis.pad - k * axis.dilation;
  *reach = distance / axis.stride;
  return distance % axis.stride == 0;
}

/* `pixels` outputs of a phase from number `first` on; with `edge` it is one, which may lack some taps. */
NND_INLINE void nnd_transposed_tile(const struct nnd_grouped_step *t, int pixels, int vectors, nnd_size row,
                                    nnd_size phase, nnd_size first, int edge, struct nnd_pointwise_data d) {
  vf sums[NND_ACCUMULATORS];
  const struct nnd_tile tile = {pixels, vectors, 0};
  const nnd_size plane = t->y.size * t->x.size * NND_LANES, out_plane = t->y.out_size * t->x.out_size * NND_LANES;
  const nnd_size full = t->in_channels / NND_LANES, rest = t->in_channels % NND_LANES;
  nnd_size above, left;
  NND_UNROLL for (int p = 0; p < pixels; p++)
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] = nnd_load(d.bias + v * NND_LANES);
  for (nnd_size ky = 0; ky < t->y.kernel; ky++) {
    if (!nnd_transposed_reach(t->y, row, ky, &above) || above < 0 || above >= t->y.size) continue;
    for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
      if (!nnd_transposed_reach(t->x, phase, kx, &left)) continue;
      if (edge && (first + left < 0 || first + left >= t->x.size)) continue;
      const nnd_elem *in = d.in + (above * t->x.size + first + left) * NND_LANES;
      const nnd_weight *w = d.weights + (ky * t->x.kernel + kx) * nnd_grouped_channels(t->in_channels) * vectors * NND_LANES;
      NND_NO_UNROLL for (nnd_size block = 0; block < full; block++)
        nnd_pointwise_block(tile, sums, NND_LANES, in + block * plane,
                            w + block * NND_LANES * vectors * NND_LANES, nnd_no_prefetch);
      if (rest)
        nnd_pointwise_block(tile, sums, rest, in + full * plane, w + full * NND_LANES * vectors * NND_LANES,
                            nnd_no_prefetch);
    }
  }
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf number = nnd_end_number(&t->end, d.numbers, v);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const nnd_size at = v * out_plane + (phase + (first + p) * t->x.stride) * NND_LANES;
      nnd_write(d.out + at, nnd_end_sum(&t->end, sums[p * vectors + v], d.residual + at, number));
    }
  }
}

/* One phase of an output row; `d.out` and `d.residual` at the row. The last tile may overlap the one before. */
NND_INLINE void nnd_transposed_phase(const struct nnd_grouped_step *t, int vectors, nnd_size row, nnd_size phase,
                                     struct nnd_pointwise_data d) {
  const nnd_size tiles = nnd_ceil_div(t->x.size, NND_ACCUMULATORS / vectors), tile = nnd_ceil_div(t->x.size, tiles);
  const nnd_size count = nnd_ceil_div(t->x.out_size - phase, t->x.stride);
  nnd_size begin = 0, end = nnd_min(count, t->x.size), left;
  for (nnd_size kx = 0; kx < t->x.kernel; kx++) { /* the outputs that all taps reach */
    if (!nnd_transposed_reach(t->x, phase, kx, &left)) continue;
    begin = nnd_max(begin, -left);
    end = nnd_min(end, t->x.size - left);
  }
  if (end - begin < tile) begin = end = 0;
  for (nnd_size first = begin; first < end; first += tile)
    nnd_transposed_tile(t, (int)tile, vectors, row, phase, nnd_min(first, end - tile), 0, d);
  for (nnd_size first = 0; first < count; first++)
    if (first < begin || first >= end) nnd_transposed_tile(t, 1, vectors, row, phase, first, 1, d);
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
        if (panel < full) nnd_transposed_phase(t, NND_PANEL, row, phase, nnd_pointwise_from(s, d, panel));
        else nnd_transposed_phase(t, nnd_last_panel(blocks), row, phase, nnd_pointwise_from(s, d, full));
      }
  }
}

#endif
