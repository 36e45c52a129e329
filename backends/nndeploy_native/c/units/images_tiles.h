/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of pixels by all output channels: planes where every tap is an offset -> output planes.
 *
 * Positions count through rows that lie `pitch` apart, of which the first `width` are pixels; what is computed behind a
 * row is discarded. A block that has nothing to discard is stored by its unit; of others the sums are kept and the
 * lanes that are pixels are put side by side.
 */
#ifndef NND_UNITS_IMAGES_TILES_H
#define NND_UNITS_IMAGES_TILES_H

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "activation.h"
#include "images_tile.h"

#define NND_TILE_WEIGHTS_CLOSE (1 << 20) /* bytes: more are streamed, each tile of them once for a group of blocks */

struct nnd_tiles {
  const float *in; /* of position `origin` */
  nnd_size origin, plane, channels, taps;
  nnd_size apart; /* floats from pixel to pixel: 1, or of columns NND_LANES where channels lie in blocks */
  const struct nnd_tap *tap;
  const float *weights; /* nnd_pack_tiles() */
  nnd_size k;           /* of the weights: channels by all taps of the kernel */
  nnd_size out_channels;
  float *out;
  nnd_size out_plane, pitch, width, length; /* `length` positions in all */
  nnd_size out_row; /* of columns: floats from row to row of the output */
  int activation;
  int in_place; /* nothing may be read behind the last position */
  float *kept;  /* NND_KEPT_FLOATS, and where in place NND_TILE_PIXELS for each channel behind them */
};

#define NND_KEPT_FLOATS (NND_TILE_CHANNELS * 2 * NND_LANES + 2 * NND_TILE_PIXELS)

/* The tiles that output channels are cut into: of equal size, or one channel more. */
NND_INLINE nnd_size nnd_channel_tiles(nnd_size channels) { return nnd_ceil_div(channels, NND_TILE_CHANNELS); }
NND_INLINE nnd_size nnd_tile_channel(nnd_size channels, nnd_size tile) {
  const nnd_size tiles = nnd_channel_tiles(channels);
  return tile * (channels / tiles) + nnd_min(tile, channels % tiles);
}

/* Floats of packed weights (O, C, taps) and biases, tile by tile: [bias, then tap by tap channels][O of the tile]. */
NND_INLINE nnd_size nnd_packed_tiles(nnd_size out_channels, nnd_size k) { return out_channels * (k + 1); }

static void nnd_pack_tiles(const float *weights, const float *bias, nnd_size out_channels, nnd_size channels,
                           nnd_size taps, float *to) {
  for (nnd_size tile = 0; tile < nnd_channel_tiles(out_channels); tile++) {
    const nnd_size begin = nnd_tile_channel(out_channels, tile), end = nnd_tile_channel(out_channels, tile + 1);
    for (nnd_size o = begin; o < end; o++) *to++ = bias ? bias[o] : 0.0f;
    for (nnd_size tap = 0; tap < taps; tap++)
      for (nnd_size c = 0; c < channels; c++)
        for (nnd_size o = begin; o < end; o++) *to++ = weights[(o * channels + c) * taps + tap];
  }
}

/* The pixels of one vector of positions: their lanes, how many, and the number of the first pixel. */
struct nnd_pixels {
  vi lane;
  nnd_size count, at;
};

NND_INLINE vf nnd_pick_lanes(vf x, vi lane) {
#if defined(__AVX512F__)
  return (vf)_mm512_permutexvar_ps((__m512i)lane, (__m512)x);
#elif defined(__AVX2__)
  return (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)lane);
#else
  vf picked;
  NND_UNROLL for (int i = 0; i < NND_LANES; i++) picked[i] = x[lane[i] & (NND_LANES - 1)];
  return picked;
#endif
}

static struct nnd_pixels nnd_pixels_of(const struct nnd_tiles *t, nnd_size position) {
  nnd_size y = position / t->pitch, x = position % t->pitch;
  struct nnd_pixels found = {.at = y * t->width + nnd_min(x, t->width)};
  for (int lane = 0; lane < NND_LANES && position < t->length; lane++, position++) {
    if (x < t->width) found.lane[found.count++] = lane;
    if (++x == t->pitch) x = 0;
  }
  return found;
}

