/* SPDX-License-Identifier: Apache-2.0
 *
 * The other compute units of a convolution: lanes are output channels, a block is some positions of one row x some
 * vectors of output channels. So it fits rows of any length, where tiles of whole vectors of pixels have lanes to
 * spare; its sums have to be transposed to lie in planes, which few taps and channels do not pay for.
 */
#ifndef NND_UNITS_IMAGES_COLUMNS_H
#define NND_UNITS_IMAGES_COLUMNS_H

#include "../layout.h"
#include "images_tiles.h"

#define NND_COLUMN_PANEL (2 * NND_LANES) /* output channels of a panel of weights */
#define NND_COLUMN_POSITIONS (NND_TILE_CHANNELS < NND_LANES ? NND_TILE_CHANNELS : NND_LANES) /* at most: 14, 6, 4 */

struct nnd_image_column {
  const float *in;
  nnd_size plane, channels, taps; /* plane: from channel to channel, or block of channels to block */
  const struct nnd_tap *tap;
  const float *weights; /* [biases, then for each tap each channel's][NND_COLUMN_PANEL] */
  nnd_size panel;       /* floats from panel to panel */
  float *out;           /* [position][vectors of output channels] */
  float low;
};

typedef void (*nnd_column_unit)(const struct nnd_image_column *t);

/* One channel of one tap; pixels lie `apart` floats from each other. */
NND_INLINE void nnd_column_channel(int positions, int vectors, int apart, const float *in, const float *weights,
                                   nnd_size panel, vf *sums) {
  vf w[4];
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const float *at = weights + v / 2 * panel + v % 2 * NND_LANES;
    __builtin_prefetch(at + NND_FETCHED_AHEAD * NND_COLUMN_PANEL, 0, 3);
    w[v] = nnd_load_any(at);
  }
  NND_UNROLL for (int p = 0; p < positions; p++) {
    const vf x = nnd_splat(in[p * apart]);
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[p * vectors + v] += w[v] * x;
  }
}

/* `vectors`: 1, 2, or 4 of two panels. */
NND_INLINE void nnd_image_column_unit(int positions, int vectors, int is_blocked, const struct nnd_image_column *t) {
  vf sums[NND_ACCUMULATORS];
  const float *weights = t->weights;
  const nnd_size plane = t->plane, panel = t->panel;
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf bias = nnd_load_any(weights + v / 2 * panel + v % 2 * NND_LANES);
    NND_UNROLL for (int p = 0; p < positions; p++) sums[p * vectors + v] = bias;
  }
  for (nnd_size tap = 0; tap < t->taps; tap++) {
    const float *in = t->in + t->tap[tap].in;
    weights = t->weights + t->tap[tap].row * NND_COLUMN_PANEL;
    if (is_blocked) {
      NND_NO_UNROLL for (nnd_size left = t->channels; left > 0; left -= NND_LANES, in += plane) {
        const nnd_size count = nnd_min(left, NND_LANES);
        NND_NO_UNROLL for (nnd_size i = 0; i < count; i++, weights += NND_COLUMN_PANEL)
          nnd_column_channel(positions, vectors, NND_LANES, in + i, weights, panel, sums);
      }
      continue;
    }
    NND_NO_UNROLL for (nnd_size i = 0; i < t->channels; i++, in += plane, weights += NND_COLUMN_PANEL) {
      __builtin_prefetch(in + NND_FETCHED_AHEAD * plane, 0, 3);
      nnd_column_channel(positions, vectors, 1, in, weights, panel, sums);
    }
  }
  const vf low = nnd_splat(t->low);
  NND_UNROLL for (int i = 0; i < positions * vectors; i++)
    nnd_store_any(t->out + i * NND_LANES, nnd_at_least(low, sums[i]));
}

/* Four vectors of weights and one of a pixel have to find registers too. */
#define NND_COLUMN_FEW ((NND_ACCUMULATORS - 4) / 4)
#define NND_COLUMN_FITS(positions, vectors) ((positions) <= (vectors == 4 ? NND_COLUMN_FEW : NND_COLUMN_POSITIONS))
#define NND_DEFINE_COLUMN(positions, vectors)                                                                          \
  static void nnd_image_column_##vectors##_##positions(const struct nnd_image_column *t) {                             \
    if (NND_COLUMN_FITS(positions, vectors)) nnd_image_column_unit(positions, vectors, 0, t);                          \
  }                                                                                                                    \
  static void nnd_image_blocked_##vectors##_##positions(const struct nnd_image_column *t) {                            \
    if (NND_COLUMN_FITS(positions, vectors)) nnd_image_column_unit(positions, vectors, 1, t);                          \
  }
#define NND_LISTED_COLUMN(positions, vectors)                                                                          \
  NND_COLUMN_FITS(positions, vectors) ? nnd_image_column_##vectors##_##positions : 0,
