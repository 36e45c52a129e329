/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise (1 x 1) convolution on NCHWc: out[o][p] = act(bias[o] + sum_i weights[o][i] * in[i][p] + residual[o][p]).
 *
 * A register tile is P pixels x V vectors of output channels, P * V <= NND_ACCUMULATORS. Every input channel costs V
 * loads of weights and P broadcasts for P * V multiply-adds, so with 14 x 2 the multipliers are the limit.
 * Order: panel of weights by panel (a panel stays close), pixel tile by pixel tile inside. While a tile
 * is computed, its share of the next panel of weights and of the next window's input is prefetched.
 */
#ifndef NND_POINTWISE_H
#define NND_POINTWISE_H

#include "activation.h"

struct nnd_pointwise {
  nnd_size in_channels, out_channels;
  nnd_size panel_channels;      /* input channels of a whole panel: more than in_channels where sums are in parts */
  nnd_size channel;             /* where in its panel a part begins */
  nnd_size in_plane, out_plane; /* floats from one channel block to the next */
  struct nnd_activation activation;
  int residual;         /* one is added before the activation; laid out like the output */
  int stream;           /* store past the caches */
  int prefetch_weights; /* the panels do not fit the second cache */
};

/* Where a step is in a sum over channels that is taken in parts. */
enum nnd_part { NND_WHOLE = 3, NND_FIRST = 1, NND_MIDDLE = 0, NND_LAST = 2 };

struct nnd_pointwise_data {
  const float *in;
  const float *weights; /* panels: [panel][panel_channels][vectors of the panel][c] */
  const float *bias, *slopes; /* [blocks of out_channels][c] */
  const float *residual;
  float *out;
};

/* Multiply-adds of `count` input channels (of one block) into the sums. */
NND_INLINE void nnd_pointwise_block(vf *sums, int pixels, int vectors, nnd_size count, const float *in,
                                    const float *weights) {
#if NND_LANES == 4 /* aarch64 multiplies by one lane of a vector: the pixels are loaded once for four channels */
  if (count == NND_LANES) {
    vf x[NND_ACCUMULATORS];
    NND_UNROLL for (int p = 0; p < pixels; p++) x[p] = nnd_load(in + p * NND_LANES);
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) {
      NND_UNROLL for (int v = 0; v < vectors; v++) {
        const vf w = nnd_load(weights + (i * vectors + v) * NND_LANES);
        NND_UNROLL for (int p = 0; p < pixels; p++) sums[p * vectors + v] += w * x[p][i];
      }
    }
    return;
  }
#endif
  NND_NO_UNROLL for (nnd_size i = 0; i < count; i++) {
    vf w[4];
    NND_UNROLL for (int v = 0; v < vectors; v++) w[v] = nnd_load(weights + (i * vectors + v) * NND_LANES);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const float x = in[p * NND_LANES + i];
      NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] += w[v] * x;
    }
  }
}

NND_INLINE void nnd_prefetch_lines(struct nnd_prefetch fetch, nnd_size block) {
  const float *from = fetch.from + block * fetch.plane;
  if (fetch.lines <= 8) {
    NND_UNROLL for (int i = 0; i < fetch.lines; i++) __builtin_prefetch(from + i * NND_LINE_FLOATS, 0, 2);
  } else { /* not unrolled: code that the first cache has to hold, and seconds of the compiler */
    NND_NO_UNROLL for (int i = 0; i < fetch.lines; i++) __builtin_prefetch(from + i * NND_LINE_FLOATS, 0, 2);
  }
}

NND_INLINE void nnd_pointwise_tile(struct nnd_pointwise s, int part, int pixels, int vectors,
                                   struct nnd_pointwise_data d, struct nnd_prefetch next_weights,
                                   struct nnd_prefetch next_input) {
  vf sums[NND_ACCUMULATORS];
  NND_UNROLL for (int v = 0; v < vectors; v++)
    NND_UNROLL for (int p = 0; p < pixels; p++)
      sums[p * vectors + v] = part & NND_FIRST ? nnd_load(d.bias + v * NND_LANES)
                                               : nnd_load(d.out + v * s.out_plane + p * NND_LANES);
  const nnd_size full = s.in_channels / NND_LANES, rest = s.in_channels % NND_LANES;
  NND_NO_UNROLL for (nnd_size block = 0; block < full; block++) {
    nnd_prefetch_lines(next_weights, block);
    nnd_prefetch_lines(next_input, block);
    nnd_pointwise_block(sums, pixels, vectors, NND_LANES, d.in + block * s.in_plane,
                        d.weights + block * NND_LANES * vectors * NND_LANES);
  }
  if (rest) {
    nnd_prefetch_lines(next_weights, full);
    nnd_prefetch_lines(next_input, full);
    nnd_pointwise_block(sums, pixels, vectors, rest, d.in + full * s.in_plane,
                        d.weights + full * NND_LANES * vectors * NND_LANES);
  }
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf slope = s.activation.kind == NND_PRELU ? nnd_load(d.slopes + v * NND_LANES) : nnd_splat(0.0f);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const nnd_size at = v * s.out_plane + p * NND_LANES;
      vf sum = sums[p * vectors + v];
      if (part & NND_LAST) {
        if (s.residual) sum += nnd_load(d.residual + at);
        sum = nnd_activate(s.activation, sum, slope);
      }
      if (s.stream && part == NND_WHOLE) nnd_stream(d.out + at, sum);
      else nnd_store(d.out + at, sum);
    }
  }
}

