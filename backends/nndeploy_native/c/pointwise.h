/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise (1 x 1) convolution on NCHWc: out[o][p] = end(bias[o] + sum_i weights[o][i] * in[i][p], residual[o][p]).
 *
 * A register tile is P pixels x V vectors of output channels, P * V <= NND_ACCUMULATORS. Every input channel costs V
 * loads of weights and P broadcasts for P * V multiply-adds, so with 14 x 2 the multipliers are the limit.
 * Order: panel of weights by panel (a panel stays close), pixel tile by pixel tile inside. While a tile
 * is computed, its share of the next panel of weights and of the next window's input is prefetched.
 */
#ifndef NND_POINTWISE_H
#define NND_POINTWISE_H

#include "step.h"

struct nnd_pointwise {
  nnd_size in_channels, out_channels;
  nnd_size panel_channels;      /* input channels of a whole panel: more than in_channels where sums are in parts */
  nnd_size channel;             /* where in its panel a part begins */
  nnd_size in_plane, out_plane; /* elements from one channel block to the next */
  struct nnd_end end;
  int stream;           /* store past the caches */
  int prefetch_weights; /* the panels do not fit the second cache */
};

/* Where a step is in a sum over channels that is taken in parts. */
enum nnd_sum { NND_WHOLE = 3, NND_FIRST = 1, NND_MIDDLE = 0, NND_LAST = 2 };

struct nnd_pointwise_data {
  const nnd_elem *in;
  const nnd_weight *weights; /* panels: [panel][panel_channels][vectors of the panel][c] */
  const float *bias, *numbers; /* [blocks of out_channels][c] */
  const nnd_elem *residual; /* laid out like the output */
  nnd_elem *out;
};

/* Multiply-adds of `count` input channels (of one block) into the sums. */
NND_INLINE void nnd_pointwise_block(vf *sums, int pixels, int vectors, nnd_size count, const nnd_elem *in,
                                    const nnd_weight *weights) {
#if defined(NND_BF16) /* two channels at once: a pixel's pair is broadcast, and meets a pair of each output channel */
  NND_NO_UNROLL for (nnd_size i = 0; i < count; i += 2) {
    nnd_pairs w[4];
    NND_UNROLL for (int v = 0; v < vectors; v++)
      w[v] = *(const nnd_pairs *)(weights + (i / 2 * vectors + v) * 2 * NND_LANES);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      uint32_t pair; /* an odd last channel has no neighbour: that lane may hold anything */
      if (i + 1 < count) memcpy(&pair, in + p * NND_LANES + i, sizeof pair);
      else pair = in[p * NND_LANES + i];
      const nnd_pairs x = (nnd_pairs)(pair - (nnd_words){0});
      NND_UNROLL for (int v = 0; v < vectors; v++)
        sums[p * vectors + v] = __builtin_ia32_dpbf16ps_512(sums[p * vectors + v], w[v], x);
    }
  }
#else
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
#endif
}

NND_INLINE void nnd_prefetch_lines(struct nnd_prefetch fetch, nnd_size block) {
  const char *from = fetch.from + block * fetch.plane;
  if (fetch.lines <= 8) {
    NND_UNROLL for (int i = 0; i < fetch.lines; i++) __builtin_prefetch(from + i * NND_LINE_BYTES, 0, 2);
  } else { /* not unrolled: code that the first cache has to hold, and seconds of the compiler */
    NND_NO_UNROLL for (int i = 0; i < fetch.lines; i++) __builtin_prefetch(from + i * NND_LINE_BYTES, 0, 2);
  }
}

/* Ends the sums of a tile and stores them: vectors lie `out_plane` elements apart. */
NND_INLINE void nnd_store_tile(const struct nnd_end *end, const vf *sums, int pixels, int vectors, nnd_size out_plane,
                               int stream, const nnd_elem *residual, const float *numbers, nnd_elem *out) {
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf number = nnd_end_number(end, numbers, v);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const nnd_size at = v * out_plane + p * NND_LANES;
      const vf value = nnd_end_sum(end, sums[p * vectors + v], residual + at, number);
      if (stream) nnd_stream(out + at, value);
      else nnd_write(out + at, value);
    }
  }
}

