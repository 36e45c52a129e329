/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise (1 x 1) convolution on NCHWc: out[o][p] = end(bias[o] + sum_i weights[o][i] * in[i][p], residual[o][p]).
 *
 * The micro-kernel computes a register tile, P pixels x V vectors of output channels, P * V <= NND_ACCUMULATORS. Every
 * input channel costs V loads of weights and P broadcasts for P * V multiply-adds, so with 14 x 2 the multipliers are
 * the limit.
 * Where at most half of the last vector are output channels (24 of 32), two pixels share a vector of sums there: its
 * weights are there twice, and halves of two broadcasts meet them.
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
  int planar_in;                /* the input is [in_channels / NND_GROUP][pixels][NND_GROUP], not blocks */
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

/* A register tile: `pixels` x `vectors` of output channels; with `half` the last vector is of two pixels, see above. */
struct nnd_tile {
  int pixels, vectors, half;
};

/* Pixels of a tile whose sums fill the registers. */
NND_INLINE int nnd_tile_pixels(int vectors, int half) {
  if (!half) return NND_ACCUMULATORS / vectors;
  return (2 * NND_ACCUMULATORS - NND_PANEL) / (2 * vectors - 1) / 2 * 2; /* registers for the halves' broadcasts */
}

/* Sums: [pixel][whole vector], then [pair of pixels] of halves. */
NND_INLINE int nnd_tile_whole(struct nnd_tile t) { return t.vectors - t.half; }
NND_INLINE int nnd_tile_pairs(struct nnd_tile t) { return t.half ? (t.pixels + 1) / 2 : 0; }

/* Lower lanes of `low`, then lower lanes of `high`. */
NND_INLINE vf nnd_joined_halves(vf low, vf high) {
#if NND_LANES == 16
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
#elif NND_LANES == 8
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
#else
  return __builtin_shufflevector(low, high, 0, 1, 4, 5);
#endif
}

/* -1 in the upper lanes. The compiler must not know it: it would permute what a blend, or a load, does for nothing. */
NND_INLINE vi nnd_upper_lanes(void) {
  vi mask = {0};
  NND_UNROLL for (int lane = NND_LANES / 2; lane < NND_LANES; lane++) mask[lane] = -1;
  NND_OPAQUE(mask);
  return mask;
}

/* The upper lanes, twice. */
NND_INLINE vf nnd_upper_half(vf x) {
#if NND_LANES == 16
  return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
#elif NND_LANES == 8
  return __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7);
#else
  return __builtin_shufflevector(x, x, 2, 3, 2, 3);
#endif
}

/* nnd_weights: a vector of weights of products; nnd_broadcast: what they are multiplied by, of one pixel. */
#ifdef NND_BF16
typedef nnd_pairs nnd_weights;
NND_INLINE nnd_weights nnd_load_weights(const nnd_weight *from) { return *(const nnd_weights *)from; }
/* The channels from `in` on; the last one may have no neighbour, whose lane may hold anything. */
NND_INLINE vf nnd_broadcast(const nnd_elem *in, int has_neighbour) {
  uint32_t pair;
  if (has_neighbour) memcpy(&pair, in, sizeof pair);
  else pair = *in;
  return (vf)(pair - (nnd_words){0});
}
NND_INLINE vf nnd_multiply_add(vf sum, nnd_weights w, vf x) {
  return __builtin_ia32_dpbf16ps_512(sum, w, (nnd_pairs)x);
}
#else
typedef vf nnd_weights;
NND_INLINE nnd_weights nnd_load_weights(const nnd_weight *from) { return nnd_load(from); }
NND_INLINE vf nnd_broadcast(const nnd_elem *in, int has_neighbour) {
  (void)has_neighbour;
  return nnd_splat(*in);
}
NND_INLINE vf nnd_multiply_add(vf sum, nnd_weights w, vf x) { return sum + w * x; }
#endif

/* Multiply-adds of one vector of weights for each of the tile's, `w`, with what X(p) gives for its pixels p into the
 * sums; a pixel that IS_INSIDE(p) denies is a zero. A macro: registers must be filled where they are used. */
