/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution and pooling of any first shape, and the interpreter of their tables' rows.
 *
 *   [pack planes]  the rows that a window of output rows reads, channel by channel
 *   rows           blocks of 1 to NND_BLOCK_ROWS output rows by all columns
 *
 * An image is cut into windows of rows that stay in the first cache while a channel is worked on; axis 0 of a table are
 * the rows of a window. So a table serves every N, C, W, and every H that has windows of so many rows.
 */
#ifndef NND_UNITS_IMAGES_PLANAR_H
#define NND_UNITS_IMAGES_PLANAR_H

#include "images_convolution.h"
#include "images_narrow.h"
#include "images_rows.h"

#define NND_WINDOW_ROWS 40          /* at most: fewer than NND_BLOCKS_PLANNED */
#define NND_WINDOW_FLOATS (3 << 10) /* of a packed plane; two of them are in the first cache */

struct nnd_planar {
  struct nnd_image_form form;
  int unit, counts_padding;
  struct nnd_plan plan;
  float *weights; /* of each channel: the bias, then its taps; null for pooling */
  float *narrow;  /* of NND_LANES channels side by side; of a mean ones, for all channels */
  struct nnd_slot slot[NND_BLOCKS_PLANNED];
};

/* Which family computes kernels that are not known. */
NND_INLINE enum nnd_rows_family nnd_planar_any(int unit) {
  return unit == NND_POOL_MAX ? NND_ROWS_MAX : unit == NND_POOL_MEAN ? NND_ROWS_MEAN : NND_ROWS_ANY;
}

/* Loads and multiply-adds of a vector of columns; a load is of two lines. */
static void nnd_planar_plan(const struct nnd_image_form *form, int unit, struct nnd_plan *plan) {
  float cost[NND_BLOCK_ROWS + 1] = {0};
  const struct nnd_axis y = nnd_image_axis(form, 0, form->kernel[0] * form->dilation[0]);
  const struct nnd_axis x = nnd_image_axis(form, 1, form->kernel[1] * form->dilation[1]);
  const int is_known = nnd_rows_family_of(nnd_planar_any(unit), y, x) != (int)nnd_planar_any(unit);
  const float taps = (float)nnd_form_taps(form), kernel = (float)form->kernel[0], stride = (float)form->stride[0];
  for (int rows = 1; rows <= NND_BLOCK_ROWS; rows++) {
    const float read = is_known ? kernel * ((float)(rows - 1) * stride + kernel) : (float)rows * taps;
    cost[rows] = 10.0f + (float)rows * taps + 2.0f * read;
  }
  *plan = (struct nnd_plan){.unit = unit};
  nnd_fill_plan(cost, NND_BLOCK_ROWS, plan);
}

static void nnd_planar_close(struct nnd_planar *op) {
  if (op) {
    free(op->weights);
    free(op->narrow);
  }
  free(op);
}

/* `weights` (C, 1, kernel rows, kernel columns) and `bias`, which may be null, are copied; pooling has none. */
static struct nnd_planar *nnd_planar_open(const struct nnd_image_form *form, int unit, int counts_padding,
                                          const float *weights, const float *bias) {
  const nnd_size taps = nnd_form_taps(form), blocks = weights ? nnd_blocks(form->channels) : 1;
  struct nnd_planar *op = calloc(1, sizeof *op);
  if (!op) return 0;
  *op = (struct nnd_planar){.form = *form, .unit = unit, .counts_padding = counts_padding};
  nnd_planar_plan(form, unit, &op->plan);
  op->weights = weights ? malloc((size_t)(form->channels * (taps + 1)) * sizeof(float)) : 0;
  op->narrow = calloc((size_t)(blocks * NND_LANES * (taps + 1)), sizeof(float));
  if ((weights && !op->weights) || !op->narrow) {
    nnd_planar_close(op);
    return 0;
  }
  for (nnd_size i = NND_LANES; !weights && i < (taps + 1) * NND_LANES; i++) op->narrow[i] = 1.0f;
  for (nnd_size c = 0; weights && c < form->channels; c++) {
    op->weights[c * (taps + 1)] = bias ? bias[c] : 0.0f;
    memcpy(op->weights + c * (taps + 1) + 1, weights + c * taps, (size_t)taps * sizeof(float));
    for (nnd_size i = 0; i <= taps; i++)
      op->narrow[(c / NND_LANES * (taps + 1) + i) * NND_LANES + c % NND_LANES] = op->weights[c * (taps + 1) + i];
  }
  return op;
}

