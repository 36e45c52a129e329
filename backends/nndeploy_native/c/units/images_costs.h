/* SPDX-License-Identifier: Apache-2.0
 *
 * What blocks of image units cost: of a tile nanoseconds for each tap of a channel, of rows for each vector of columns.
 */
#ifndef NND_UNITS_IMAGES_COSTS_H
#define NND_UNITS_IMAGES_COSTS_H

#include "costs.h"
#include "images_columns.h"
#include "images_plan.h"

struct nnd_image_costs {
  float tile[NND_TILE_VECTORS + 1][NND_TILE_CHANNELS + 1]; /* 0: there is no such unit */
  float column[5][NND_TILE_CHANNELS + 1];
};

/* Nanoseconds to transpose and store a vector of output channels of a block: AVX-512, Intel Xeon, 2026-11-22. */
#define NND_TRANSPOSED 50.0f

NND_INLINE float nnd_default_cost(int broadcasts, int vectors) {
  const float sums = (float)(broadcasts * vectors), loads = (float)(broadcasts + 2 * vectors), chain = 8.0f;
  return (sums > loads ? sums > chain ? sums : chain : loads > chain ? loads : chain) + 0.1f;
}

/* Without a measurement: multiply-adds, loads and the latency of a chain of sums, at one of each a nanosecond. */
static void nnd_default_image_costs(struct nnd_image_costs *costs) {
  memset(costs, 0, sizeof *costs);
  for (int vectors = 1; vectors <= NND_TILE_VECTORS; vectors++)
    for (int rows = 1; rows <= NND_TILE_CHANNELS; rows++) {
      if (nnd_image_tiles[vectors][rows]) costs->tile[vectors][rows] = nnd_default_cost(rows, vectors);
      if (nnd_image_columns[0][vectors][rows]) costs->column[vectors][rows] = nnd_default_cost(rows, vectors);
    }
}

enum { NND_IMAGE_MEASURED_K = 256, NND_IMAGE_MEASURED_TIMES = 7 };

/* The least time of some calls of a unit, of a tile or of columns, for each k. */
static float nnd_measured_image_cost(const struct nnd_image_tile *tile, nnd_image_unit unit,
                                     const struct nnd_image_column *column, nnd_column_unit of_columns) {
  double least = 1e30;
  for (int time = 0; time < NND_IMAGE_MEASURED_TIMES; time++) {
    const double begin = nnd_now();
    for (int i = 0; i < 4; i++) {
      if (tile) unit(tile);
      else of_columns(column);
    }
    const double took = nnd_now() - begin;
    if (took < least) least = took;
  }
  return (float)(least / (4 * NND_IMAGE_MEASURED_K));
}

/* Measures all units on planes and weights in the first caches, about four milliseconds. */
static void nnd_measure_image_costs(struct nnd_image_costs *costs) {
  static const struct nnd_tap tap = {0, 1};
  enum { K = NND_IMAGE_MEASURED_K, PANEL = (K + 1) * NND_COLUMN_PANEL };
  float in[2 * K + NND_TILE_PIXELS] = {0}, out[NND_ACCUMULATORS * NND_LANES], weights[2 * PANEL] = {0};
  memset(costs, 0, sizeof *costs);
  for (int vectors = 1; vectors <= NND_TILE_VECTORS; vectors++)
    for (int rows = 1; rows <= NND_TILE_CHANNELS; rows++) {
      const struct nnd_image_tile tile = {.in = in, .plane = 2, .channels = K, .taps = 1, .tap = &tap, .out = out,
                                          .weights = weights, .weight_step = rows, .out_plane = vectors * NND_LANES};
      const struct nnd_image_column column = {.in = in, .plane = 2, .channels = K, .taps = 1, .tap = &tap, .out = out,
                                              .weights = weights, .panel = PANEL};
      if (nnd_image_tiles[vectors][rows])
        costs->tile[vectors][rows] = nnd_measured_image_cost(&tile, nnd_image_tiles[vectors][rows], 0, 0);
      if (nnd_image_columns[0][vectors][rows])
        costs->column[vectors][rows] = nnd_measured_image_cost(0, 0, &column, nnd_image_columns[0][vectors][rows]);
    }
}

/* The plan of blocks by all output channels. */
static void nnd_tile_plan(const struct nnd_image_costs *costs, nnd_size out_channels, struct nnd_plan *plan) {
  float cost[NND_TILE_VECTORS + 1] = {0};
  for (int vectors = 1; vectors <= NND_TILE_VECTORS; vectors++)
    for (nnd_size tile = 0; tile < nnd_channel_tiles(out_channels); tile++) {
      const nnd_size rows = nnd_tile_channel(out_channels, tile + 1) - nnd_tile_channel(out_channels, tile);
      const nnd_size part = vectors <= 2 ? rows : (rows + 1) / 2;
      cost[vectors] += costs->tile[vectors][part] + (rows > part ? costs->tile[vectors][rows - part] : 0.0f);
    }
  *plan = (struct nnd_plan){.unit = NND_TILE, .by_length = 1};
  nnd_fill_plan(cost, NND_TILE_VECTORS, plan);
}

/* The plan of blocks of positions by all output channels. */
static void nnd_column_plan(const struct nnd_image_costs *costs, nnd_size out_channels, nnd_size k,
                            struct nnd_plan *plan) {
  float cost[NND_COLUMN_POSITIONS + 1] = {0};
  for (nnd_size positions = 1; positions <= NND_COLUMN_POSITIONS; positions++)
    for (nnd_size channel = 0; channel < out_channels;) {
      const nnd_size two = 2 * NND_COLUMN_PANEL, end = nnd_min(out_channels, (channel / two + 1) * two);
      const int vectors = nnd_column_vectors(positions, end - channel);
      cost[positions] += costs->column[vectors][positions] + (float)vectors * NND_TRANSPOSED / (float)k;
      channel += vectors * NND_LANES;
    }
  *plan = (struct nnd_plan){.unit = NND_COLUMNS};
  nnd_fill_plan(cost, NND_COLUMN_POSITIONS, plan);
}

#endif
