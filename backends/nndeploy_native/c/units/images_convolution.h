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

/* How a call of a convolution goes on: what follows from the first shape. */
struct nnd_convolution_call {
  struct nnd_axis y, x;
  nnd_size first_y, first_x; /* taps that are left out before those of y and x */
  int in_place;              /* every tap of an image's pixels lies in one run */
  int columns, is_flat;      /* flat: columns walk all pixels as one row */
  int blocks;                /* columns read blocks of channels */
  nnd_size height, width;    /* of what columns walk */
  nnd_size pitch, length, vectors, rows; /* rows: output rows whose planes are packed at once */
  struct nnd_planes planes;
};

NND_INLINE struct nnd_convolution_call nnd_convolution_at(const struct nnd_convolution *op,
                                                          const struct nnd_table *given,
                                                          const struct nnd_image_shape *shape,
                                                          const struct nnd_image *in) {
  const struct nnd_image_form *form = &op->form;
  struct nnd_convolution_call c = {.y = nnd_image_axis(form, 0, shape->height),
                                   .x = nnd_image_axis(form, 1, shape->width)};
  c.first_y = nnd_trim_axis(&c.y);
  c.first_x = nnd_trim_axis(&c.x);
  const nnd_size channels = form->channels / form->groups;
  const int is_point = nnd_form_taps(form) == 1 && form->stride[0] == 1 && form->stride[1] == 1 &&
                       !(form->pad[0] | form->pad[1] | form->pad[2] | form->pad[3]);
  const int is_run = (shape->width == 1 || in->stride[3] == 1) && (shape->height == 1 || in->stride[2] == shape->width);
  const int is_apart = in->stride[1] % 512 || channels < 16; /* whole 2 KiB: all planes meet in few lines of a cache */
  c.in_place = is_point && is_run && is_apart;
  c.pitch = c.x.out_size + nnd_tap_shift(c.x, c.x.kernel - 1);
  c.length = (c.y.out_size - 1) * c.pitch + c.x.out_size;
  c.vectors = nnd_ceil_div(c.length, NND_LANES);
  c.rows = c.y.out_size;
  if (!c.in_place) {
    const nnd_size row = nnd_phases(c.y) * nnd_phases(c.x) * c.pitch * channels;
    const nnd_size least = nnd_ceil_div(NND_TILE_PIXELS, c.pitch) + 1; /* a block may begin anywhere in a row */
    c.rows = nnd_min(c.rows, nnd_max(least, NND_PACKED_FLOATS / row - nnd_tap_shift(c.y, c.y.kernel - 1)));
    c.planes = nnd_planes_for(c.y, c.x, c.rows);
  }
  const int is_narrow = c.x.out_size < 2 * NND_COLUMN_POSITIONS;
  c.is_flat = c.in_place || (c.pitch == c.x.out_size && c.rows == c.y.out_size && is_narrow);
  c.height = c.is_flat ? 1 : c.y.out_size;
  c.width = c.is_flat ? c.length : c.x.out_size;
  c.columns = (float)c.height * nnd_plan_cost(&op->columns, c.width) < nnd_plan_cost(&op->tiles, c.vectors);
  if (given) c.columns = given->row[given->header.rows - 1].unit == NND_COLUMNS;
  c.blocks = c.columns && !c.in_place && channels >= NND_LANES / 2;
  if (c.blocks) c.planes = nnd_blocks_for(c.y, c.x, c.rows);
  return c;
}

/* The taps that some output reads inside the image, row by row of the kernel: those of row ky are from of[ky] on. */
struct nnd_tap_list {
  struct nnd_axis y;
  nnd_size *of, count;
  struct nnd_tap *tap;
};

/* `memory` is of nnd_tap_floats(). */
static struct nnd_tap_list nnd_list_taps(const struct nnd_image_form *form, const struct nnd_convolution_call *c,
                                         float *memory) {
  const nnd_size channels = form->channels / form->groups;
  struct nnd_tap_list list = {.y = c->y, .of = (nnd_size *)memory};
  list.tap = (struct nnd_tap *)(list.of + c->y.kernel + 1);
  for (nnd_size ky = 0; ky < c->y.kernel; ky++) {
    list.of[ky] = list.count;
    for (nnd_size kx = 0; nnd_is_tap_read(c->y, ky) && kx < c->x.kernel; kx++)
      if (nnd_is_tap_read(c->x, kx)) {
        const nnd_size number = (c->first_y + ky) * form->kernel[1] + c->first_x + kx;
        list.tap[list.count++] = (struct nnd_tap){c->in_place ? 0 : nnd_tap_place(&c->planes, ky, kx) * (c->blocks ? NND_LANES : 1),
                                                  1 + number * channels};
      }
  }
  list.of[c->y.kernel] = list.count;
  return list;
}