#define NND_MULTIPLY_TILE(t, sums, w, upper, IS_INSIDE, X)                                                             \
  {                                                                                                                    \
    const int whole = nnd_tile_whole(t), pairs = nnd_tile_pairs(t);                                                    \
    NND_UNROLL for (int p = 0; !t.half && p < t.pixels; p++) {                                                         \
      if (!(IS_INSIDE(p))) continue;                                                                                   \
      const vf x = X(p);                                                                                               \
      NND_UNROLL for (int v = 0; v < whole; v++) sums[p * whole + v] = nnd_multiply_add(sums[p * whole + v], w[v], x); \
    }                                                                                                                  \
    NND_UNROLL for (int pair = 0; pair < pairs; pair++) {                                                              \
      const int p = 2 * pair, q = p + 1 < t.pixels ? p + 1 : p;                                                        \
      const int has_p = IS_INSIDE(p), has_q = IS_INSIDE(q);                                                            \
      if (!has_p && !has_q) continue;                                                                                  \
      const vf x = has_p ? X(p) : nnd_splat(0.0f), y = q == p ? x : has_q ? X(q) : nnd_splat(0.0f);                    \
      NND_UNROLL for (int v = 0; v < whole; v++) {                                                                     \
        if (has_p) sums[p * whole + v] = nnd_multiply_add(sums[p * whole + v], w[v], x);                               \
        if (has_q && q != p) sums[q * whole + v] = nnd_multiply_add(sums[q * whole + v], w[v], y);                     \
      }                                                                                                                \
      vf *half = &sums[t.pixels * whole + pair];                                                                       \
      *half = nnd_multiply_add(*half, w[whole], nnd_select(upper, y, x));                                              \
    }                                                                                                                  \
  }

/* Elements from one pixel of the input to the next, and from one channel of a block to the next. */
struct nnd_steps {
  nnd_size pixel, channel;
};

static const struct nnd_steps nnd_in_blocks = {NND_LANES, 1};

/* Multiply-adds of `count` input channels (of one block) into the sums. */
NND_INLINE void nnd_pointwise_block(struct nnd_tile t, vf *sums, nnd_size count, struct nnd_steps step,
                                    const nnd_elem *in, const nnd_weight *weights, struct nnd_prefetch next) {
  const vi upper = t.half ? nnd_upper_lanes() : (vi){0};
#if NND_LANES == 4 /* aarch64 multiplies by one lane of a vector: the pixels are loaded once for four channels */
  if (count == NND_LANES && !t.half && step.channel == 1) {
    vf x[NND_ACCUMULATORS];
    NND_UNROLL for (int p = 0; p < t.pixels; p++) x[p] = nnd_load(in + p * NND_LANES);
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) {
      NND_UNROLL for (int v = 0; v < t.vectors; v++) {
        const vf w = nnd_load(weights + (i * t.vectors + v) * NND_LANES);
        NND_UNROLL for (int p = 0; p < t.pixels; p++) sums[p * t.vectors + v] += w * x[p][i];
      }
    }
    return;
  }
#endif
  NND_NO_UNROLL for (nnd_size i = 0; i < count; i += NND_GROUP) {
    NND_UNROLL for (int line = 0; line < next.lines; line++)
      __builtin_prefetch(next.from + line * NND_LINE_BYTES, 0, 2);
    next.from += next.channel;
    nnd_weights w[4];
    NND_UNROLL for (int v = 0; v < t.vectors; v++)
      w[v] = nnd_load_weights(weights + (i * t.vectors + v * NND_GROUP) * NND_LANES);
#define NND_X(p) nnd_broadcast(in + (p) * step.pixel + i * step.channel, i + 1 < count)
#define NND_ALWAYS(p) 1
    NND_MULTIPLY_TILE(t, sums, w, upper, NND_ALWAYS, NND_X)
#undef NND_ALWAYS
#undef NND_X
  }
}

/* Up to eight lines of channel block `block` are fetched at once, more are spread over its channels: a burst stalls. */
NND_INLINE struct nnd_prefetch nnd_prefetch_block(struct nnd_prefetch fetch, nnd_size block) {
  const char *from = fetch.from + block * fetch.plane;
  if (fetch.channel) return (struct nnd_prefetch){from, 0, fetch.channel * NND_GROUP, fetch.lines};
  if (fetch.lines > 8) {
    const nnd_size lines = nnd_ceil_div(fetch.lines, NND_LANES / NND_GROUP);
    return (struct nnd_prefetch){from, 0, lines * NND_LINE_BYTES, (int)lines};
  }
  NND_UNROLL for (int i = 0; i < fetch.lines; i++) __builtin_prefetch(from + i * NND_LINE_BYTES, 0, 2);
  return nnd_no_prefetch;
}