/* Rows that pack and compute a window of so many output rows. */
static void nnd_add_planar(const struct nnd_planar *op, nnd_size rows, int quick, struct nnd_table *table) {
  const nnd_size taps = nnd_form_taps(&op->form);
  nnd_image_row(table, NND_PACK_PLANES, rows, 0, taps);
  nnd_add_blocks(&op->plan, rows, quick, op->form.activation, op->form.channels, taps, table);
}

static void nnd_compose_planar(const struct nnd_planar *op, nnd_size rows, int quick, struct nnd_table *table) {
  nnd_image_header(&op->plan, rows, op->form.channels, nnd_form_taps(&op->form), table);
  nnd_add_planar(op, rows, quick, table);
  nnd_end_image_table(table);
}

static void nnd_planar_table(struct nnd_planar *op, nnd_size rows, struct nnd_table *to) {
  struct nnd_slot *slot = &op->slot[rows];
  if (nnd_look_up(slot, rows, op->form.channels, nnd_form_taps(&op->form), to)) return;
  nnd_compose_planar(op, rows, 0, to);
  nnd_keep(slot, to, 1);
}

/* Windows of an image, of equal height or one row less. */
struct nnd_windows {
  nnd_size count, rows;
};

NND_INLINE struct nnd_windows nnd_windows_of(nnd_size out_rows, nnd_size most) {
  const nnd_size count = nnd_ceil_div(out_rows, nnd_max(1, nnd_min(most, NND_WINDOW_ROWS)));
  return (struct nnd_windows){count, nnd_ceil_div(out_rows, count)};
}
NND_INLINE nnd_size nnd_window_begin(nnd_size out_rows, struct nnd_windows w, nnd_size window) {
  return out_rows * window / w.count;
}

/* Rows of a window whose packed plane is of about NND_WINDOW_FLOATS. */
NND_INLINE nnd_size nnd_planar_rows(struct nnd_axis y, struct nnd_axis x) {
  const nnd_size row = nnd_phases(y) * nnd_phases(x) * (x.out_size + nnd_tap_shift(x, x.kernel - 1));
  return nnd_max(NND_BLOCK_ROWS, NND_WINDOW_FLOATS / row - nnd_tap_shift(y, y.kernel - 1));
}

/* Images whose rows leave many lanes of a vector empty, or that have too few rows to share what is loaded; what is
 * packed of NND_LANES channels stays in a cache. AVX-512, AMD Zen 4, 2026-11-22. */
#define NND_NARROW_COLUMNS (NND_LANES * 3 / 2)
#define NND_NARROW_COLUMNS_OF_MANY_TAPS (NND_LANES * 15 / 8)
#define NND_MANY_TAPS 25
#define NND_FLAT_ROWS 2
#define NND_FLAT_COLUMNS (8 * NND_LANES)
#define NND_NARROW_FLOATS (12 << 10)

NND_INLINE int nnd_is_narrow(const struct nnd_image_form *form, const struct nnd_image *in, struct nnd_axis y,
                             struct nnd_axis x) {
  const int has_many_taps = nnd_form_taps(form) >= NND_MANY_TAPS, is_flat = y.out_size <= NND_FLAT_ROWS;
  const nnd_size narrow = has_many_taps ? NND_NARROW_COLUMNS_OF_MANY_TAPS : NND_NARROW_COLUMNS;
  const nnd_size most = is_flat ? NND_FLAT_COLUMNS : narrow;
  const int is_run = in->stride[3] == 1 && in->stride[2] == x.size;
  return is_run && x.out_size <= most && x.size <= 3 * most && form->channels >= NND_LANES / 2;
}