/* Stores a block of sums that the unit has kept. */
static void nnd_store_pixels(const struct nnd_tiles *t, const struct nnd_pixels *pixels, nnd_size rows, int vectors,
                             float *out) {
  if (t->activation > NND_RELU)
    nnd_activate(t->activation, t->kept, vectors * NND_LANES, rows, vectors * NND_LANES);
  for (nnd_size r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      const vf sums = nnd_load_any(t->kept + (r * vectors + v) * NND_LANES);
      nnd_store_first(out + r * t->out_plane + pixels[v].at, nnd_pick_lanes(sums, pixels[v].lane), pixels[v].count);
    }
}

/* The last block, where what it reads lies in the caller's memory: copied, for nothing behind the end may be read. */
NND_INLINE const float *nnd_copied_end(const struct nnd_tiles *t, nnd_size position, int vectors) {
  float *to = t->kept + NND_KEPT_FLOATS;
  for (nnd_size c = 0; c < t->channels; c++)
    for (int v = 0; v < vectors; v++, to += NND_LANES) {
      const nnd_size left = t->length - position - v * NND_LANES;
      const float *from = t->in + (position - t->origin) + c * t->plane + v * NND_LANES;
      nnd_store_any(to, left >= NND_LANES ? nnd_load_any(from) : nnd_load_first(from, nnd_max(left, 0), 0.0f));
    }
  return t->kept + NND_KEPT_FLOATS;
}

/* One block of `vectors` vectors from number `vector` on, by the tiles of output channels [first, last). */
static void nnd_tile_block(const struct nnd_tiles *t, nnd_size vector, int vectors, nnd_size first, nnd_size last) {
  const nnd_size position = vector * NND_LANES, wide = vectors * NND_LANES, k = t->k;
  struct nnd_image_tile call = {.in = t->in + (position - t->origin), .plane = t->plane, .channels = t->channels,
                                .taps = t->taps, .tap = t->tap, .low = nnd_least(t->activation)};
  if (t->in_place && position + wide > t->length) {
    call.in = nnd_copied_end(t, position, vectors);
    call.plane = wide;
  }
  const int is_whole = t->pitch == t->width ? position + wide <= t->length : position % t->pitch + wide <= t->width;
  const int is_kept = !is_whole || t->activation > NND_RELU;
  struct nnd_pixels pixels[NND_TILE_VECTORS];
  for (int v = 0; v < vectors; v++) pixels[v] = nnd_pixels_of(t, position + v * NND_LANES);
  for (nnd_size tile = first; tile < last; tile++) {
    const nnd_size begin = nnd_tile_channel(t->out_channels, tile);
    const nnd_size rows = nnd_tile_channel(t->out_channels, tile + 1) - begin;
    call.weight_step = rows;
    const nnd_size part = vectors <= 2 ? rows : (rows + 1) / 2;
    for (nnd_size row = 0; row < rows; row += part) {
      const nnd_size count = nnd_min(part, rows - row);
      float *out = t->out + (begin + row) * t->out_plane;
      call.weights = t->weights + begin * (k + 1) + row;
      call.out = is_kept ? t->kept : out + pixels->at;
      call.out_plane = is_kept ? wide : t->out_plane;
      nnd_image_tiles[vectors][count](&call);
      if (is_kept) nnd_store_pixels(t, pixels, count, vectors, out);
    }
  }
}

struct nnd_tile_block {
  nnd_size vector;
  int vectors;
};

/* A group of blocks: block by block where all weights stay in the second cache, else tile by tile of the weights. */
static void nnd_tile_blocks(const struct nnd_tiles *t, const struct nnd_tile_block *block, int count) {
  const nnd_size tiles = nnd_channel_tiles(t->out_channels);
  if (nnd_packed_tiles(t->out_channels, t->k) * (nnd_size)sizeof(float) <= NND_TILE_WEIGHTS_CLOSE) {
    for (int i = 0; i < count; i++) nnd_tile_block(t, block[i].vector, block[i].vectors, 0, tiles);
    return;
  }
  for (nnd_size tile = 0; tile < tiles; tile++)
    for (int i = 0; i < count; i++) nnd_tile_block(t, block[i].vector, block[i].vectors, tile, tile + 1);
}

#endif