#define NND_LISTED_BLOCKED(positions, vectors)                                                                         \
  NND_COLUMN_FITS(positions, vectors) ? nnd_image_blocked_##vectors##_##positions : 0,

NND_EACH_TILE(NND_DEFINE_COLUMN, 1)
NND_EACH_TILE(NND_DEFINE_COLUMN, 2)
NND_EACH_TILE(NND_DEFINE_COLUMN, 4)

/* Whether pixels are blocks of channels, then by vectors of output channels and positions; null where there is none. */
#define NND_LISTED_COLUMNS(LISTED)                                                                                     \
  {{0}, {0, NND_EACH_TILE(LISTED, 1)}, {0, NND_EACH_TILE(LISTED, 2)}, {0}, {0, NND_EACH_TILE(LISTED, 4)}}
static const nnd_column_unit nnd_image_columns[2][5][15] = {NND_LISTED_COLUMNS(NND_LISTED_COLUMN),
                                                            NND_LISTED_COLUMNS(NND_LISTED_BLOCKED)};

/* Floats of packed weights (O, C, taps) and biases. */
NND_INLINE nnd_size nnd_packed_columns(nnd_size out_channels, nnd_size k) {
  return nnd_ceil_div(out_channels, NND_COLUMN_PANEL) * NND_COLUMN_PANEL * (k + 1);
}

static void nnd_pack_columns(const float *weights, const float *bias, nnd_size out_channels, nnd_size channels,
                             nnd_size taps, float *to) {
  for (nnd_size begin = 0; begin < out_channels; begin += NND_COLUMN_PANEL)
    for (nnd_size row = 0; row <= taps * channels; row++)
      for (nnd_size o = begin; o < begin + NND_COLUMN_PANEL; o++, to++) {
        const nnd_size tap = (row - 1) / channels, c = (row - 1) % channels;
        if (o >= out_channels) *to = 0.0f;
        else *to = row ? weights[(o * channels + c) * taps + tap] : bias ? bias[o] : 0.0f;
      }
}

/* How many vectors of output channels a block of so many positions takes, of `left` channels. */
NND_INLINE int nnd_column_vectors(nnd_size positions, nnd_size left) {
  if (left > NND_COLUMN_PANEL && positions <= NND_COLUMN_FEW) return 4;
  return left > NND_LANES ? 2 : 1;
}

/* Stores a block of sums, from position `at` on, to planes of the channels from `channel` on; it may go on in the next
 * row of the output. */
static void nnd_store_columns(const struct nnd_tiles *t, nnd_size at, nnd_size positions, int vectors,
                              nnd_size channel) {
  const nnd_size wide = vectors * NND_LANES, row = at / t->pitch, column = at % t->pitch;
  float *out = t->out + row * t->out_row + column;
  if (t->activation > NND_RELU) nnd_activate(t->activation, t->kept, wide, positions, wide);
  for (nnd_size v = 0; v < vectors && channel + v * NND_LANES < t->out_channels; v++) {
    vf rows[NND_LANES];
    NND_UNROLL for (int p = 0; p < NND_LANES; p++)
      rows[p] = nnd_load_any(t->kept + (p < positions ? p : 0) * wide + v * NND_LANES);
    nnd_transpose(rows);
    const nnd_size held = nnd_min(NND_LANES, t->out_channels - channel - v * NND_LANES);
    float *to = out + (channel + v * NND_LANES) * t->out_plane;
    nnd_size begin = 0, end = nnd_min(positions, t->pitch - column);
    for (; begin < positions; begin = end, end = nnd_min(positions, end + t->pitch), to += t->out_row - t->pitch)
      NND_UNROLL for (int i = 0; i < NND_LANES; i++)
        if (i < held) nnd_store_lanes(to + i * t->out_plane, rows[i], begin, end);
  }
}

/* Blocks of `positions` from position `at` on (in rows `pitch` apart), by the output channels from `channel` on, which
 * are two panels or what is left; `t->weights` are of nnd_pack_columns(). */
static void nnd_column_block(const struct nnd_tiles *t, nnd_size at, nnd_size positions, nnd_size channel) {
  const nnd_size k = t->k, end = nnd_min(t->out_channels, channel + 2 * NND_COLUMN_PANEL);
  struct nnd_image_column call = {.in = t->in + (at - t->origin) * t->apart, .plane = t->plane, .channels = t->channels,
                                  .taps = t->taps, .tap = t->tap, .panel = (k + 1) * NND_COLUMN_PANEL, .out = t->kept,
                                  .low = nnd_least(t->activation)};
  while (channel < end) {
    const int vectors = nnd_column_vectors(positions, end - channel);
    call.weights = t->weights + channel * (k + 1);
    nnd_image_columns[t->apart > 1][vectors][positions](&call);
    nnd_store_columns(t, at, positions, vectors, channel);
    channel += vectors * NND_LANES;
  }
}

#endif