/* What a call works with; `memory` holds offsets of taps, shares of rows and columns, and two packed planes, or where
 * it is narrow those of NND_LANES channels and what comes of them. */
struct nnd_planar_call {
  int is_narrow, family;
  struct nnd_axis y, x; /* without taps that no output reads inside the image */
  nnd_size first_y, first_x; /* how many are left out before the others */
  struct nnd_planes planes;
  struct nnd_block_layout layout; /* where it is narrow */
  nnd_size *tap, *number; /* where taps lie, and which of all they are */
  float *of_row, *of_column, *packed;
};

/* Rows of a window whose packed blocks are of about NND_NARROW_FLOATS: they are computed together. */
NND_INLINE nnd_size nnd_narrow_rows(struct nnd_axis y, struct nnd_axis x) {
  const struct nnd_planes one = nnd_blocks_for(y, x, 1);
  const nnd_size row = one.phases_y * one.phases_x * one.pitch * NND_LANES;
  return nnd_max(2, NND_NARROW_FLOATS / row - nnd_tap_shift(y, y.kernel - 1));
}

static struct nnd_planar_call nnd_planar_call_for(const struct nnd_planar *op, struct nnd_axis y, struct nnd_axis x,
                                                  int is_narrow, nnd_size rows) {
  struct nnd_planar_call call = {.is_narrow = is_narrow, .y = y, .x = x};
  call.first_y = nnd_trim_axis(&call.y);
  call.first_x = nnd_trim_axis(&call.x);
  call.family = nnd_rows_family_of(nnd_planar_any(op->unit), call.y, call.x);
  call.planes = is_narrow ? nnd_blocks_for(call.y, call.x, nnd_min(rows, nnd_narrow_rows(call.y, call.x)))
                          : nnd_planes_for(call.y, call.x, rows);
  return call;
}

NND_INLINE nnd_size nnd_planar_scratch(const struct nnd_planar_call *call) {
  const struct nnd_planes *p = &call->planes;
  const nnd_size taps = 2 * p->y.kernel * p->x.kernel * (nnd_size)(sizeof(nnd_size) / sizeof(float));
  const nnd_size found = (p->rows - nnd_tap_shift(p->y, p->y.kernel - 1)) * p->x.out_size;
  return nnd_blocks(taps + p->y.out_size + p->x.out_size + NND_LANES) * NND_LANES +
         (call->is_narrow ? nnd_block_lists(p) + (p->plane + found) * NND_LANES : 2 * p->plane);
}

/* One over how many taps of each output count. */
static void nnd_shares(struct nnd_axis axis, int counts_padding, float *to) {
  for (nnd_size i = 0; i < axis.out_size; i++) {
    const nnd_size at = i * axis.stride - axis.pad;
    const nnd_size taps = counts_padding ? axis.kernel : nnd_tap_end(axis, at) - nnd_tap_begin(axis, at);
    to[i] = taps > 0 ? 1.0f / (float)taps : 0.0f;
  }
}

/* `y` and `x` with all taps. */
static void nnd_planar_begin(const struct nnd_planar *op, struct nnd_axis y, struct nnd_axis x, float *memory,
                             struct nnd_planar_call *call) {
  const nnd_size taps = call->y.kernel * call->x.kernel;
  call->tap = (nnd_size *)memory;
  call->number = call->tap + taps;
  for (nnd_size i = 0; i < taps; i++) {
    const nnd_size ky = i / call->x.kernel, kx = i % call->x.kernel;
    call->tap[i] = nnd_tap_place(&call->planes, ky, kx) * (call->is_narrow ? NND_LANES : 1);
    call->number[i] = (call->first_y + ky) * x.kernel + call->first_x + kx;
  }
  call->of_row = (float *)(call->number + taps);
  call->of_column = call->of_row + y.out_size;
  call->packed = memory + nnd_blocks(call->of_column + x.out_size + NND_LANES - memory) * NND_LANES;
  if (call->is_narrow) {
    nnd_lay_blocks(&call->planes, call->packed, &call->layout);
    call->packed += nnd_block_lists(&call->planes);
  }
  if (op->unit == NND_POOL_MEAN) {
    nnd_shares(y, op->counts_padding, call->of_row);
    nnd_shares(x, op->counts_padding, call->of_column);
  }
}