NND_INLINE void nnd_pointwise_tile(struct nnd_pointwise s, int sum, int pixels, int vectors,
                                   struct nnd_pointwise_data d, struct nnd_prefetch next_weights,
                                   struct nnd_prefetch next_input) {
  vf sums[NND_ACCUMULATORS];
  NND_UNROLL for (int v = 0; v < vectors; v++)
    NND_UNROLL for (int p = 0; p < pixels; p++)
      sums[p * vectors + v] = sum & NND_FIRST ? nnd_load(d.bias + v * NND_LANES)
                                              : nnd_read(d.out + v * s.out_plane + p * NND_LANES);
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
  if (sum & NND_LAST) {
    nnd_store_tile(&s.end, sums, pixels, vectors, s.out_plane, s.stream && sum == NND_WHOLE, d.residual, d.numbers,
                   d.out);
  } else {
    NND_UNROLL for (int v = 0; v < vectors; v++)
      NND_UNROLL for (int p = 0; p < pixels; p++)
        nnd_write(d.out + v * s.out_plane + p * NND_LANES, sums[p * vectors + v]);
  }
}

NND_INLINE struct nnd_pointwise_data nnd_pointwise_at(struct nnd_pointwise s, struct nnd_pointwise_data d,
                                                      nnd_size pixel) {
  d.in += pixel * NND_LANES;
  d.out += pixel * NND_LANES;
  if (s.end.residual) d.residual += pixel * NND_LANES;
  return d;
}

/* One panel of weights over all pixels. Tiles differ by one pixel at most, so that no small one is left over.
 * Each tile fetches `input.lines` lines of every channel block, the next tile the lines after those. */
NND_INLINE void nnd_pointwise_panel(struct nnd_pointwise s, int sum, nnd_size pixels, int vectors,
                                    struct nnd_pointwise_data d, struct nnd_prefetch input) {
  d.weights += s.channel * vectors * NND_LANES;
  const nnd_size tiles = nnd_ceil_div(pixels, NND_ACCUMULATORS / vectors);
  const nnd_size small = pixels / tiles, large = pixels % tiles;
  const nnd_size block_bytes = NND_LANES * vectors * NND_LANES * sizeof(nnd_weight);
  struct nnd_prefetch weights = {(const char *)(d.weights + nnd_grouped_channels(s.panel_channels) * vectors * NND_LANES),
                                 block_bytes,
                                 s.prefetch_weights ? (int)nnd_ceil_div(block_bytes / NND_LINE_BYTES, tiles) : 0};
  nnd_size pixel = 0;
  for (nnd_size tile = 0; tile < large; tile++, pixel += small + 1) {
    nnd_pointwise_tile(s, sum, (int)small + 1, vectors, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_BYTES;
    input.from += input.lines * NND_LINE_BYTES;
  }
  for (nnd_size tile = large; tile < tiles; tile++, pixel += small) {
    nnd_pointwise_tile(s, sum, (int)small, vectors, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_BYTES;
    input.from += input.lines * NND_LINE_BYTES;
  }
}

/* The last panel takes what is left, but never a single vector where it can be joined to the panel before. */
NND_INLINE int nnd_last_panel(nnd_size blocks) {
  const int rest = (int)(blocks % NND_PANEL);
  if (rest == 0) return (int)nnd_min(blocks, NND_PANEL);
  return NND_PANEL == 2 && blocks > 1 ? rest + NND_PANEL : rest;
}

/* Panels before the last one. */
NND_INLINE nnd_size nnd_full_panels(nnd_size blocks) { return (blocks - nnd_last_panel(blocks)) / NND_PANEL; }

/* How many calls of the register tile `pixels` pixels take: what a prefetch is spread over. */
NND_INLINE nnd_size nnd_pointwise_tiles(struct nnd_pointwise s, nnd_size pixels) {
  const nnd_size blocks = nnd_blocks(s.out_channels);
  return nnd_full_panels(blocks) * nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) +
         nnd_ceil_div(pixels, NND_ACCUMULATORS / nnd_last_panel(blocks));
}

/* `d` at panel `panel` of those before the last. */
NND_INLINE struct nnd_pointwise_data nnd_pointwise_from(struct nnd_pointwise s, struct nnd_pointwise_data d,
                                                        nnd_size panel) {
  const nnd_size block = panel * NND_PANEL;
  d.weights += block * NND_LANES * nnd_grouped_channels(s.panel_channels);
  d.bias += block * NND_LANES;
  if (s.end.number) d.numbers += block * NND_LANES;
  d.out += block * s.out_plane;
  if (s.end.residual) d.residual += block * s.out_plane;
  return d;
}

/* Panels [first, last) of `pixels` pixels; the last of all is number nnd_full_panels(). */
NND_INLINE void nnd_pointwise_panels(struct nnd_pointwise s, int sum, nnd_size pixels, nnd_size first, nnd_size last,
                                     struct nnd_pointwise_data d, struct nnd_prefetch input) {
  const nnd_size full = nnd_full_panels(nnd_blocks(s.out_channels));
  for (nnd_size panel = first; panel < nnd_min(last, full); panel++) {
    nnd_pointwise_panel(s, sum, pixels, NND_PANEL, nnd_pointwise_from(s, d, panel), input);
    input.from += nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) * input.lines * NND_LINE_BYTES;
  }
  if (last > full)
    nnd_pointwise_panel(s, sum, pixels, nnd_last_panel(nnd_blocks(s.out_channels)), nnd_pointwise_from(s, d, full),
                        input);
}

