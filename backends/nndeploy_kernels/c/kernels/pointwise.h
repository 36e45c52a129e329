/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise (1 x 1) convolution on NCHWc: out[o][p] = end(bias[o] + sum_i weights[o][i] * in[i][p], residual[o][p]).
 *
 * Order: panel of weights by panel (a panel stays close), pixel tile by pixel tile inside. While a tile is computed,
 * its share of the next panel of weights and of the next window's input is prefetched.
 */
#ifndef NND_POINTWISE_H
#define NND_POINTWISE_H

#include "kernels/bf16_tiles.h"
#include "kernels/pixel_thirds.h"
#include "kernels/tile.h"

struct nnd_pointwise {
  nnd_size in_channels, out_channels;
  nnd_size panel_channels;      /* input channels of a whole panel: more than in_channels where sums are in parts */
  nnd_size channel;             /* where in its panel a part begins */
  nnd_size in_plane, out_plane; /* elements from one channel block to the next */
  struct nnd_end end;
  int stream;           /* store past the caches */
  int prefetch_weights; /* the panels do not fit the second cache */
  int by_tiles;         /* of AMX; pixels are packed at `packed_at` of scratch then */
  nnd_size packed_at;
};

struct nnd_pointwise_data {
  const nnd_elem *in;
  const nnd_weight *weights;
  const float *bias, *numbers; /* [blocks of out_channels][c] */
  const nnd_elem *residual;    /* laid out like the output */
  nnd_elem *out;
  nnd_elem *packed; /* room for the pixels, which tiles of AMX multiply then; null: they do not */
};

/* Pixels packed for the tiles: as bfloat16, or in thirds. */
NND_INLINE nnd_elem *nnd_pointwise_packed(const struct nnd_pointwise *s, char *scratch) {
  return s->by_tiles ? (nnd_elem *)(scratch + s->packed_at) : NULL;
}
NND_INLINE nnd_size nnd_packed_pixels_bytes(nnd_size pixels, nnd_size channels) {
#if NND_HAS_THIRDS
  return nnd_pixel_thirds_bytes(pixels, channels);
#else
  return NND_HAS_TILES ? nnd_bf16_packed_bytes(pixels, channels) : 0;
#endif
}

NND_INLINE struct nnd_amx_strips nnd_packed_strips(nnd_size pixels) {
#if NND_HAS_THIRDS
  return nnd_thirds_strips(pixels);
#else
  return nnd_amx_pairs_of(pixels);
#endif
}

/* Returns 0 where they cannot be: one is not finite. */
NND_INLINE int nnd_pack_pixels(const struct nnd_pointwise *s, const nnd_elem *in, nnd_size pixels, nnd_elem *to) {
#if NND_HAS_THIRDS
  return nnd_thirds_of_pixels(in, s->in_plane, s->in_channels, pixels, (char *)to);
#else
  if (NND_HAS_TILES) nnd_bf16_pack_pixels(in, s->in_plane, s->in_channels, pixels, to);
  return NND_HAS_TILES;
#endif
}

NND_INLINE struct nnd_pointwise_data nnd_pointwise_at(const struct nnd_pointwise *s, struct nnd_pointwise_data d,
                                                      nnd_size pixel) {
  d.in += pixel * NND_LANES;
  d.out += pixel * NND_LANES;
  if (s->end.residual) d.residual += pixel * NND_LANES;
  return d;
}

/* What the tiles of a panel have in common. */
NND_INLINE struct nnd_tile_job nnd_pointwise_job(const struct nnd_pointwise *s, int sum, int vectors,
                                                 struct nnd_pointwise_data d) {
  return (struct nnd_tile_job){.in = d.in,
                               .in_plane = s->in_plane,
                               .channels = s->in_channels,
                               .rows = 1,
                               .columns = 1,
                               .weights = d.weights + s->channel * vectors * NND_LANES,
                               .bias = d.bias,
                               .numbers = d.numbers,
                               .residual = d.residual,
                               .out = d.out,
                               .out_plane = s->out_plane,
                               .end = &s->end,
                               .sum = sum,
                               .stream = s->stream && sum == NND_WHOLE};
}

/* What each of `tiles` tiles of a panel fetches of the panel after it. */
NND_INLINE struct nnd_prefetch nnd_next_panel(const struct nnd_pointwise *s, nnd_size tiles, int vectors,
                                              const nnd_weight *weights) {
  const nnd_size block_bytes = NND_LANES * vectors * NND_LANES * (nnd_size)sizeof(nnd_weight);
  const nnd_weight *next = weights + nnd_grouped_channels(s->panel_channels) * vectors * NND_LANES;
  return (struct nnd_prefetch){(const char *)next, block_bytes, 0,
                               s->prefetch_weights ? (int)nnd_ceil_div(block_bytes / NND_LINE_BYTES, tiles) : 0};
}

/* One panel of weights over all pixels. Each tile fetches `input.lines` lines of every channel block, the next tile the
 * lines after those. */
NND_INLINE void nnd_pointwise_panel(const struct nnd_pointwise *s, int sum, nnd_size pixels, int vectors, int half,
                                    struct nnd_pointwise_data d, struct nnd_prefetch input) {
  half = half && (vectors > 1 || pixels >= NND_FEW_FOR_HALVES);
  const struct nnd_cut cut = nnd_cut_of(NND_NEXT, vectors, half, pixels, sum != NND_WHOLE);
  struct nnd_tile_job job = nnd_pointwise_job(s, sum, vectors, d);
  job.next_weights = nnd_next_panel(s, cut.count, vectors, job.weights);
  job.next_input = input;
  nnd_run_cut(cut, NND_NEXT, vectors, half, &job);
}