/* The blocks of one channel's window; `row` are those of a table from the first that computes on. */
static void nnd_planar_blocks(const struct nnd_planar *op, const struct nnd_planar_call *call,
                              const struct nnd_table_row *row, nnd_size channel, nnd_size first, const float *packed,
                              float *out) {
  const nnd_size taps = nnd_form_taps(&op->form), width = call->x.out_size;
  struct nnd_image_rows t = {.in = packed, .pitch = call->planes.pitch, .phase = call->planes.phase,
                             .taps = call->y.kernel * call->x.kernel, .columns = width, .tap = call->tap,
                             .number = call->number, .out = out, .low = nnd_least(op->form.activation),
                             .weights = op->weights ? op->weights + channel * (taps + 1) : 0,
                             .of_row = call->of_row + first, .of_column = call->of_column};
  for (int goes_on = 1; goes_on; goes_on = row->flags & NND_GOES_ON && row[1].unit == op->unit, row++) {
    const nnd_size rows = row->length[0];
    for (uint32_t i = 0; i < row->repeat; i++) {
      nnd_rows_units[call->family][rows](&t);
      if (op->form.activation > NND_RELU) nnd_activate(op->form.activation, t.out, width, rows, width);
      t.in += rows * t.pitch;
      t.out += rows * width;
      t.of_row += rows;
    }
  }
}

/* Rows from `first` on of NND_LANES channels, to [row][column][NND_LANES]; `packed` is what they read. */
static void nnd_narrow_block(const struct nnd_planar *op, const struct nnd_planar_call *call, nnd_size block,
                             nnd_size first, nnd_size rows, const float *packed, float *found) {
  const nnd_size taps = nnd_form_taps(&op->form), width = call->x.out_size, kernel = op->form.kernel[1];
  const int is_max = op->unit == NND_POOL_MAX, family = is_max ? NND_NARROW_MAX : nnd_narrow_family(call->x);
  const nnd_size blocks = nnd_ceil_div(width, is_max ? NND_NARROW_MAXIMA : NND_NARROW_PIXELS);
  const float *of_block = op->narrow + (op->weights ? block * (taps + 1) * NND_LANES : 0);
  struct nnd_narrow t = {.columns = call->x.kernel, .phase = call->planes.phase * NND_LANES, .bias = of_block,
                         .weight_row = kernel * NND_LANES, .out = found, .low = nnd_least(op->form.activation)};
  for (nnd_size row = 0; row < rows; row++) {
    const nnd_size top = (first + row) * call->y.stride - call->y.pad, begin = nnd_tap_begin(call->y, top);
    const float *in = packed + row * call->planes.pitch * NND_LANES;
    t.rows = nnd_max(0, nnd_tap_end(call->y, top) - begin);
    t.tap = call->tap + begin * call->x.kernel;
    t.weights = of_block + (1 + (call->first_y + begin) * kernel + call->first_x) * NND_LANES;
    t.of_row = call->of_row[first + row];
    for (nnd_size i = 0; i < blocks; i++) {
      const nnd_size column = width * i / blocks, count = width * (i + 1) / blocks - column;
      t.in = in + column * NND_LANES;
      t.of_column = op->unit == NND_POOL_MEAN ? call->of_column + column : 0;
      nnd_narrow_units[family][count](&t);
      t.out += count * NND_LANES;
    }
  }
  if (op->form.activation > NND_RELU) nnd_activate(op->form.activation, found, NND_LANES, rows * width, NND_LANES);
}

