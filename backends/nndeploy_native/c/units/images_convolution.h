/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense convolution of any first shape (N, H, W): its tables, and their interpreter.
 *
 *   [pack planes]   the rows that a group of blocks reads; left out where the input can be read in place
 *   tiles           blocks of 1 to 4 vectors of positions of one image, by all output channels
 *   or columns      blocks of some positions of one row, by all output channels
 *
 * Axis 0 of a table of tiles are the vectors of positions of an image: rows of output pixels with what lies behind
 * each. So it serves every N, H and W with so many. Axis 0 of a table of columns are the pixels of a row: it serves
 * every N and H. Which of the two runs follows from the measured costs of their blocks.
 */
#ifndef NND_UNITS_IMAGES_CONVOLUTION_H
#define NND_UNITS_IMAGES_CONVOLUTION_H

#include "cache.h"
#include "images_blocks.h"
#include "images_costs.h"
#include "images_tiles.h"

#define NND_PACKED_FLOATS (96 << 10) /* that a group of blocks reads: with weights they stay in the second cache */
#define NND_GROUP_BLOCKS 64

/* What of a convolution or pooling is known when it is opened; pads as in ONNX: y and x before, y and x behind. */
struct nnd_image_form {
  nnd_size channels, out_channels, groups, kernel[2], stride[2], dilation[2], pad[4];
  int activation;
};

struct nnd_image_shape {
  nnd_size images, height, width;
};

NND_INLINE struct nnd_axis nnd_image_axis(const struct nnd_image_form *form, int axis, nnd_size size) {
  const nnd_size reach = (form->kernel[axis] - 1) * form->dilation[axis] + 1;
  const nnd_size over = size + form->pad[axis] + form->pad[axis + 2] - reach;
  return (struct nnd_axis){size, over < 0 ? 0 : over / form->stride[axis] + 1, form->kernel[axis], form->stride[axis],
                           form->dilation[axis], form->pad[axis], 0};
}

struct nnd_convolution {
  struct nnd_image_form form;
  struct nnd_plan tiles, columns;
  float *weights, *column_weights;
  struct nnd_slot slot[2][NND_BLOCKS_PLANNED + NND_BLOCK_LENGTHS]; /* [1]: of columns */
};

NND_INLINE nnd_size nnd_form_taps(const struct nnd_image_form *form) { return form->kernel[0] * form->kernel[1]; }
NND_INLINE nnd_size nnd_form_k(const struct nnd_image_form *form) {
  return nnd_form_taps(form) * (form->channels / form->groups);
}

static void nnd_convolution_close(struct nnd_convolution *op) {
  if (op) {
    free(op->weights);
    free(op->column_weights);
  }
  free(op);
}

/* `weights` (O, C / groups, kernel rows, kernel columns) and `bias`, which may be null, are copied. */
static struct nnd_convolution *nnd_convolution_open(const struct nnd_image_form *form, const float *weights,
                                                    const float *bias, const struct nnd_image_costs *costs) {
  const nnd_size out = form->out_channels / form->groups, channels = form->channels / form->groups;
  const nnd_size k = nnd_form_k(form), taps = nnd_form_taps(form);
  const nnd_size of_tiles = nnd_packed_tiles(out, k), of_columns = nnd_packed_columns(out, k);
  struct nnd_convolution *op = calloc(1, sizeof *op);
  if (!op) return 0;
  op->form = *form;
  op->weights = malloc((size_t)(of_tiles * form->groups) * sizeof(float));
  op->column_weights = aligned_alloc(64, nnd_ceil_div(of_columns * form->groups, 16) * 64);
  if (!op->weights || !op->column_weights) {
    nnd_convolution_close(op);
    return 0;
  }
  for (nnd_size g = 0; g < form->groups; g++) {
    const float *from = weights + g * out * k, *first = bias ? bias + g * out : 0;
    nnd_pack_tiles(from, first, out, channels, taps, op->weights + g * of_tiles);
    nnd_pack_columns(from, first, out, channels, taps, op->column_weights + g * of_columns);
  }
  nnd_tile_plan(costs, out, &op->tiles);
  nnd_column_plan(costs, out, k, &op->columns);
  return op;
}

