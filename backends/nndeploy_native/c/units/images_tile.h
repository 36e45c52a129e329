/* SPDX-License-Identifier: Apache-2.0
 *
 * The compute units of a convolution: out[o][p] = max(low, bias[o] + sum over taps and channels of weight * in), of a
 * block of some output channels x some vectors of pixels that lie side by side.
 *
 * Lanes are pixels, so that planes are read and written as they lie. The sums stay in registers: each tap of a channel
 * costs one load a vector of pixels and one broadcast an output channel. Where a tap's pixels lie is said by a list of
 * offsets, so that a unit knows no kernel size, stride, dilation or border.
 */
#ifndef NND_UNITS_IMAGES_TILE_H
#define NND_UNITS_IMAGES_TILE_H

#include "some.h"

#define NND_TILE_VECTORS 4                          /* of pixels, at most */
#define NND_TILE_CHANNELS (NND_ACCUMULATORS / 2)    /* output channels of a tile of weights, at most: 14, 6, 10 */
/* Channels: what a unit reads of a plane are few lines, which no processor foresees. Intel Xeon, 2026-11-22. */
#define NND_FETCHED_AHEAD 8
#define NND_TILE_PIXELS (NND_TILE_VECTORS * NND_LANES)

/* Where a tap's pixels lie behind the first pixel, and its first row of weights, the row of biases being 0. */
struct nnd_tap {
  nnd_size in, row;
};

struct nnd_image_tile {
  const float *in;     /* of the first pixel: tap t of channel c lies at in + tap[t].in + c * plane */
  nnd_size plane, channels, taps;
  const struct nnd_tap *tap;
  const float *weights; /* a row of biases, then for each tap a row of each channel: `weight_step` floats apart */
  nnd_size weight_step;
  float *out;
  nnd_size out_plane; /* floats from one output channel to the next */
  float low;          /* the least result: 0 for relu, else -infinity */
};

typedef void (*nnd_image_unit)(const struct nnd_image_tile *t);

NND_INLINE void nnd_image_tile_unit(int rows, int vectors, const struct nnd_image_tile *t) {
  vf sums[NND_ACCUMULATORS];
  const float *weights = t->weights;
  const nnd_size step = t->weight_step, plane = t->plane;
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[r * vectors + v] = nnd_splat(weights[r]);
  for (nnd_size tap = 0; tap < t->taps; tap++) {
    const float *in = t->in + t->tap[tap].in;
    weights = t->weights + t->tap[tap].row * step;
    NND_NO_UNROLL for (nnd_size channel = 0; channel < t->channels; channel++) {
      vf x[NND_TILE_VECTORS];
      const float *ahead = in + NND_FETCHED_AHEAD * plane;
      NND_UNROLL for (int v = 0; v <= vectors; v++) __builtin_prefetch(ahead + v * NND_LANES, 0, 3);
      NND_UNROLL for (int v = 0; v < vectors; v++) x[v] = nnd_load_any(in + v * NND_LANES);
      NND_UNROLL for (int r = 0; r < rows; r++) {
        const vf w = nnd_splat(weights[r]);
        NND_UNROLL for (int v = 0; v < vectors; v++) sums[r * vectors + v] += x[v] * w;
      }
      in += plane;
      weights += step;
    }
  }
  const vf low = nnd_splat(t->low);
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int v = 0; v < vectors; v++)
      nnd_store_any(t->out + r * t->out_plane + v * NND_LANES, nnd_at_least(low, sums[r * vectors + v]));
}

/* Blocks of three and four vectors take half a tile's channels, rounded up. */
NND_INLINE int nnd_tile_most_channels(int vectors) {
  return vectors <= 2 ? NND_TILE_CHANNELS : (NND_TILE_CHANNELS + 1) / 2;
}

#define NND_TILE_FITS(rows, vectors) ((rows) <= (vectors <= 2 ? NND_TILE_CHANNELS : (NND_TILE_CHANNELS + 1) / 2))
#define NND_EACH_TILE(X, vectors)                                                                                      \
  X(1, vectors) X(2, vectors) X(3, vectors) X(4, vectors) X(5, vectors) X(6, vectors) X(7, vectors) X(8, vectors)      \
  X(9, vectors) X(10, vectors) X(11, vectors) X(12, vectors) X(13, vectors) X(14, vectors)
#define NND_DEFINE_TILE(rows, vectors)                                                                                 \
  static void nnd_image_tile_##vectors##_##rows(const struct nnd_image_tile *t) {                                      \
    if (NND_TILE_FITS(rows, vectors)) nnd_image_tile_unit(rows, vectors, t);                                           \
  }
#define NND_LISTED_TILE(rows, vectors) NND_TILE_FITS(rows, vectors) ? nnd_image_tile_##vectors##_##rows : 0,

NND_EACH_TILE(NND_DEFINE_TILE, 1)
NND_EACH_TILE(NND_DEFINE_TILE, 2)
NND_EACH_TILE(NND_DEFINE_TILE, 3)
NND_EACH_TILE(NND_DEFINE_TILE, 4)

/* By vectors of pixels and output channels; null where there is none. */
static const nnd_image_unit nnd_image_tiles[NND_TILE_VECTORS + 1][15] = {
    {0},
    {0, NND_EACH_TILE(NND_LISTED_TILE, 1)},
    {0, NND_EACH_TILE(NND_LISTED_TILE, 2)},
    {0, NND_EACH_TILE(NND_LISTED_TILE, 3)},
    {0, NND_EACH_TILE(NND_LISTED_TILE, 4)},
};

#endif
