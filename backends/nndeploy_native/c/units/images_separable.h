/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution and the pointwise one behind it, fused, of any first shape.
 *
 *   [pack planes]  the rows that a window reads, channel by channel
 *   rows           the depthwise result of the window, all channels: it lives in a small buffer
 *   tiles          blocks of the buffer's pixels by all output channels, or columns: what costs less
 *
 * Rows of one table go on with each other. It serves every first shape with windows of so many rows and so many pixels
 * (of tiles: vectors of them); the cache finds it by both.
 */
#ifndef NND_UNITS_IMAGES_SEPARABLE_H
#define NND_UNITS_IMAGES_SEPARABLE_H

#include "images_planar.h"

#define NND_BUFFER_FLOATS (64 << 10) /* 256 KiB: a part of the second cache */

struct nnd_separable {
  struct nnd_planar *depthwise;
  nnd_size out_channels;
  int activation;
  struct nnd_plan tiles, columns;
  float *weights, *column_weights;
  struct nnd_slot slot[NND_DYNAMIC_SLOTS];
};

static void nnd_separable_close(struct nnd_separable *op) {
  if (op) {
    nnd_planar_close(op->depthwise);
    free(op->weights);
    free(op->column_weights);
  }
  free(op);
}

/* The pointwise part: `weights` (out_channels, C) and `bias`, which may be null. */
struct nnd_pointwise_part {
  nnd_size out_channels;
  const float *weights, *bias;
  int activation;
};

static struct nnd_separable *nnd_separable_open(const struct nnd_image_form *form, const float *weights,
                                                const float *bias, const struct nnd_pointwise_part *point,
                                                const struct nnd_image_costs *costs) {
  struct nnd_separable *op = calloc(1, sizeof *op);
  if (!op) return 0;
  op->out_channels = point->out_channels;
  op->activation = point->activation;
  op->depthwise = nnd_planar_open(form, NND_DEPTHWISE, 0, weights, bias);
  const nnd_size of_columns = nnd_packed_columns(point->out_channels, form->channels);
  op->weights = malloc((size_t)nnd_packed_tiles(point->out_channels, form->channels) * sizeof(float));
  op->column_weights = aligned_alloc(64, (size_t)nnd_ceil_div(of_columns, 16) * 64);
  if (!op->depthwise || !op->weights || !op->column_weights) {
    nnd_separable_close(op);
    return 0;
  }
  nnd_pack_tiles(point->weights, point->bias, point->out_channels, form->channels, 1, op->weights);
  nnd_pack_columns(point->weights, point->bias, point->out_channels, form->channels, 1, op->column_weights);
  nnd_tile_plan(costs, point->out_channels, &op->tiles);
  nnd_column_plan(costs, point->out_channels, form->channels, &op->columns);
  return op;
}

/* The table of a window of so many rows and pixels, or without `columns` vectors of pixels. */
static void nnd_compose_separable(const struct nnd_separable *op, nnd_size rows, nnd_size length, int columns,
                                  int quick, struct nnd_table *table) {
  const struct nnd_plan *plan = columns ? &op->columns : &op->tiles;
  const nnd_size channels = op->depthwise->form.channels, base = nnd_plan_base(plan, length);
  nnd_image_header(plan, base, rows, channels, table);
  nnd_add_planar(op->depthwise, rows, quick, table);
  table->row[table->header.rows - 1].flags |= NND_GOES_ON;
  nnd_add_blocks(plan, base, quick, op->activation, op->out_channels, channels, table);
  nnd_end_image_table(table);
}

static void nnd_separable_table(struct nnd_separable *op, nnd_size rows, nnd_size length, int columns,
                                struct nnd_table *to) {
  const nnd_size base = nnd_plan_base(columns ? &op->columns : &op->tiles, length);
  const nnd_size channels = op->depthwise->form.channels;
  struct nnd_slot *slot = &op->slot[((base * NND_WINDOW_ROWS + rows) * 2 + columns) % NND_DYNAMIC_SLOTS];
  if (nnd_look_up(slot, base, rows, channels, to) && nnd_ends_in_columns(to) == columns) return;
  nnd_compose_separable(op, rows, length, columns, 0, to);
  nnd_keep(slot, to, 1);
}