/* The table of a length: vectors of positions, or with `columns` pixels of a row. */
static void nnd_compose_convolution(const struct nnd_convolution *op, nnd_size length, int columns, int in_place,
                                    int quick, struct nnd_table *table) {
  const struct nnd_plan *plan = columns ? &op->columns : &op->tiles;
  const nnd_size base = nnd_plan_base(plan, length), out = op->form.out_channels / op->form.groups;
  const nnd_size k = nnd_form_k(&op->form);
  nnd_image_header(plan, base, out, k, table);
  if (!in_place) nnd_image_row(table, NND_PACK_PLANES, base, 0, k);
  nnd_add_blocks(plan, base, quick, op->form.activation, out, k, table);
  nnd_end_image_table(table);
}

/* The optimal table of a length, from the cache where it is there. */
static void nnd_convolution_table(struct nnd_convolution *op, nnd_size length, int columns, int in_place,
                                  struct nnd_table *to) {
  const nnd_size base = nnd_plan_base(columns ? &op->columns : &op->tiles, length);
  struct nnd_slot *slot = &op->slot[columns][base];
  const int found = nnd_look_up(slot, base, op->form.out_channels / op->form.groups, nnd_form_k(&op->form), to);
  if (found && (to->row->unit != NND_PACK_PLANES) == in_place) return;
  nnd_compose_convolution(op, length, columns, in_place, 0, to);
  nnd_keep(slot, to, 1);
}

/* Whether some output reads tap k inside the image. */
NND_INLINE int nnd_is_tap_read(struct nnd_axis axis, nnd_size k) {
  const nnd_size at = k * axis.dilation - axis.pad, first = nnd_max(0, nnd_ceil_div(-at, axis.stride));
  return first < axis.out_size && first * axis.stride + at < axis.size;
}

/* The axis of the taps from the first to the last that are read; returns the number of the first. */
static nnd_size nnd_trim_axis(struct nnd_axis *axis) {
  nnd_size begin = 0, end = axis->kernel;
  while (begin + 1 < end && !nnd_is_tap_read(*axis, begin)) begin++;
  while (begin + 1 < end && !nnd_is_tap_read(*axis, end - 1)) end--;
  axis->pad -= begin * axis->dilation;
  axis->kernel = end - begin;
  return begin;
}

/* What units read: the input as it lies; planes of images_planes.h or blocks of images_blocks.h, row by row; blocks
 * where each tap has a copy of its pixels, which then follow each other through rows and images. */
enum nnd_convolution_input { NND_IN_PLACE, NND_PLANES, NND_BLOCKS, NND_UNFOLDED };

/* How a call of a convolution goes on: what follows from the first shape. */
struct nnd_convolution_call {
  struct nnd_axis y, x;
  nnd_size first_y, first_x; /* taps that are left out before those of y and x */
  enum nnd_convolution_input input;
  int columns;
  nnd_size images;        /* whose pixels columns walk as one row: 1 but where unfolded */
  nnd_size height, width; /* of what columns walk */
  nnd_size pitch, length, vectors, rows; /* rows: output rows whose planes are packed at once */
  struct nnd_planes planes;
  struct nnd_block_layout layout; /* of blocks */
};

#define NND_UNFOLDED_FLOATS (128 << 10) /* at most */
#define NND_UNFOLDED_COST 0.1f /* nanoseconds for each pixel, tap and channel: AVX-512, AMD Zen 4, 2026-11-22 */

/* How many output rows all rows of taps that lie inside the image make up. */
NND_INLINE float nnd_rows_inside(struct nnd_axis y) {
  nnd_size outside = 0, i = 0;
  for (; i < y.out_size && i * y.stride < y.pad; i++) outside += nnd_tap_begin(y, i * y.stride - y.pad);
  for (i = y.out_size - 1; i >= 0 && nnd_overhang(y, i); i--)
    outside += y.kernel - nnd_tap_end(y, i * y.stride - y.pad);
  return (float)y.out_size - (float)outside / (float)y.kernel;
}

/* What columns cost for an image, row by row, or in place as one row. */
static float nnd_columns_cost(const struct nnd_convolution *op, const struct nnd_convolution_call *c) {
  if (c->input == NND_IN_PLACE) return nnd_plan_cost(&op->columns, c->length);
  return nnd_rows_inside(c->y) * nnd_plan_cost(&op->columns, c->x.out_size);
}