/* A window of all channels of an image: to planes `out_plane` floats apart, or as many floats to blocks. */
static void nnd_narrow_window(const struct nnd_planar *op, const struct nnd_planar_call *call,
                              const struct nnd_image *in, nnd_size n, nnd_size first, nnd_size rows, int to_blocks,
                              float *out, nnd_size out_plane) {
  const float fill = op->unit == NND_POOL_MAX ? -__builtin_inff() : 0.0f;
  const struct nnd_windows parts = nnd_windows_of(rows, nnd_narrow_rows(call->y, call->x));
  const nnd_size width = call->x.out_size;
  for (nnd_size c = 0; c < op->form.channels; c += NND_LANES) {
    const nnd_size held = nnd_min(NND_LANES, op->form.channels - c);
    for (nnd_size i = 0; i < parts.count; i++) {
      const nnd_size begin = nnd_window_begin(rows, parts, i), count = nnd_window_begin(rows, parts, i + 1) - begin;
      float *found = to_blocks ? out + c / NND_LANES * out_plane + begin * width * NND_LANES
                               : call->packed + call->planes.plane * NND_LANES;
      nnd_pack_block(&call->layout, first + begin, count, nnd_plane_of(in, n, c), in->stride + 1, held, fill,
                     call->packed);
      nnd_narrow_block(op, call, c / NND_LANES, first + begin, count, call->packed, found);
      if (!to_blocks) nnd_unpack_narrow(found, count * width, held, out_plane, out + c * out_plane + begin * width);
    }
  }
}

/* A window of all channels of an image, each to planes `out_plane` floats apart. A channel is packed before the one
 * before it is worked on: what was just stored in other vectors is loaded late. */
static void nnd_planar_window(const struct nnd_planar *op, const struct nnd_planar_call *call,
                              const struct nnd_table *table, const struct nnd_image *in, nnd_size n, nnd_size first,
                              nnd_size rows, float *out, nnd_size out_plane) {
  if (call->is_narrow) {
    nnd_narrow_window(op, call, in, n, first, rows, 0, out, out_plane);
    return;
  }
  const float fill = op->unit == NND_POOL_MAX ? -__builtin_inff() : 0.0f;
  float *now = call->packed, *next = now + call->planes.plane;
  nnd_pack_plane(&call->planes, first, rows, nnd_plane_of(in, n, 0), in->stride + 2, fill, now);
  for (nnd_size c = 0; c < op->form.channels; c++, out += out_plane) {
    if (c + 1 < op->form.channels)
      nnd_pack_plane(&call->planes, first, rows, nnd_plane_of(in, n, c + 1), in->stride + 2, fill, next);
    nnd_planar_blocks(op, call, table->row + 1, c, first, now, out);
    float *done = now;
    now = next;
    next = done;
  }
}

/* As nnd_convolution_run(); a given table is for every window. */
static nnd_size nnd_planar_run(struct nnd_planar *op, const struct nnd_table *given,
                               const struct nnd_image_shape *shape, const struct nnd_image *in,
                               const struct nnd_image *out, float *scratch, nnd_size floats) {
  const struct nnd_axis y = nnd_image_axis(&op->form, 0, shape->height), x = nnd_image_axis(&op->form, 1, shape->width);
  const struct nnd_windows windows = nnd_windows_of(y.out_size, nnd_planar_rows(y, x));
  struct nnd_planar_call call = nnd_planar_call_for(op, y, x, nnd_is_narrow(&op->form, in, y, x), windows.rows);
  const nnd_size needed = nnd_planar_scratch(&call);
  if (needed > floats) return needed;
  nnd_planar_begin(op, y, x, scratch, &call);
  struct nnd_table table;
  nnd_size rows = 0;
  for (nnd_size n = 0; n < shape->images; n++)
    for (nnd_size w = 0; w < windows.count; w++) {
      const nnd_size first = nnd_window_begin(y.out_size, windows, w);
      const nnd_size held = nnd_window_begin(y.out_size, windows, w + 1) - first;
      if (!given && held != rows) nnd_planar_table(op, held, &table);
      rows = held;
      nnd_planar_window(op, &call, given ? given : &table, in, n, first, rows,
                        nnd_plane_of(out, n, 0) + first * x.out_size, out->stride[1]);
    }
  return 0;
}

#endif