/* All panels of `pixels` pixels. */
NND_INLINE void nnd_pointwise_row(struct nnd_pointwise s, int sum, nnd_size pixels, struct nnd_pointwise_data d,
                                  struct nnd_prefetch input) {
  nnd_pointwise_panels(s, sum, pixels, 0, nnd_full_panels(nnd_blocks(s.out_channels)) + 1, d, input);
}

/* A step: windows of `window` pixels of all images. Workers share windows, or panels where `by_panels`. */
struct nnd_pointwise_step {
  nnd_size in_channels, out_channels, pixels, images, window;
  int stream, prefetch_weights, by_panels;
  struct nnd_end end;
};

NND_INLINE void nnd_pointwise_step(const struct nnd_pointwise_step *t, nnd_elem *out, const nnd_elem *in,
                                   const nnd_weight *weights, const float *bias, const nnd_elem *residual,
                                   const float *numbers, struct nnd_part part) {
  const struct nnd_pointwise s = {.in_channels = t->in_channels, .out_channels = t->out_channels,
                                  .panel_channels = t->in_channels, .in_plane = t->pixels * NND_LANES,
                                  .out_plane = t->pixels * NND_LANES, .end = t->end, .stream = t->stream,
                                  .prefetch_weights = t->prefetch_weights};
  const struct nnd_pointwise_data d = {in, weights, bias, numbers, residual, out};
  const nnd_size windows = nnd_ceil_div(t->pixels, t->window), rest = t->pixels - (windows - 1) * t->window;
  const nnd_size panels = nnd_full_panels(nnd_blocks(s.out_channels)) + 1;
  nnd_size first = 0, last = t->images * windows, first_panel = 0, last_panel = panels;
  if (t->by_panels) nnd_share(panels, part, &first_panel, &last_panel);
  else nnd_share(last, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    struct nnd_pointwise_data image = d;
    image.in += unit / windows * nnd_blocks(s.in_channels) * s.in_plane;
    image.out += unit / windows * nnd_blocks(s.out_channels) * s.out_plane;
    if (s.end.residual) image.residual += unit / windows * nnd_blocks(s.out_channels) * s.out_plane;
    const struct nnd_pointwise_data at = nnd_pointwise_at(s, image, unit % windows * t->window);
    if (unit % windows + 1 < windows || rest == t->window)
      nnd_pointwise_panels(s, NND_WHOLE, t->window, first_panel, last_panel, at, nnd_no_prefetch);
    else
      nnd_pointwise_panels(s, NND_WHOLE, rest, first_panel, last_panel, at, nnd_no_prefetch);
  }
}

#endif