/* How many images are unfolded together where that costs less than `other` for each, else 0. */
static nnd_size nnd_unfolded_images(const struct nnd_convolution *op, const struct nnd_convolution_call *c,
                                    nnd_size images, float other) {
  const nnd_size channels = op->form.channels / op->form.groups, pixels = c->y.out_size * c->x.out_size;
  const nnd_size floats = c->y.kernel * c->x.kernel * nnd_blocks(channels) * NND_LANES * pixels;
  if (floats > NND_UNFOLDED_FLOATS) return 0;
  const nnd_size together = floats * images > NND_UNFOLDED_FLOATS ? 1 : images, length = together * pixels;
  const float cost = nnd_plan_cost(&op->columns, length) + (float)length * NND_UNFOLDED_COST;
  return cost < (float)together * other ? together : 0;
}

NND_INLINE int nnd_ends_in_columns(const struct nnd_table *table) {
  return table->row[table->header.rows - 1].unit == NND_COLUMNS;
}

NND_INLINE struct nnd_convolution_call nnd_convolution_at(const struct nnd_convolution *op,
                                                          const struct nnd_table *given,
                                                          const struct nnd_image_shape *shape,
                                                          const struct nnd_image *in) {
  const struct nnd_image_form *form = &op->form;
  struct nnd_convolution_call c = {.y = nnd_image_axis(form, 0, shape->height),
                                   .x = nnd_image_axis(form, 1, shape->width), .images = 1};
  c.first_y = nnd_trim_axis(&c.y);
  c.first_x = nnd_trim_axis(&c.x);
  const nnd_size channels = form->channels / form->groups;
  const int is_point = nnd_form_taps(form) == 1 && form->stride[0] == 1 && form->stride[1] == 1 &&
                       !(form->pad[0] | form->pad[1] | form->pad[2] | form->pad[3]);
  const int is_run = (shape->width == 1 || in->stride[3] == 1) && (shape->height == 1 || in->stride[2] == shape->width);
  const int is_apart = in->stride[1] % 512 || channels < 16; /* whole 2 KiB: all planes meet in few lines of a cache */
  c.input = is_point && is_run && is_apart ? NND_IN_PLACE : NND_PLANES;
  c.pitch = c.x.out_size + nnd_tap_shift(c.x, c.x.kernel - 1);
  c.length = (c.y.out_size - 1) * c.pitch + c.x.out_size;
  c.vectors = nnd_ceil_div(c.length, NND_LANES);
  const float tiles = nnd_plan_cost(&op->tiles, c.vectors), columns = nnd_columns_cost(op, &c);
  c.columns = given ? nnd_ends_in_columns(given) : columns < tiles;
  if (channels >= NND_LANES / 2) {
    const nnd_size unfolded =
        given ? 0 : nnd_unfolded_images(op, &c, shape->images, columns < tiles ? columns : tiles);
    if (unfolded) {
      c.columns = 1;
      c.input = NND_UNFOLDED;
      c.images = unfolded;
    } else if (c.columns && c.input == NND_PLANES)
      c.input = NND_BLOCKS;
  }
  const int is_flat = c.input == NND_IN_PLACE || c.input == NND_UNFOLDED;
  c.height = is_flat ? 1 : c.y.out_size;
  c.width = is_flat ? c.images * c.y.out_size * c.x.out_size : c.x.out_size;
  c.rows = c.y.out_size;
  if (!is_flat) {
    const nnd_size row = nnd_phases(c.y) * nnd_phases(c.x) * c.pitch * channels;
    const nnd_size least = nnd_ceil_div(NND_TILE_PIXELS, c.pitch) + 1; /* a block may begin anywhere in a row */
    c.rows = nnd_min(c.rows, nnd_max(least, NND_PACKED_FLOATS / row - nnd_tap_shift(c.y, c.y.kernel - 1)));
  }
  c.planes = c.input == NND_PLANES ? nnd_planes_for(c.y, c.x, c.rows) : nnd_blocks_for(c.y, c.x, c.rows);
  return c;
}

/* Floats from a pixel to the next one. */
NND_INLINE nnd_size nnd_apart(const struct nnd_convolution_call *c) { return c->input >= NND_BLOCKS ? NND_LANES : 1; }