NND_INLINE struct nnd_pointwise_data nnd_pointwise_at(struct nnd_pointwise s, struct nnd_pointwise_data d,
                                                      nnd_size pixel) {
  d.in += pixel * NND_LANES;
  d.out += pixel * NND_LANES;
  if (s.residual) d.residual += pixel * NND_LANES;
  return d;
}

/* One panel of weights over all pixels. Tiles differ by one pixel at most, so that no small one is left over.
 * Each tile fetches `input.lines` lines of every channel block, the next tile the lines after those. */
NND_INLINE void nnd_pointwise_panel(struct nnd_pointwise s, int part, nnd_size pixels, int vectors,
                                    struct nnd_pointwise_data d, struct nnd_prefetch input) {
  d.weights += s.channel * vectors * NND_LANES;
  const nnd_size tiles = nnd_ceil_div(pixels, NND_ACCUMULATORS / vectors);
  const nnd_size small = pixels / tiles, large = pixels % tiles;
  const int line_channels = NND_LANES * vectors * NND_LANES / NND_LINE_FLOATS; /* lines of a block's weights */
  struct nnd_prefetch weights = {d.weights + s.panel_channels * vectors * NND_LANES, NND_LANES * vectors * NND_LANES,
                                 s.prefetch_weights ? (int)nnd_ceil_div(line_channels, tiles) : 0};
  nnd_size pixel = 0;
  for (nnd_size tile = 0; tile < large; tile++, pixel += small + 1) {
    nnd_pointwise_tile(s, part, (int)small + 1, vectors, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_FLOATS;
    input.from += input.lines * NND_LINE_FLOATS;
  }
  for (nnd_size tile = large; tile < tiles; tile++, pixel += small) {
    nnd_pointwise_tile(s, part, (int)small, vectors, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_FLOATS;
    input.from += input.lines * NND_LINE_FLOATS;
  }
}

/* The last panel takes what is left, but never a single vector where it can be joined to the panel before. */
NND_INLINE int nnd_last_panel(nnd_size blocks) {
  const int rest = (int)(blocks % NND_PANEL);
  if (rest == 0) return (int)nnd_min(blocks, NND_PANEL);
  return NND_PANEL == 2 && blocks > 1 ? rest + NND_PANEL : rest;
}

NND_INLINE nnd_size nnd_full_panels(nnd_size blocks) { return (blocks - nnd_last_panel(blocks)) / NND_PANEL; }

/* How many calls of the register tile `pixels` pixels take: what a prefetch is spread over. */
NND_INLINE nnd_size nnd_pointwise_tiles(struct nnd_pointwise s, nnd_size pixels) {
  const nnd_size blocks = nnd_blocks(s.out_channels);
  return nnd_full_panels(blocks) * nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) +
         nnd_ceil_div(pixels, NND_ACCUMULATORS / nnd_last_panel(blocks));
}

NND_INLINE void nnd_pointwise_row(struct nnd_pointwise s, int part, nnd_size pixels, struct nnd_pointwise_data d,
                                  struct nnd_prefetch input) {
  const nnd_size panels = nnd_full_panels(nnd_blocks(s.out_channels));
  for (nnd_size panel = 0; panel < panels; panel++) {
    nnd_pointwise_panel(s, part, pixels, NND_PANEL, d, input);
    input.from += nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) * input.lines * NND_LINE_FLOATS;
    d.weights += NND_PANEL * NND_LANES * s.panel_channels;
    d.bias += NND_PANEL * NND_LANES;
    d.slopes += s.activation.kind == NND_PRELU ? NND_PANEL * NND_LANES : 0;
    d.out += NND_PANEL * s.out_plane;
    if (s.residual) d.residual += NND_PANEL * s.out_plane;
  }
  nnd_pointwise_panel(s, part, pixels, nnd_last_panel(nnd_blocks(s.out_channels)), d, input);
}

/* A pointwise convolution by itself: windows [first, last) of `window` pixels, over all images. */
NND_INLINE void nnd_pointwise_run(struct nnd_pointwise s, struct nnd_pointwise_data d, nnd_size pixels,
                                  nnd_size window, nnd_size first, nnd_size last) {
  const nnd_size windows = nnd_ceil_div(pixels, window), rest = pixels - (windows - 1) * window;
  const nnd_size in_image = nnd_blocks(s.in_channels) * s.in_plane;
  const nnd_size out_image = nnd_blocks(s.out_channels) * s.out_plane;
  for (nnd_size unit = first; unit < last; unit++) {
    struct nnd_pointwise_data image = d;
    image.in += unit / windows * in_image;
    image.out += unit / windows * out_image;
    if (s.residual) image.residual += unit / windows * out_image;
    const struct nnd_pointwise_data at = nnd_pointwise_at(s, image, unit % windows * window);
    if (unit % windows + 1 < windows || rest == window)
      nnd_pointwise_row(s, NND_WHOLE, window, at, nnd_no_prefetch);
    else
      nnd_pointwise_row(s, NND_WHOLE, rest, at, nnd_no_prefetch);
  }
}

#endif