NND_INLINE nnd_size nnd_tap_floats(const struct nnd_image_form *form) {
  const nnd_size sizes = form->kernel[0] + 1 + 2 * nnd_form_taps(form);
  return nnd_blocks(sizes * (nnd_size)(sizeof(nnd_size) / sizeof(float))) * NND_LANES;
}

/* Floats of scratch: the list of taps, what tiles keep, packed planes or the last block of an input in place. */
NND_INLINE nnd_size nnd_convolution_scratch(const struct nnd_image_form *form, const struct nnd_convolution_call *c) {
  const nnd_size channels = form->channels / form->groups;
  const nnd_size planes = c->blocks ? nnd_blocks(channels) * NND_LANES : channels;
  return nnd_tap_floats(form) + NND_KEPT_FLOATS + planes * (c->in_place ? NND_TILE_PIXELS : c->planes.plane);
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
  if (c->blocks)
    for (nnd_size i = 0; i < t->channels; i += NND_LANES)
      nnd_pack_block(&c->planes, first, last - first, nnd_plane_of(in, n, channel + i), in->stride + 1,
                     nnd_min(NND_LANES, t->channels - i), 0.0f, packed + i * c->planes.plane);
  for (nnd_size i = 0; !c->blocks && i < t->channels; i++)
    nnd_pack_plane(&c->planes, first, last - first, nnd_plane_of(in, n, channel + i), in->stride + 2, 0.0f,
                   packed + i * t->plane);
  t->in = packed;
  t->origin = first * c->pitch;
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
  struct nnd_block_cursor at = nnd_first_block(table, c->in_place, c->vectors);
  if (c->in_place) t.in = nnd_plane_of(in, n, channel);
  while (at.row < at.end) {
    const nnd_size first = at.vector * NND_LANES / c->pitch;
    const int count = nnd_next_blocks(&at, c->pitch, c->in_place ? PTRDIFF_MAX : c->rows, block);
    if (!c->in_place)
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

/* The same by columns. */
static void nnd_convolution_columns(const struct nnd_convolution_call *c, const struct nnd_table *table,
                                    struct nnd_tiles t, const struct nnd_tap_list *taps, const struct nnd_image *in,
                                    nnd_size n, nnd_size channel) {
  const struct nnd_block_cursor blocks = nnd_first_block(table, c->in_place, c->width);
  if (c->is_flat) {
    if (c->in_place) t.in = nnd_plane_of(in, n, channel);
    else nnd_pack_planes(c, &t, in, n, channel, 0, c->rows);
    t.pitch = t.width = c->width;
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
  const struct nnd_convolution_call c = nnd_convolution_at(op, given, shape, in);
  const nnd_size needed = nnd_convolution_scratch(form, &c);
  if (needed > floats) return needed;
  struct nnd_table table;
  if (!given) nnd_convolution_table(op, c.columns ? c.width : c.vectors, c.columns, c.in_place, &table);
  const nnd_size k = nnd_form_k(form), channels = form->channels / form->groups;
  const struct nnd_tap_list taps = nnd_list_taps(form, &c, scratch);
  const nnd_size apart = c.blocks ? NND_LANES : 1;
  struct nnd_tiles t = {.plane = c.in_place ? in->stride[1] : c.planes.plane * apart, .apart = apart,
                        .channels = channels, .k = k,
                        .taps = taps.count, .tap = taps.tap, .out_plane = out->stride[1],
                        .out_channels = form->out_channels / form->groups, .pitch = c.pitch,
                        .width = c.x.out_size, .length = c.length, .activation = form->activation,
                        .in_place = c.in_place, .kept = scratch + nnd_tap_floats(form)};
  for (nnd_size n = 0; n < shape->images; n++)
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