/* The taps that some output reads inside the image, row by row of the kernel: those of row ky are from of[ky] on. */
struct nnd_tap_list {
  struct nnd_axis y;
  nnd_size *of, *place, count; /* place: in planes or blocks, in elements */
  struct nnd_tap *tap;
};

/* `memory` is of nnd_tap_floats(). */
static struct nnd_tap_list nnd_list_taps(const struct nnd_image_form *form, const struct nnd_convolution_call *c,
                                         float *memory) {
  const nnd_size channels = form->channels / form->groups;
  struct nnd_tap_list list = {.y = c->y, .of = (nnd_size *)memory};
  list.place = list.of + c->y.kernel + 1;
  list.tap = (struct nnd_tap *)(list.place + c->y.kernel * c->x.kernel);
  for (nnd_size ky = 0; ky < c->y.kernel; ky++) {
    list.of[ky] = list.count;
    for (nnd_size kx = 0; nnd_is_tap_read(c->y, ky) && kx < c->x.kernel; kx++)
      if (nnd_is_tap_read(c->x, kx)) {
        const nnd_size number = (c->first_y + ky) * form->kernel[1] + c->first_x + kx;
        const nnd_size place = c->input == NND_IN_PLACE ? 0 : nnd_tap_place(&c->planes, ky, kx);
        const nnd_size pixels = c->input == NND_UNFOLDED ? list.count * c->width : place;
        list.place[list.count] = place;
        list.tap[list.count++] = (struct nnd_tap){pixels * nnd_apart(c), 1 + number * channels};
      }
  }
  list.of[c->y.kernel] = list.count;
  return list;
}

NND_INLINE nnd_size nnd_tap_floats(const struct nnd_image_form *form) {
  const nnd_size sizes = form->kernel[0] + 1 + 3 * nnd_form_taps(form);
  return nnd_blocks(sizes * (nnd_size)(sizeof(nnd_size) / sizeof(float))) * NND_LANES;
}

/* Floats from a block of channels to the next one where each of `taps` has a copy of its pixels. */
NND_INLINE nnd_size nnd_unfolded_plane(const struct nnd_convolution_call *c, nnd_size taps) {
  return (taps * c->width | 1) * NND_LANES;
}

/* Floats of scratch: the list of taps, what tiles keep, packed planes or the last block of an input in place. */
NND_INLINE nnd_size nnd_convolution_scratch(const struct nnd_image_form *form, const struct nnd_convolution_call *c) {
  const nnd_size channels = form->channels / form->groups, blocks = nnd_blocks(channels);
  const nnd_size plane = c->planes.plane, lists = nnd_apart(c) > 1 ? nnd_block_lists(&c->planes) : 0;
  const nnd_size first = nnd_tap_floats(form) + lists + NND_KEPT_FLOATS;
  switch (c->input) {
    case NND_IN_PLACE: return first + channels * NND_TILE_PIXELS;
    case NND_PLANES: return first + channels * plane;
    case NND_BLOCKS: return first + blocks * NND_LANES * plane;
    default: return first + NND_LANES * plane + blocks * nnd_unfolded_plane(c, c->y.kernel * c->x.kernel);
  }
}

/* The next blocks of a table, as many as read `rows` output rows. Returns how many; `at` is where to go on. */
struct nnd_block_cursor {
  const struct nnd_table_row *row, *end;
  nnd_size done, more, vector; /* blocks of the row; blocks more of a row that grows */
};

NND_INLINE int nnd_next_blocks(struct nnd_block_cursor *at, nnd_size pitch, nnd_size rows, struct nnd_tile_block *to) {
  const nnd_size first = at->vector * NND_LANES / pitch;
  int count = 0;
  while (at->row < at->end && count < NND_GROUP_BLOCKS) {
    const nnd_size vectors = at->row->length[0];
    if (((at->vector + vectors) * NND_LANES - 1) / pitch - first >= rows && count) break;
    to[count++] = (struct nnd_tile_block){at->vector, (int)vectors};
    at->vector += vectors;
    if (++at->done < at->row->repeat + (at->row->flags & NND_GROWS ? at->more : 0)) continue;
    at->row++;
    at->done = 0;
  }
  return count;
}