/* Ends the sums of a tile and stores them: vectors lie `out_plane` elements apart. */
NND_INLINE void nnd_store_tile(const struct nnd_end *end, const vf *sums, int pixels, int vectors, nnd_size out_plane,
                               int stream, const nnd_elem *residual, const float *numbers, nnd_elem *out) {
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf number = nnd_end_number(end, numbers, v);
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const nnd_size at = v * out_plane + p * NND_LANES;
      const vf value = nnd_end_sum(end, sums[p * vectors + v], residual, at, number);
      if (stream) nnd_stream(out + at, value);
      else nnd_write(out + at, value);
    }
  }
}

/* The sums of a tile as [pixel][vector]: halves are taken apart, their upper lanes hold anything then. */
NND_INLINE void nnd_spread_halves(struct nnd_tile t, const vf *sums, vf *spread) {
  const int whole = nnd_tile_whole(t);
  NND_UNROLL for (int p = 0; p < t.pixels; p++) {
    NND_UNROLL for (int v = 0; v < whole; v++) spread[p * t.vectors + v] = sums[p * whole + v];
    if (t.half) {
      const vf pair = sums[t.pixels * whole + p / 2];
      spread[p * t.vectors + whole] = p % 2 ? nnd_upper_half(pair) : pair;
    }
  }
}

/* What a tile's sums begin with: the bias, or what earlier parts have left in the output. */
NND_INLINE void nnd_first_sums(struct nnd_tile t, vf *sums, int from_bias, const float *bias, const nnd_elem *out,
                               nnd_size out_plane) {
  const int whole = nnd_tile_whole(t), pairs = nnd_tile_pairs(t);
  NND_UNROLL for (int v = 0; v < whole; v++)
    NND_UNROLL for (int p = 0; p < t.pixels; p++)
      sums[p * whole + v] = from_bias ? nnd_load(bias + v * NND_LANES) : nnd_read(out + v * out_plane + p * NND_LANES);
  NND_UNROLL for (int pair = 0; pair < pairs; pair++) {
    const int p = 2 * pair, second = p + 1 < t.pixels ? p + 1 : p;
    const vf x = from_bias ? nnd_load(bias + whole * NND_LANES) : nnd_read(out + whole * out_plane + p * NND_LANES);
    const vf y = from_bias ? x : nnd_read(out + whole * out_plane + second * NND_LANES);
    sums[t.pixels * whole + pair] = nnd_joined_halves(x, y);
  }
}

NND_INLINE struct nnd_steps nnd_pointwise_steps(struct nnd_pointwise s) {
  return s.planar_in ? (struct nnd_steps){NND_GROUP, s.in_plane / NND_LANES} : nnd_in_blocks;
}

NND_INLINE void nnd_pointwise_tile(struct nnd_pointwise s, int sum, struct nnd_tile t, struct nnd_pointwise_data d,
                                   struct nnd_prefetch next_weights, struct nnd_prefetch next_input) {
  vf sums[NND_ACCUMULATORS], spread[2 * NND_ACCUMULATORS];
  nnd_first_sums(t, sums, sum & NND_FIRST, d.bias, d.out, s.out_plane);
  const nnd_size full = s.in_channels / NND_LANES, rest = s.in_channels % NND_LANES;
  NND_NO_UNROLL for (nnd_size block = 0; block < full; block++) {
    nnd_prefetch_block(next_weights, block);
    nnd_pointwise_block(t, sums, NND_LANES, nnd_pointwise_steps(s), d.in + block * s.in_plane,
                        d.weights + block * NND_LANES * t.vectors * NND_LANES, nnd_prefetch_block(next_input, block));
  }
  if (rest) {
    nnd_prefetch_block(next_weights, full);
    nnd_pointwise_block(t, sums, rest, nnd_pointwise_steps(s), d.in + full * s.in_plane,
                        d.weights + full * NND_LANES * t.vectors * NND_LANES, nnd_prefetch_block(next_input, full));
  }
  nnd_spread_halves(t, sums, spread);
  if (sum & NND_LAST) {
    nnd_store_tile(&s.end, spread, t.pixels, t.vectors, s.out_plane, s.stream && sum == NND_WHOLE, d.residual,
                   d.numbers, d.out);
  } else {
    NND_UNROLL for (int v = 0; v < t.vectors; v++)
      NND_UNROLL for (int p = 0; p < t.pixels; p++)
        nnd_write(d.out + v * s.out_plane + p * NND_LANES, spread[p * t.vectors + v]);
  }
}

NND_INLINE struct nnd_pointwise_data nnd_pointwise_at(struct nnd_pointwise s, struct nnd_pointwise_data d,
                                                      nnd_size pixel) {
  d.in += pixel * nnd_pointwise_steps(s).pixel;
  d.out += pixel * NND_LANES;
  if (s.end.residual) d.residual += pixel * NND_LANES;
  return d;
}