/* How many calls of the micro-kernel `pixels` pixels take: what a prefetch is spread over. */
NND_INLINE nnd_size nnd_pointwise_tiles(const struct nnd_pointwise *s, nnd_size pixels) {
  const nnd_size blocks = nnd_blocks(s->out_channels);
  return nnd_full_panels(blocks) * nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) +
         nnd_ceil_div(pixels, nnd_tile_pixels(nnd_last_panel(blocks), nnd_has_half(s->out_channels)));
}

/* Whether some sums of `pixels` pixels are split (nnd_sums_are_split). */
NND_INLINE int nnd_pointwise_splits(nnd_size pixels, nnd_size out_channels, int exact) {
  const nnd_size blocks = nnd_blocks(out_channels);
  const int last = nnd_last_panel(blocks), has_half = nnd_has_half(out_channels);
  const int half = has_half && (last > 1 || pixels >= NND_FEW_FOR_HALVES);
  return pixels > 0 && ((nnd_full_panels(blocks) > 0 &&
                         nnd_cut_splits(nnd_cut_of(NND_NEXT, NND_PANEL, 0, pixels, exact), NND_NEXT, NND_PANEL, 0)) ||
                        nnd_cut_splits(nnd_cut_of(NND_NEXT, last, half, pixels, exact), NND_NEXT, last, half));
}

/* The same of `pixels` pixels, `each` at a time. */
NND_INLINE int nnd_pieces_split(nnd_size pixels, nnd_size each, nnd_size out_channels, int exact) {
  return nnd_pointwise_splits(nnd_min(pixels, each), out_channels, exact) ||
         nnd_pointwise_splits(pixels % each, out_channels, exact);
}

/* `d` at panel `panel` of those before the last. */
NND_INLINE struct nnd_pointwise_data nnd_pointwise_from(const struct nnd_pointwise *s, struct nnd_pointwise_data d,
                                                        nnd_size panel) {
  const nnd_size block = panel * NND_PANEL;
  d.weights += block * NND_LANES * nnd_grouped_channels(s->panel_channels);
  d.bias += block * NND_LANES;
  if (s->end.number) d.numbers += block * NND_LANES;
  d.out += block * s->out_plane;
  if (s->end.residual) d.residual += block * s->out_plane;
  return d;
}

/* `pixels` pixels, packed at `packed`, by panels [first, last), which `d` is at the first of. Returns how many panels are
 * done: a weight of the next one is not finite. */
NND_INLINE nnd_size nnd_multiply_packed(const struct nnd_pointwise *s, nnd_size pixels, nnd_size first, nnd_size last,
                                        struct nnd_pointwise_data d, const nnd_elem *packed) {
  static const nnd_size nowhere = 0;
  const nnd_size blocks = nnd_blocks(s->out_channels), of_block = NND_AMX_ROWS * NND_PIXEL_BLOCK;
  const struct nnd_pixel_job job = {.lines = 1,
                                    .width = pixels,
                                    .strips = nnd_packed_strips(pixels),
                                    .packed = packed,
                                    .pixel_step = NND_PIXEL_BLOCK,
                                    .strip_step = nnd_pixel_blocks(s->in_channels) * of_block,
                                    .block_step = of_block,
                                    .blocks = nnd_pixel_blocks(s->in_channels),
                                    .taps = 1,
                                    .offsets = &nowhere,
                                    .weights = d.weights,
                                    .bias = d.bias,
                                    .numbers = d.numbers,
                                    .residual = d.residual,
                                    .out = d.out,
                                    .out_plane = s->out_plane,
                                    .panels = last - first,
                                    .last_vectors = last > nnd_full_panels(blocks) ? nnd_last_panel(blocks) : NND_PANEL,
                                    .end = &s->end,
                                    .stream = s->stream};
#if NND_HAS_THIRDS
  return nnd_multiply_pixel_thirds(&job, s->in_channels);
#else
  nnd_bf16_multiply(&job);
  return last - first;
#endif
}

/* Panels [first, last) of `pixels` pixels; the last of all is number nnd_full_panels(). */
NND_INLINE void nnd_pointwise_panels(const struct nnd_pointwise *s, int sum, nnd_size pixels, nnd_size first,
                                     nnd_size last, struct nnd_pointwise_data d, struct nnd_prefetch input) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks);
  if (d.packed && sum == NND_WHOLE && first < last && nnd_pack_pixels(s, d.in, pixels, d.packed))
    first += nnd_multiply_packed(s, pixels, first, last, nnd_pointwise_from(s, d, first), d.packed);
  for (nnd_size panel = first; panel < last; panel++) {
    const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
    const int half = panel < full ? 0 : nnd_has_half(s->out_channels);
    nnd_pointwise_panel(s, sum, pixels, vectors, half, nnd_pointwise_from(s, d, panel), input);
    input.from += nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) * input.lines * NND_LINE_BYTES;
  }
}

/* All panels of `pixels` pixels. */
NND_INLINE void nnd_pointwise_row(const struct nnd_pointwise *s, int sum, nnd_size pixels, struct nnd_pointwise_data d,
                                  struct nnd_prefetch input) {
  nnd_pointwise_panels(s, sum, pixels, 0, nnd_full_panels(nnd_blocks(s->out_channels)) + 1, d, input);
}

#endif