/* Packs what output rows [first, last) read of the group's channels. */
NND_INLINE void nnd_pack_planes(const struct nnd_convolution_call *c, struct nnd_tiles *t, const struct nnd_image *in,
                                nnd_size n, nnd_size channel, nnd_size first, nnd_size last) {
  float *packed = t->kept + NND_KEPT_FLOATS;
  const nnd_size at_once = t->apart, rows = last - first;
  for (nnd_size i = 0; i < t->channels; i += at_once) {
    const float *from = nnd_plane_of(in, n, channel + i);
    float *to = packed + i * c->planes.plane;
    if (at_once == 1) nnd_pack_plane(&c->planes, first, rows, from, in->stride + 2, 0.0f, to);
    else nnd_pack_block(&c->layout, first, rows, from, in->stride + 1, nnd_min(NND_LANES, t->channels - i), 0.0f, to);
  }
  t->in = packed;
  t->origin = first * c->pitch;
}

/* Packs the images from n on: for each tap the pixels of all of them side by side. */
static void nnd_unfold(const struct nnd_convolution_call *c, const struct nnd_tap_list *taps, struct nnd_tiles *t,
                       const struct nnd_image *in, nnd_size n, nnd_size channel) {
  float *packed = t->kept + NND_KEPT_FLOATS, *unfolded = packed + c->planes.plane * NND_LANES;
  const nnd_size height = c->y.out_size, width = c->x.out_size;
  for (nnd_size i = 0; i < t->channels; i += NND_LANES)
    for (nnd_size image = 0; image < c->images; image++) {
      nnd_pack_block(&c->layout, 0, height, nnd_plane_of(in, n + image, channel + i), in->stride + 1,
                     nnd_min(NND_LANES, t->channels - i), 0.0f, packed);
      float *to = unfolded + i / NND_LANES * t->plane + image * height * width * NND_LANES;
      for (nnd_size tap = 0; tap < taps->count; tap++)
        nnd_copy_elements(packed + taps->place[tap] * NND_LANES, height, width, c->pitch, to + taps->tap[tap].in);
    }
  t->in = unfolded;
}

NND_INLINE struct nnd_block_cursor nnd_first_block(const struct nnd_table *table, int in_place, nnd_size length) {
  const struct nnd_table_header *header = &table->header;
  struct nnd_block_cursor at = {.row = table->row + !in_place, .end = table->row + header->rows};
  if (header->modulus) at.more = (length - header->first[0]) / header->modulus;
  return at;
}

/* One group of channels of one image, by tiles; `t` has all but what is packed here. */
static void nnd_convolution_image(const struct nnd_convolution_call *c, const struct nnd_table *table,
                                  struct nnd_tiles t, const struct nnd_image *in, nnd_size n, nnd_size channel) {
  struct nnd_tile_block block[NND_GROUP_BLOCKS];
  const int in_place = c->input == NND_IN_PLACE;
  struct nnd_block_cursor at = nnd_first_block(table, in_place, c->vectors);
  if (in_place) t.in = nnd_plane_of(in, n, channel);
  while (at.row < at.end) {
    const nnd_size first = at.vector * NND_LANES / c->pitch;
    const int count = nnd_next_blocks(&at, c->pitch, in_place ? PTRDIFF_MAX : c->rows, block);
    if (!in_place)
      nnd_pack_planes(c, &t, in, n, channel, first,
                      nnd_min(c->y.out_size, (at.vector * NND_LANES - 1) / c->pitch + 1));
    nnd_tile_blocks(&t, block, count);
  }
}

/* Rows [first, last) by columns: two panels of weights stay close for all of them. */
static void nnd_column_rows(const struct nnd_tiles *all, struct nnd_block_cursor blocks,
                            const struct nnd_tap_list *taps, nnd_size first, nnd_size last) {
  struct nnd_tiles t = *all;
  for (nnd_size o = 0; o < t.out_channels; o += 2 * NND_COLUMN_PANEL)
    for (nnd_size y = first; y < last; y++) {
      nnd_size x = y * t.pitch;
      if (taps) { /* those whose row lies inside */
        const nnd_size top = y * taps->y.stride - taps->y.pad;
        const nnd_size begin = taps->of[nnd_tap_begin(taps->y, top)], end = taps->of[nnd_tap_end(taps->y, top)];
        t.tap = taps->tap + begin;
        t.taps = nnd_max(0, end - begin);
      }
      for (const struct nnd_table_row *row = blocks.row; row < blocks.end; row++) {
        const nnd_size count = row->repeat + (row->flags & NND_GROWS ? blocks.more : 0);
        for (nnd_size i = 0; i < count; i++, x += row->length[0]) nnd_column_block(&t, x, row->length[0], o);
      }
    }
}