/* True where at most half of the last vector are channels. */
NND_INLINE int nnd_has_half(nnd_size channels) {
  const nnd_size held = channels % NND_LANES;
  return NND_LANES > 4 && held > 0 && held <= NND_LANES / 2;
}

#ifdef NND_ANY_SHAPE
/* The tiles that some pixels are cut into where their number is not known here: `count` of `small` pixels, one of few
 * sizes that there are; the last one overlaps the one before. */
struct nnd_tiles {
  nnd_size count, small, pixels;
};

NND_INLINE struct nnd_tiles nnd_pixel_tiles(nnd_size pixels, int vectors, int half) {
  const nnd_size most = nnd_tile_pixels(vectors, half);
  const nnd_size small = pixels >= most ? most : pixels >= NND_FEW_PIXELS ? NND_FEW_PIXELS : 1;
  return (struct nnd_tiles){nnd_ceil_div(pixels, small), small, pixels};
}

NND_INLINE nnd_size nnd_tile_begin(struct nnd_tiles tiles, nnd_size tile) {
  return nnd_min(tile * tiles.small, tiles.pixels - tiles.small);
}

/* Tile `number`, in whichever of the sizes. */
NND_INLINE void nnd_pointwise_number(struct nnd_pointwise s, int sum, struct nnd_tiles tiles, nnd_size number,
                                     int vectors, int half, struct nnd_pointwise_data d, struct nnd_prefetch weights,
                                     struct nnd_prefetch input) {
  const struct nnd_pointwise_data at = nnd_pointwise_at(s, d, nnd_tile_begin(tiles, number));
  const struct nnd_tile most = {nnd_tile_pixels(vectors, half), vectors, half};
  const struct nnd_tile few = {NND_FEW_PIXELS, vectors, half}, one = {1, vectors, half};
  if (tiles.small == most.pixels) nnd_pointwise_tile(s, sum, most, at, weights, input);
  else if (tiles.small == NND_FEW_PIXELS) nnd_pointwise_tile(s, sum, few, at, weights, input);
  else nnd_pointwise_tile(s, sum, one, at, weights, input);
}
#else
/* The tiles that some pixels are cut into: `large` of `small` + 1 pixels, then those of `small`; none is tiny. */
struct nnd_tiles {
  nnd_size count, small, large;
};

NND_INLINE struct nnd_tiles nnd_pixel_tiles(nnd_size pixels, int vectors, int half) {
  const nnd_size count = nnd_ceil_div(pixels, nnd_tile_pixels(vectors, half));
  return (struct nnd_tiles){count, pixels / count, pixels % count};
}

NND_INLINE nnd_size nnd_tile_begin(struct nnd_tiles tiles, nnd_size tile) {
  return tile * tiles.small + nnd_min(tile, tiles.large);
}

NND_INLINE void nnd_pointwise_number(struct nnd_pointwise s, int sum, struct nnd_tiles tiles, nnd_size number,
                                     int vectors, int half, struct nnd_pointwise_data d, struct nnd_prefetch weights,
                                     struct nnd_prefetch input) {
  const struct nnd_pointwise_data at = nnd_pointwise_at(s, d, nnd_tile_begin(tiles, number));
  const struct nnd_tile large = {(int)tiles.small + 1, vectors, half}, small = {(int)tiles.small, vectors, half};
  if (number < tiles.large) nnd_pointwise_tile(s, sum, large, at, weights, input);
  else nnd_pointwise_tile(s, sum, small, at, weights, input);
}
#endif

/* What each tile of a panel fetches of the panel after it: `weights` are this one's. */
NND_INLINE struct nnd_prefetch nnd_next_panel(struct nnd_pointwise s, struct nnd_tiles tiles, int vectors,
                                              const nnd_weight *weights) {
  const nnd_size block_bytes = NND_LANES * vectors * NND_LANES * sizeof(nnd_weight);
  const nnd_weight *next = weights + nnd_grouped_channels(s.panel_channels) * vectors * NND_LANES;
  return (struct nnd_prefetch){
      (const char *)next, block_bytes, 0,
      s.prefetch_weights ? (int)nnd_ceil_div(block_bytes / NND_LINE_BYTES, tiles.count) : 0};
}

/* Tile `number` of one panel of weights alone. */
NND_INLINE void nnd_pointwise_one(struct nnd_pointwise s, struct nnd_tiles tiles, nnd_size number, int vectors,
                                  int half, struct nnd_pointwise_data d, struct nnd_prefetch weights) {
  weights.from += number * weights.lines * NND_LINE_BYTES;
  nnd_pointwise_number(s, NND_WHOLE, tiles, number, vectors, half, d, weights, nnd_no_prefetch);
}

