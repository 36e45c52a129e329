/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tile.h"

#include "kernels/begin.h"

/* Sums: [pixel][whole vector], then [pair of pixels] of halves. */
struct nnd_tile {
  int pixels, vectors, half;
};
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
  NND_UNROLL
  for (int lane = NND_LANES / 2; lane < NND_LANES; lane++) mask[lane] = -1;
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
  if (has_neighbour)
    memcpy(&pair, in, sizeof pair);
  else
    pair = *in;
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

/* Multiply-adds of one vector of weights for each of the tile's, `w`, with what X(p) gives for its pixels p. A macro:
 * registers must be filled where they are used. */
#define NND_MULTIPLY_TILE(t, sums, w, upper, X)                                                                        \
  {                                                                                                                    \
    const int whole = nnd_tile_whole(t), pairs = nnd_tile_pairs(t);                                                    \
    NND_UNROLL                                                                                                         \
    for (int p = 0; !t.half && p < t.pixels; p++) {                                                                    \
      const vf x = X(p);                                                                                               \
      NND_UNROLL                                                                                                       \
      for (int v = 0; v < whole; v++) {                                                                                \
        sums[p * whole + v] = nnd_multiply_add(sums[p * whole + v], w[v], x);                                          \
        NND_IN_TURN(sums[p * whole + v]);                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    NND_UNROLL                                                                                                         \
    for (int pair = 0; pair < pairs; pair++) {                                                                         \
      const int p = 2 * pair, q = p + 1 < t.pixels ? p + 1 : p;                                                        \
      const vf x = X(p), y = q == p ? x : X(q);                                                                        \
      NND_UNROLL                                                                                                       \
      for (int v = 0; v < whole; v++) {                                                                                \
        sums[p * whole + v] = nnd_multiply_add(sums[p * whole + v], w[v], x);                                          \
        if (q != p) sums[q * whole + v] = nnd_multiply_add(sums[q * whole + v], w[v], y);                              \
      }                                                                                                                \
      vf *half = &sums[t.pixels * whole + pair];                                                                       \
      *half = nnd_multiply_add(*half, w[whole], nnd_select(upper, y, x));                                              \
    }                                                                                                                  \
  }

NND_INLINE int nnd_tile_is_small(struct nnd_tile t) { return nnd_sums_are_split(t.pixels, t.vectors, t.half); }

static const _Alignas(vf) nnd_elem nnd_zeros[NND_LANES];

/* From where a tap's pixels are read that may lie beside the input: the tile's first and its last one. */
struct nnd_edges {
  const nnd_elem *first, *last;
};

/* Whether pixel `pixel` of a tile reads beside the input, where the tap of the first one is at `column`. */
NND_INLINE int nnd_is_beside(int way, const struct nnd_tile_job *j, nnd_size column, nnd_size pixel) {
  return j->width > 0 && (size_t)(column + pixel * nnd_pixel_step(way, j)) >= (size_t)j->width;
}

NND_INLINE struct nnd_edges nnd_edges_of(int way, struct nnd_tile t, const struct nnd_tile_job *j, nnd_size column,
                                         const nnd_elem *in) {
  const int last = t.pixels - 1;
  const nnd_elem *at_last = in + last * nnd_pixel_step(way, j) * NND_LANES;
  return (struct nnd_edges){nnd_is_beside(way, j, column, 0) ? nnd_zeros : in,
                            nnd_is_beside(way, j, column, last) ? nnd_zeros : at_last};
}

/* Multiply-adds of `count` input channels (of one block) into the sums; those of odd channels into `odd` where there
 * are few. With `has_edges` the pixels at the ends are read from `edges`. */
NND_INLINE void nnd_tile_block(int way, struct nnd_tile t, vf *sums, vf *odd, nnd_size count, const nnd_elem *in,
                               nnd_size pixel_step, int has_edges, struct nnd_edges edges, const nnd_weight *weights) {
  const vi upper = t.half ? nnd_upper_lanes() : (vi){0};
  const nnd_size step = (way == NND_ANYWHERE ? pixel_step : way == NND_SECOND ? 2 : 1) * NND_LANES;
#define NND_AT(p)                                                                                                      \
  (has_edges && (p) == 0 ? edges.first : has_edges && (p) == t.pixels - 1 ? edges.last : in + (p) * step)
#if defined(__aarch64__) /* multiplies by one lane of a vector: the pixels are loaded once for four channels */
  if (count == NND_LANES && !t.half && way != NND_ANYWHERE) {
    vf x[NND_ACCUMULATORS];
    NND_UNROLL
    for (int p = 0; p < t.pixels; p++) x[p] = nnd_load(NND_AT(p));
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) {
      NND_UNROLL
      for (int v = 0; v < t.vectors; v++) {
        const vf w = nnd_load(weights + (i * t.vectors + v) * NND_LANES);
        NND_UNROLL
        for (int p = 0; p < t.pixels; p++) sums[p * t.vectors + v] += w * x[p][i];
      }
    }
    return;
  }
#endif
#define NND_X(p) nnd_broadcast(NND_AT(p), i + 1 < count)
#define NND_NEXT_CHANNELS(to)                                                                                          \
  {                                                                                                                    \
    nnd_weights w[4];                                                                                                  \
    NND_ONE_REGISTER(in);                                                                                              \
    NND_ONE_REGISTER(weights);                                                                                         \
    NND_UNROLL                                                                                                         \
    for (int v = 0; v < t.vectors; v++) w[v] = nnd_load_weights(weights + v * NND_GROUP * NND_LANES);                  \
    NND_MULTIPLY_TILE(t, to, w, upper, NND_X)                                                                          \
    i += NND_GROUP, in += NND_GROUP, weights += NND_GROUP * t.vectors * NND_LANES;                                     \
    edges.first += NND_GROUP, edges.last += NND_GROUP;                                                                 \
    if (has_edges) NND_ONE_REGISTER(edges.first);                                                                      \
    if (has_edges && t.pixels > 1) NND_ONE_REGISTER(edges.last);                                                       \
  }
  nnd_size i = 0;
#if defined(__wasm__) /* where each turn of a loop asks whether to stop */
  if (!nnd_tile_is_small(t)) NND_NO_UNROLL
  while (i + 3 < count) {
    NND_NEXT_CHANNELS(sums)
    NND_NEXT_CHANNELS(sums)
    NND_NEXT_CHANNELS(sums)
    NND_NEXT_CHANNELS(sums)
  }
#endif
  if (nnd_tile_is_small(t)) NND_NO_UNROLL
  while (i + 1 < count) {
    NND_NEXT_CHANNELS(sums)
    NND_NEXT_CHANNELS(odd)
  }
  NND_NO_UNROLL
  while (i < count) NND_NEXT_CHANNELS(sums)
#undef NND_NEXT_CHANNELS
#undef NND_X
#undef NND_AT
}

/* Fetches `width` floats of each channel where the last rows of taps would be, seen from `from`: a tile reads few floats
 * of many rows, which the processor does not foresee. */
NND_INLINE void nnd_fetch_planes(nnd_size width, const struct nnd_tile_job *j, const float *from) {
  for (nnd_size row = j->rows - j->fetch_rows; row < j->rows; row++)
    for (nnd_size i = 0; i < j->channels; i++) {
      const char *line = (const char *)(from + j->offsets[row * j->columns * j->channels + i]);
      for (nnd_size at = 0; at < width * (nnd_size)sizeof(float); at += NND_LINE_BYTES)
        __builtin_prefetch(line + at, 0, 3);
    }
}

/* `count` channels of a tap of planes, in floats. With `has_edges` the first pixel, the last one, or both are multiplied
 * by zeros. */
NND_INLINE void nnd_tile_plane_tap(int way, struct nnd_tile t, vf *sums, const struct nnd_tile_job *j, nnd_size count,
                                   const nnd_size *offsets, const float *begin, int has_edges, int skips_first,
                                   int skips_last, const float *weights) {
  static const float zero = 0.0f;
  const nnd_size step = nnd_pixel_step(way, j);
  NND_NO_UNROLL
  for (nnd_size i = 0; i < count; i++, weights += t.vectors * NND_LANES) {
    const float *in = begin + offsets[i];
    NND_ONE_REGISTER(in);
    vf w[4];
    NND_UNROLL
    for (int v = 0; v < t.vectors; v++) w[v] = nnd_load(weights + v * NND_LANES);
    NND_UNROLL
    for (int p = 0; p < t.pixels; p++) {
      const int is_skipped = has_edges && ((p == 0 && skips_first) || (p == t.pixels - 1 && skips_last));
      const float x = *(is_skipped ? &zero : in + p * step);
      NND_UNROLL
      for (int v = 0; v < t.vectors; v++) {
        sums[p * t.vectors + v] += w[v] * x;
        NND_IN_TURN(sums[p * t.vectors + v]);
      }
    }
  }
}

/* All taps and channels of planes; the first pixel's first tap is at `column` of the input. */
NND_INLINE void nnd_tile_planes(int way, struct nnd_tile t, vf *sums, const struct nnd_tile_job *j, const float *begin,
                                nnd_size column) {
  const nnd_size step = nnd_pixel_step(way, j), rows = j->rows, columns = j->columns, channels = j->channels;
  const nnd_size last = column + (t.pixels - 1) * step + (columns - 1) * j->dilation, *offsets = j->offsets;
  const float *weights = j->weights;
  if (j->width == 0 || (column >= 0 && last < j->width)) {
    nnd_tile_plane_tap(way, t, sums, j, rows * columns * channels, offsets, begin, 0, 0, 0, weights);
    return;
  }
  nnd_size at = column;
  NND_NO_UNROLL
  for (nnd_size kx = 0; kx < rows * columns; kx++) {
    nnd_tile_plane_tap(way, t, sums, j, channels, offsets, begin, 1, nnd_is_beside(way, j, at, 0),
                       nnd_is_beside(way, j, at, t.pixels - 1), weights);
    offsets += channels, weights += channels * t.vectors * NND_LANES;
    at = kx % columns + 1 == columns ? column : at + j->dilation;
  }
}

/* What tile `tile` fetches of channel block `block`. WebAssembly has no instruction for that, but would run the loop. */
NND_INLINE void nnd_prefetch_block(const struct nnd_prefetch *fetch, nnd_size block, nnd_size tile) {
#if defined(__wasm__)
  (void)fetch, (void)block, (void)tile;
#else
  const char *from = fetch->from + block * fetch->plane + tile * fetch->lines * NND_LINE_BYTES;
  NND_NO_UNROLL
  for (int i = 0; i < fetch->lines; i++) __builtin_prefetch(from + i * NND_LINE_BYTES, 0, 2);
#endif
}

/* All channels of one tap of NCHWc; tile `tile` fetches its share of what is prefetched. */
NND_INLINE void nnd_tile_channels(int way, struct nnd_tile t, vf *sums, vf *odd, const struct nnd_tile_job *j,
                                  const nnd_elem *in, nnd_size tile) {
  const struct nnd_edges none = {0};
  const nnd_weight *weights = j->weights;
  nnd_size left = j->channels;
  NND_NO_UNROLL
  for (nnd_size block = 0; left > 0; block++, left -= NND_LANES) {
    nnd_prefetch_block(&j->next_weights, block, tile);
    nnd_prefetch_block(&j->next_input, block, tile);
    if (left >= NND_LANES) /* whole blocks, nearly all: how many channels is compiled in */
      nnd_tile_block(way, t, sums, odd, NND_LANES, in, 1, 0, none, weights);
    else
      nnd_tile_block(way, t, sums, odd, nnd_min(left, NND_LANES), in, 1, 0, none, weights);
    in += j->in_plane;
    weights += NND_LANES * t.vectors * NND_LANES;
  }
}

/* All taps and channels of NCHWc. */
NND_INLINE void nnd_tile_taps(int way, struct nnd_tile t, vf *sums, vf *odd, const struct nnd_tile_job *j,
                              const nnd_elem *begin, nnd_size tile) {
  const nnd_size of_block = NND_LANES * t.vectors * NND_LANES;
  if (way == NND_NEXT && j->width == 0 && j->rows == 1 && j->columns == 1) {
    nnd_tile_channels(way, t, sums, odd, j, begin, tile);
    return;
  }
  const nnd_elem *of_row = begin;
  const nnd_weight *row_weights = j->weights;
  const nnd_size first = j->column + tile * t.pixels * nnd_pixel_step(way, j);
  NND_NO_UNROLL
  for (nnd_size row = j->rows; row > 0; row--, of_row += j->row_step, row_weights += j->row_weights) {
    const nnd_elem *in = of_row;
    const nnd_weight *weights = row_weights;
    NND_NO_UNROLL
    for (nnd_size left = j->channels; left > 0; left -= NND_LANES, in += j->in_plane, weights += of_block) {
      const nnd_size count = nnd_min(left, NND_LANES), column_step = j->column_step, tap_weights = j->tap_weights;
      const nnd_elem *from = in;
      const nnd_weight *of_tap = weights;
      nnd_size at = first;
      NND_NO_UNROLL
      for (nnd_size column = j->columns; column > 0; column--) {
        nnd_tile_block(way, t, sums, odd, count, from, j->pixel_step, 1, nnd_edges_of(way, t, j, at, from), of_tap);
        from += column_step, of_tap += tap_weights, at += j->dilation;
      }
    }
  }
}

/* Only tiles side by side are parts of sums. */
NND_INLINE int nnd_sum_of(int way, const struct nnd_tile_job *j) { return way == NND_NEXT ? j->sum : NND_WHOLE; }

/* Moves the pixels of a tile between the output, where they have others between them, and `tile`, where they lie side by
 * side, plane by plane: a loop of its own, so that no tile has to hold so many addresses. */
NND_NOINLINE void nnd_move_spread(const struct nnd_tile_job *j, int pixels, int vectors, int is_read, nnd_elem *tile,
                                  nnd_elem *out) {
  for (int v = 0; v < vectors; v++)
    for (int p = 0; p < pixels; p++, tile += NND_LANES) {
      nnd_elem *at = out + v * j->out_plane + p * j->out_step * NND_LANES;
      if (is_read)
        memcpy(tile, at, NND_LANES * sizeof(nnd_elem));
      else if (j->stream)
        nnd_stream(at, nnd_read(tile));
      else
        memcpy(at, tile, NND_LANES * sizeof(nnd_elem));
    }
}

/* What a tile's sums begin with: the bias, or what earlier parts have left in the output, whose planes are `plane`
 * elements apart. */
NND_INLINE void nnd_first_sums(int way, struct nnd_tile t, vf *sums, const struct nnd_tile_job *j, nnd_size plane,
                               const nnd_elem *out) {
  const int whole = nnd_tile_whole(t), pairs = nnd_tile_pairs(t), from_bias = nnd_sum_of(way, j) & NND_FIRST;
  NND_UNROLL
  for (int v = 0; v < whole; v++) NND_UNROLL
  for (int p = 0; p < t.pixels; p++)
    sums[p * whole + v] = from_bias ? nnd_load(j->bias + v * NND_LANES) : nnd_read(out + v * plane + p * NND_LANES);
  NND_UNROLL
  for (int pair = 0; pair < pairs; pair++) {
    const int p = 2 * pair, second = p + 1 < t.pixels ? p + 1 : p;
    const vf x = from_bias ? nnd_load(j->bias + whole * NND_LANES) : nnd_read(out + whole * plane + p * NND_LANES);
    const vf y = from_bias ? x : nnd_read(out + whole * plane + second * NND_LANES);
    sums[t.pixels * whole + pair] = nnd_joined_halves(x, y);
  }
}

/* A vector of sums of each pixel. */
NND_INLINE void nnd_take_vector(struct nnd_tile t, const vf *sums, int v, vf *run) {
  const int whole = nnd_tile_whole(t);
  NND_UNROLL
  for (int p = 0; p < t.pixels; p++) {
    if (v < whole)
      run[p] = sums[p * whole + v];
    else
      run[p] = p % 2 ? nnd_upper_half(sums[t.pixels * whole + p / 2]) : sums[t.pixels * whole + p / 2];
  }
}

/* Ends a vector of sums of each pixel and stores it. */
NND_INLINE void nnd_store_vector(int way, struct nnd_tile t, vf *run, const struct nnd_tile_job *j,
                                 const nnd_elem *residual, vf number, int stream, nnd_elem *out) {
  if (nnd_sum_of(way, j) & NND_LAST) nnd_end_sums(j->end, run, t.pixels, residual, number);
  if (stream) NND_UNROLL
  for (int p = 0; p < t.pixels; p++) nnd_stream(out + p * NND_LANES, run[p]);
  else NND_UNROLL
  for (int p = 0; p < t.pixels; p++) nnd_write(out + p * NND_LANES, run[p]);
}

/* Ends the sums and stores them; of halves, the upper lanes hold anything then. Where there are several vectors it is a
 * loop, and their sums move on from register to register: the ends are a third of the code of a tile. Of whole panels, as
 * most tiles are, the ends stand there for each: 14 x 32 sums of 16 channels take 1.02 of the time in a loop. */
NND_INLINE void nnd_store_tile(int way, struct nnd_tile t, const vf *sums, const struct nnd_tile_job *j,
                               const nnd_elem *residual, int stream, nnd_size plane, nnd_elem *out) {
  vf run[NND_MOST_PIXELS], later[NND_MOST_PIXELS];
  if (t.vectors == NND_PANEL && !t.half) {
    NND_UNROLL
    for (int v = 0; v < t.vectors; v++) {
      nnd_take_vector(t, sums, v, run);
      nnd_store_vector(way, t, run, j, residual + v * j->out_plane, nnd_end_number(j->end, j->numbers, v), stream,
                       out + v * plane);
    }
    return;
  }
  nnd_take_vector(t, sums, 0, run);
  if (t.vectors > 1) nnd_take_vector(t, sums, 1, later);
  NND_NO_UNROLL
  for (int v = 0;; out += plane, residual += j->out_plane) {
    nnd_store_vector(way, t, run, j, residual, nnd_end_number(j->end, j->numbers, v), stream, out);
    if (++v == t.vectors) return;
    NND_UNROLL
    for (int p = 0; p < t.pixels; p++) run[p] = later[p];
    if (t.vectors > 2) nnd_take_vector(t, sums, 2, later);
  }
}

NND_INLINE void nnd_tile_run(int way, struct nnd_tile t, const struct nnd_tile_job *j) {
  const nnd_size of_tile = t.pixels * nnd_pixel_bytes(way, j);
  const int is_spread = nnd_is_spread(way, j), reads = is_spread && !(j->sum & NND_FIRST);
  _Alignas(vf) nnd_elem kept[NND_MOST_VECTORS * NND_MOST_PIXELS * NND_LANES];
  for (nnd_size tile = 0; tile < j->count; tile++) {
    vf sums[NND_ACCUMULATORS], odd[NND_ACCUMULATORS];
    nnd_elem *out = j->out + tile * t.pixels * nnd_out_pixel(way, j), *to = is_spread ? kept : out;
    const nnd_size plane = is_spread ? t.pixels * NND_LANES : j->out_plane;
    const nnd_elem *residual =
        j->residual ? j->residual + tile * t.pixels * NND_LANES : j->out; /* read where it is one */
    const char *in = (const char *)j->in + tile * of_tile;
    if (reads) nnd_move_spread(j, t.pixels, t.vectors, 1, kept, out);
    nnd_first_sums(way, t, sums, j, plane, to);
    if (way >= NND_PLANES) {
      const nnd_size step = nnd_pixel_step(way, j), column = j->column + tile * t.pixels * step;
      if (j->fetch_rows > 0) nnd_fetch_planes(t.pixels * step, j, (const float *)in + j->fetch_ahead);
      nnd_tile_planes(way, t, sums, j, (const float *)in, column);
    } else {
      const int sets = nnd_tile_is_small(t) ? t.pixels * t.vectors : 0;
      NND_UNROLL
      for (int i = 0; i < sets; i++) odd[i] = nnd_splat(0.0f);
      nnd_tile_taps(way, t, sums, odd, j, (const nnd_elem *)in, tile);
      NND_UNROLL
      for (int i = 0; i < sets; i++) sums[i] += odd[i];
    }
    nnd_store_tile(way, t, sums, j, residual, j->stream && !is_spread, plane, to);
    if (is_spread) nnd_move_spread(j, t.pixels, t.vectors, 0, kept, out);
  }
}

/* clang-format off */

/* The lists: X(pixels, vectors, half); of pixels anywhere, which are few steps of few networks, some sizes alone. */
#if NND_LANES == 16
#define NND_TILE_LIST(X) \
  X(1, 1, 0) X(2, 1, 0) X(3, 1, 0) X(4, 1, 0) X(5, 1, 0) X(6, 1, 0) X(7, 1, 0) X(8, 1, 0) X(9, 1, 0) X(10, 1, 0) \
  X(11, 1, 0) X(12, 1, 0) X(13, 1, 0) X(14, 1, 0) X(15, 1, 0) X(16, 1, 0) X(17, 1, 0) X(18, 1, 0) X(19, 1, 0) \
  X(20, 1, 0) X(21, 1, 0) X(22, 1, 0) X(23, 1, 0) X(24, 1, 0) X(25, 1, 0) X(26, 1, 0) X(27, 1, 0) X(28, 1, 0) \
  X(1, 2, 0) X(2, 2, 0) X(3, 2, 0) X(4, 2, 0) X(5, 2, 0) X(6, 2, 0) X(7, 2, 0) X(8, 2, 0) X(9, 2, 0) X(10, 2, 0) \
  X(11, 2, 0) X(12, 2, 0) X(13, 2, 0) X(14, 2, 0) X(1, 3, 0) X(2, 3, 0) X(3, 3, 0) X(4, 3, 0) X(5, 3, 0) X(6, 3, 0) \
  X(7, 3, 0) X(8, 3, 0) X(9, 3, 0)
#define NND_HALF_LIST(X) \
  X(1, 1, 1) X(2, 1, 1) X(4, 1, 1) X(6, 1, 1) X(8, 1, 1) X(12, 1, 1) X(16, 1, 1) X(20, 1, 1) X(24, 1, 1) X(28, 1, 1) \
  X(32, 1, 1) X(36, 1, 1) X(40, 1, 1) X(44, 1, 1) X(48, 1, 1) X(54, 1, 1) X(1, 2, 1) X(2, 2, 1) X(3, 2, 1) \
  X(4, 2, 1) X(5, 2, 1) X(6, 2, 1) X(7, 2, 1) X(8, 2, 1) X(9, 2, 1) X(10, 2, 1) X(11, 2, 1) X(12, 2, 1) X(13, 2, 1) \
  X(14, 2, 1) X(15, 2, 1) X(16, 2, 1) X(17, 2, 1) X(18, 2, 1) X(1, 3, 1) X(2, 3, 1) X(3, 3, 1) X(4, 3, 1) X(5, 3, 1) \
  X(6, 3, 1) X(7, 3, 1) X(8, 3, 1) X(9, 3, 1) X(10, 3, 1)
#define NND_ANYWHERE_LIST(X) \
  X(1, 1, 0) X(2, 1, 0) X(4, 1, 0) X(8, 1, 0) X(14, 1, 0) X(28, 1, 0) X(1, 2, 0) X(2, 2, 0) X(4, 2, 0) X(8, 2, 0) \
  X(14, 2, 0) X(1, 3, 0) X(2, 3, 0) X(4, 3, 0) X(9, 3, 0)
#elif NND_LANES == 8
#define NND_TILE_LIST(X) \
  X(1, 1, 0) X(2, 1, 0) X(3, 1, 0) X(4, 1, 0) X(5, 1, 0) X(6, 1, 0) X(7, 1, 0) X(8, 1, 0) X(9, 1, 0) X(10, 1, 0) \
  X(11, 1, 0) X(12, 1, 0) X(1, 2, 0) X(2, 2, 0) X(3, 2, 0) X(4, 2, 0) X(5, 2, 0) X(6, 2, 0) X(1, 3, 0) X(2, 3, 0) \
  X(3, 3, 0) X(4, 3, 0)
#define NND_HALF_LIST(X) \
  X(1, 1, 1) X(4, 1, 1) X(8, 1, 1) X(12, 1, 1) X(16, 1, 1) X(22, 1, 1) X(1, 2, 1) X(2, 2, 1) X(4, 2, 1) X(6, 2, 1) \
  X(1, 3, 1) X(2, 3, 1) X(4, 3, 1)
#define NND_ANYWHERE_LIST NND_FEW_SIZES
#elif NND_PANEL == 2
#define NND_TILE_LIST(X) \
  X(1, 1, 0) X(2, 1, 0) X(4, 1, 0) X(6, 1, 0) X(8, 1, 0) X(12, 1, 0) X(1, 2, 0) X(2, 2, 0) X(3, 2, 0) X(4, 2, 0) \
  X(5, 2, 0) X(6, 2, 0) X(1, 3, 0) X(2, 3, 0) X(3, 3, 0) X(4, 3, 0)
#define NND_HALF_LIST(X)
#define NND_ANYWHERE_LIST NND_FEW_SIZES
#else
#define NND_TILE_LIST(X) \
  X(1, 1, 0) X(2, 1, 0) X(4, 1, 0) X(8, 1, 0) X(12, 1, 0) X(16, 1, 0) X(20, 1, 0) X(1, 2, 0) X(2, 2, 0) X(4, 2, 0) \
  X(6, 2, 0) X(8, 2, 0) X(10, 2, 0) X(1, 3, 0) X(2, 3, 0) X(3, 3, 0) X(4, 3, 0) X(5, 3, 0) X(6, 3, 0) X(1, 4, 0) \
  X(2, 4, 0) X(3, 4, 0) X(4, 4, 0) X(5, 4, 0)
#define NND_HALF_LIST(X)
#define NND_ANYWHERE_LIST(X) \
  X(1, 1, 0) X(4, 1, 0) X(20, 1, 0) X(1, 2, 0) X(4, 2, 0) X(10, 2, 0) X(1, 3, 0) X(6, 3, 0) X(1, 4, 0) X(2, 4, 0) \
  X(5, 4, 0)
#endif
#define NND_FEW_SIZES(X) \
  X(1, 1, 0) X(4, 1, 0) X(12, 1, 0) X(1, 2, 0) X(3, 2, 0) X(6, 2, 0) X(1, 3, 0) X(2, 3, 0) X(4, 3, 0)

/* clang-format on */

/* This file is compiled once for each way. */
#define NND_JOINED_(a, b, c, d) nnd_tile_##a##_##b##_##c##_##d
#define NND_TILE_NAME(way, pixels, vectors, half) NND_JOINED_(way, pixels, vectors, half)
#define NND_ONE_TILE(pixels, vectors, half)                                                                            \
  static __attribute__((noinline)) void NND_TILE_NAME(NND_WAY, pixels, vectors, half)(const struct nnd_tile_job *j) {  \
    nnd_tile_run(NND_WAY, (struct nnd_tile){pixels, vectors, half}, j);                                                \
  }
#if NND_WAY < 2
#define NND_TILES_OF_WAY(X) NND_TILE_LIST(X) NND_HALF_LIST(X)
#elif NND_WAY == 2
#define NND_TILES_OF_WAY NND_ANYWHERE_LIST
#else /* planes have no vectors to take two pixels from at once */
#define NND_TILES_OF_WAY NND_TILE_LIST
#endif
NND_TILES_OF_WAY(NND_ONE_TILE)

#define NND_REGISTER(pixels, vectors, half)                                                                            \
  nnd_tiles[NND_WAY][vectors - 1][half][pixels] = NND_TILE_NAME(NND_WAY, pixels, vectors, half);
#define NND_BEGIN_(way) nnd_begin_tiles_##way
#define NND_BEGIN(way) NND_BEGIN_(way)

void NND_BEGIN(NND_WAY)(void) {
  NND_TILES_OF_WAY(NND_REGISTER)
  for (int v = 0; v < NND_MOST_VECTORS; v++)
    for (int half = 0; half < 2; half++) {
      uint8_t *larger = nnd_larger_tile[NND_WAY][v][half], *smaller = nnd_smaller_tile[NND_WAY][v][half];
      for (int p = 1, last = 0; p <= NND_MOST_PIXELS; p++)
        smaller[p] = (uint8_t)(last = nnd_tiles[NND_WAY][v][half][p] ? p : last);
      for (int p = NND_MOST_PIXELS, last = 0; p > 0; p--)
        larger[p] = (uint8_t)(last = nnd_tiles[NND_WAY][v][half][p] ? p : last);
    }
}

#if NND_WAY == 0
nnd_tile_kernel nnd_tiles[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];
uint8_t nnd_larger_tile[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];
uint8_t nnd_smaller_tile[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];
#endif