/* The same by columns; where unfolded, the images from n on. */
static void nnd_convolution_columns(const struct nnd_convolution_call *c, const struct nnd_table *table,
                                    struct nnd_tiles t, const struct nnd_tap_list *taps, const struct nnd_image *in,
                                    nnd_size n, nnd_size channel) {
  const struct nnd_block_cursor blocks = nnd_first_block(table, c->input == NND_IN_PLACE, c->width);
  if (c->input == NND_IN_PLACE || c->input == NND_UNFOLDED) {
    if (c->input == NND_UNFOLDED) nnd_unfold(c, taps, &t, in, n, channel);
    else {
      t.in = nnd_plane_of(in, n, channel);
      t.pitch = c->width;
    }
    nnd_column_rows(&t, blocks, 0, 0, 1);
    return;
  }
  for (nnd_size first = 0; first < c->height; first += c->rows) {
    const nnd_size last = nnd_min(c->height, first + c->rows);
    nnd_pack_planes(c, &t, in, n, channel, first, last);
    nnd_column_rows(&t, blocks, taps, first, last);
  }
}

/* Runs by a given table, null: its own. Returns 0, or the floats of scratch that it needs where `floats` is less: then
 * nothing is done. The output's planes are runs. */
static nnd_size nnd_convolution_run(struct nnd_convolution *op, const struct nnd_table *given,
                                    const struct nnd_image_shape *shape, const struct nnd_image *in,
                                    const struct nnd_image *out, float *scratch, nnd_size floats) {
  const struct nnd_image_form *form = &op->form;
  struct nnd_convolution_call c = nnd_convolution_at(op, given, shape, in);
  const nnd_size needed = nnd_convolution_scratch(form, &c);
  if (needed > floats) return needed;
  struct nnd_table table;
  const int in_place = c.input == NND_IN_PLACE;
  if (!given) nnd_convolution_table(op, c.columns ? c.width : c.vectors, c.columns, in_place, &table);
  const nnd_size k = nnd_form_k(form), channels = form->channels / form->groups;
  const struct nnd_tap_list taps = nnd_list_taps(form, &c, scratch);
  float *kept = scratch + nnd_tap_floats(form);
  if (nnd_apart(&c) > 1) {
    nnd_lay_blocks(&c.planes, kept, &c.layout);
    kept += nnd_block_lists(&c.planes);
  }
  struct nnd_tiles t = {.plane = c.planes.plane * nnd_apart(&c), .apart = nnd_apart(&c), .channels = channels, .k = k,
                        .taps = taps.count, .tap = taps.tap, .out_plane = out->stride[1],
                        .out_channels = form->out_channels / form->groups, .pitch = c.pitch, .width = c.x.out_size,
                        .out_row = c.x.out_size, .length = c.length, .activation = form->activation,
                        .in_place = in_place, .kept = kept};
  if (in_place) t.plane = in->stride[1];
  if (c.input == NND_UNFOLDED) { /* what is a row elsewhere is an image here */
    t.plane = nnd_unfolded_plane(&c, taps.count);
    t.pitch = c.width / c.images;
    t.out_row = out->stride[0];
  }
  for (nnd_size n = 0; n < shape->images; n += c.images)
    for (nnd_size g = 0; g < form->groups; g++) {
      t.out = nnd_plane_of(out, n, g * t.out_channels);
      if (c.columns) {
        t.weights = op->column_weights + g * nnd_packed_columns(t.out_channels, k);
        nnd_convolution_columns(&c, given ? given : &table, t, &taps, in, n, g * channels);
        continue;
      }
      t.weights = op->weights + g * nnd_packed_tiles(t.out_channels, k);
      nnd_convolution_image(&c, given ? given : &table, t, in, n, g * channels);
    }
  return 0;
}

#endif