/* One panel of weights over all pixels. Each tile fetches `input.lines` lines of every channel block, the next tile the
 * lines after those. */
NND_INLINE void nnd_pointwise_panel(struct nnd_pointwise s, int sum, nnd_size pixels, int vectors, int half,
                                    struct nnd_pointwise_data d, struct nnd_prefetch input) {
  d.weights += s.channel * vectors * NND_LANES;
#ifdef NND_ANY_SHAPE
  const struct nnd_tiles single = {pixels, 1, pixels}; /* what is added to must not be met twice */
  const struct nnd_tiles tiles = sum == NND_WHOLE ? nnd_pixel_tiles(pixels, vectors, half) : single;
  struct nnd_prefetch weights = nnd_next_panel(s, tiles, vectors, d.weights);
  for (nnd_size tile = 0; tile < tiles.count; tile++) {
    nnd_pointwise_number(s, sum, tiles, tile, vectors, half, d, weights, input);
    weights.from += weights.lines * NND_LINE_BYTES;
    input.from += input.lines * NND_LINE_BYTES;
  }
#else
  const struct nnd_tiles tiles = nnd_pixel_tiles(pixels, vectors, half);
  struct nnd_prefetch weights = nnd_next_panel(s, tiles, vectors, d.weights);
  nnd_size pixel = 0;
  for (nnd_size tile = 0; tile < tiles.large; tile++, pixel += tiles.small + 1) {
    const struct nnd_tile t = {(int)tiles.small + 1, vectors, half};
    nnd_pointwise_tile(s, sum, t, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_BYTES;
    input.from += input.lines * NND_LINE_BYTES;
  }
  for (nnd_size tile = tiles.large; tile < tiles.count; tile++, pixel += tiles.small) {
    const struct nnd_tile t = {(int)tiles.small, vectors, half};
    nnd_pointwise_tile(s, sum, t, nnd_pointwise_at(s, d, pixel), weights, input);
    weights.from += weights.lines * NND_LINE_BYTES;
    input.from += input.lines * NND_LINE_BYTES;
  }
#endif
}

/* The last panel takes what is left, but never a single vector where it can be joined to the panel before. */
NND_INLINE int nnd_last_panel(nnd_size blocks) {
  const int rest = (int)(blocks % NND_PANEL);
  if (rest == 0) return (int)nnd_min(blocks, NND_PANEL);
  return NND_PANEL == 2 && blocks > 1 ? rest + NND_PANEL : rest;
}

/* Panels before the last one. */
NND_INLINE nnd_size nnd_full_panels(nnd_size blocks) { return (blocks - nnd_last_panel(blocks)) / NND_PANEL; }

/* How many calls of the micro-kernel `pixels` pixels take: what a prefetch is spread over. */
NND_INLINE nnd_size nnd_pointwise_tiles(struct nnd_pointwise s, nnd_size pixels) {
  const nnd_size blocks = nnd_blocks(s.out_channels);
  return nnd_full_panels(blocks) * nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) +
         nnd_ceil_div(pixels, nnd_tile_pixels(nnd_last_panel(blocks), nnd_has_half(s.out_channels)));
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
  for (nnd_size panel = first; full > 0 && panel < nnd_min(last, full); panel++) {
    nnd_pointwise_panel(s, sum, pixels, NND_PANEL, 0, nnd_pointwise_from(s, d, panel), input);
    input.from += nnd_ceil_div(pixels, NND_ACCUMULATORS / NND_PANEL) * input.lines * NND_LINE_BYTES;
  }
  if (last > full)
    nnd_pointwise_panel(s, sum, pixels, nnd_last_panel(nnd_blocks(s.out_channels)), nnd_has_half(s.out_channels),
                        nnd_pointwise_from(s, d, full), input);
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
#ifdef NND_ANY_SHAPE
    nnd_pointwise_panels(s, NND_WHOLE, unit % windows + 1 < windows ? t->window : rest, first_panel, last_panel, at,
                         nnd_no_prefetch);
#else
    if (unit % windows + 1 < windows || rest == t->window)
      nnd_pointwise_panels(s, NND_WHOLE, t->window, first_panel, last_panel, at, nnd_no_prefetch);
    else
      nnd_pointwise_panels(s, NND_WHOLE, rest, first_panel, last_panel, at, nnd_no_prefetch);
#endif
  }
}

#endif