/* The pointwise part of a window, whose depthwise result lies in the buffer. */
static void nnd_separable_second(const struct nnd_separable *op, const struct nnd_table *table, struct nnd_tiles t) {
  const int columns = nnd_ends_in_columns(table);
  struct nnd_block_cursor at = nnd_first_block(table, 0, columns ? t.length : nnd_ceil_div(t.length, NND_LANES));
  while (at.row->unit == op->depthwise->unit) at.row++;
  if (columns) {
    t.weights = op->column_weights;
    nnd_column_rows(&t, at, 0, 0, 1);
    return;
  }
  struct nnd_tile_block block[NND_GROUP_BLOCKS];
  while (at.row < at.end) nnd_tile_blocks(&t, block, nnd_next_blocks(&at, t.pitch, PTRDIFF_MAX, block));
}

/* As nnd_convolution_run(). By columns the depthwise result lies in blocks of channels, unless there are few. */
static nnd_size nnd_separable_run(struct nnd_separable *op, const struct nnd_table *given,
                                  const struct nnd_image_shape *shape, const struct nnd_image *in,
                                  const struct nnd_image *out, float *scratch, nnd_size floats) {
  static const struct nnd_tap no_tap = {0, 1};
  const struct nnd_image_form *form = &op->depthwise->form;
  const struct nnd_axis y = nnd_image_axis(form, 0, shape->height), x = nnd_image_axis(form, 1, shape->width);
  const nnd_size most = nnd_min(nnd_planar_rows(y, x), NND_BUFFER_FLOATS / (x.out_size * form->channels));
  const struct nnd_windows windows = nnd_windows_of(y.out_size, most);
  const nnd_size pixels = windows.rows * x.out_size, vectors = nnd_ceil_div(pixels, NND_LANES);
  const int columns = given ? nnd_ends_in_columns(given)
                            : nnd_plan_cost(&op->columns, pixels) < nnd_plan_cost(&op->tiles, vectors);
  const int to_blocks = columns && form->channels >= NND_LANES / 2;
  const nnd_size apart = to_blocks ? NND_LANES : 1, planes = nnd_ceil_div(form->channels, apart) * apart;
  const nnd_size plane = to_blocks ? (pixels | 1) * NND_LANES
                                   : (nnd_ceil_div(pixels + NND_TILE_PIXELS, NND_LANES) | 1) * NND_LANES;
  struct nnd_planar_call call =
      nnd_planar_call_for(op->depthwise, y, x, to_blocks || nnd_is_narrow(form, in, y, x), windows.rows);
  const nnd_size first_part = nnd_planar_scratch(&call);
  const nnd_size needed = first_part + NND_KEPT_FLOATS + planes / apart * plane;
  if (needed > floats) return needed;
  nnd_planar_begin(op->depthwise, y, x, scratch, &call);
  float *kept = scratch + first_part, *buffer = kept + NND_KEPT_FLOATS;
  struct nnd_tiles t = {.in = buffer, .plane = plane, .apart = apart, .channels = form->channels, .k = form->channels,
                        .taps = 1, .tap = &no_tap, .weights = op->weights, .out_channels = op->out_channels,
                        .out_plane = out->stride[1], .activation = op->activation, .kept = kept};
  struct nnd_table table;
  nnd_size rows = 0;
  for (nnd_size n = 0; n < shape->images; n++)
    for (nnd_size w = 0; w < windows.count; w++) {
      const nnd_size first = nnd_window_begin(y.out_size, windows, w);
      const nnd_size held = nnd_window_begin(y.out_size, windows, w + 1) - first;
      t.pitch = t.width = t.length = held * x.out_size; /* one run: nothing lies between the rows of the buffer */
      if (!given && held != rows)
        nnd_separable_table(op, held, columns ? t.length : nnd_ceil_div(t.length, NND_LANES), columns, &table);
      rows = held;
      t.out = nnd_plane_of(out, n, 0) + first * x.out_size;
      const struct nnd_table *by = given ? given : &table;
      if (to_blocks) nnd_narrow_window(op->depthwise, &call, in, n, first, rows, 1, buffer, plane);
      else nnd_planar_window(op->depthwise, &call, by, in, n, first, rows, buffer, plane);
      nnd_separable_second(op, by, t);
    }
  return 0;
}

#endif
