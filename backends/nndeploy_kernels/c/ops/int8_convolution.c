/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_convolution: windows over images of bytes by constant weights of bytes; sums are exact.
 *
 * Pixels are the rows of products. A row of a window is one run of bytes where all channels of neighbouring pixels are
 * read: a tap, which is read where it lies, through a table of pointers; what hangs over an edge is copied. Of dilated
 * windows and of groups each pixel is a tap, or all of a window are copied side by side first where a pixel has few
 * channels.
 */
#include <stdio.h>

#include "ops/int8_convolution.h"
#include "ops/windows.h"

/* Pixels of so few channels, or of such that are no whole groups of k, are copied side by side. */
#define NND_FEW_CHANNELS 16

struct nnd_taps_to_pack {
  const uint8_t *from;
  int8_t *to;
  int32_t *column_sums;
  const struct nnd_int8_kernels *kernels;
  nnd_size taps, k, columns, panels, group_bytes; /* columns and panels of a group */
  int is_unsigned;
};

static void nnd_pack_taps(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_taps_to_pack *t = fields;
  const nnd_size each = t->taps * t->k;
  for (nnd_size number = first; number < last; number++) {
    const nnd_size group = number / t->panels, begin = number % t->panels * NND_INT8_COLUMNS;
    const nnd_size column = group * t->columns + begin, columns = nnd_min(NND_INT8_COLUMNS, t->columns - begin);
    int8_t *to = t->to + group * t->group_bytes + nnd_int8_conv_bytes(t->taps, t->k, begin);
    for (nnd_size tap = 0; tap < t->taps; tap++, to += nnd_int8_packed_bytes(t->k, columns)) {
      nnd_int8_pack(t->from + column * each + tap * t->k, t->is_unsigned, t->k, columns, 1, each, to,
                    t->column_sums + column);
      nnd_int8_settle(t->kernels, t->k, columns, to);
    }
  }
}

static int nnd_open_int8_convolution(struct nnd_opener *o) {
  struct nnd_int8_conv_own *own = nnd_own(o, sizeof *own);
  struct nnd_int8_convolution words;
  if (!own || !nnd_read_int8_convolution(o, &words)) return 0;
  struct nnd_int8_window *w = &own->window;
  struct nnd_int8_record *r = &own->record;
  if (!nnd_open_int8(o, r, &words.sums) || !nnd_open_int8_window(o, w, &words, r)) return 0;
  if (nnd_int8_is_deep(w, r)) return nnd_spread_int8(o, r, &words.sums) && (own->deep = nnd_open_int8_deep(o, w, r));
  own->taps = w->kernel[0] * w->kernel[1], own->k = w->channels;
  own->is_of_runs = w->groups == 1 && (w->dilation[1] == 1 || w->kernel[1] == 1);
  own->copies = !own->is_of_runs && own->taps > 1 && (own->k < NND_FEW_CHANNELS || own->k % NND_INT8_DEPTH);
  const nnd_size joined = own->is_of_runs ? w->kernel[1] : own->copies ? own->taps : 1;
  own->k *= joined, own->taps /= joined;
  const nnd_size columns = r->columns / w->groups;
  struct nnd_taps_to_pack t = {.from = r->weights->data,
                               .kernels = nnd_int8_kernels_here(o->model->options.plain_bytes != 0),
                               .taps = own->taps,
                               .k = own->k,
                               .columns = columns,
                               .panels = nnd_ceil_div(columns, NND_INT8_COLUMNS),
                               .group_bytes = nnd_int8_conv_bytes(own->taps, own->k, columns),
                               .is_unsigned = r->weights->element == NND_UINT8};
  if (t.group_bytes > NND_MOST_BYTES / w->groups) return nnd_fail(o->message, "weights that are too large");
  own->packed = t.to = nnd_take_int8(o, r->weights, w->groups * t.group_bytes, r->columns, &t.column_sums);
  own->column_sums = t.column_sums;
  if (!t.to) return 0;
  nnd_pack(o, r->weights, nnd_pack_taps, &t, sizeof t, w->groups * t.panels, 0);
  return nnd_spread_int8(o, r, &words.sums);
}

/* Tiles share the pixels evenly, batches the tiles. Scratch: a pixel outside of the image, rows that are copied, sums
 * of rows, and pointers, [tile][tap][row] of a batch. Where the machine multiplies blocks, strips are the tiles: rows
 * are copied and pointed at for one strip at a time, and what is packed of them is kept for the batch. */
struct nnd_int8_conv_fields {
  const struct nnd_int8_conv_own *own;
  const struct nnd_int8_kernels *kernels;
  struct nnd_int8_image image;
  struct nnd_int8_tiles tiles;
  nnd_size batches, panels, columns; /* panels and columns of a group */
  nnd_size first_inside, end_inside; /* columns whose windows do not hang over an edge of their rows */
  nnd_size k;                        /* bytes of a row that the kernels read of each tap */
  nnd_size outside_bytes, row_bytes, sums_at, rows_at, pointers_at, packed_at;
  int is_signed, factor_step;
  nnd_int8_multiplier multiply; /* null: rows are multiplied in tiles */
  struct nnd_int8_strips strips;
};

static nnd_size nnd_conv_row(const struct nnd_int8_conv_fields *t, nnd_size tile) {
  return nnd_int8_by_blocks(t->multiply) ? nnd_int8_strip_row(t->strips, tile) : nnd_int8_tile_row(t->tiles, tile);
}

/* An output pixel, and where its window begins. */
struct nnd_int8_corner {
  const uint8_t *image;
  nnd_size row, column, y, x;
};

static struct nnd_int8_corner nnd_int8_corner_of(const struct nnd_int8_image *image, const uint8_t *a, nnd_size pixel) {
  const struct nnd_axis *y = &image->y, *x = &image->x;
  const nnd_size column = pixel % x->out_size, row = pixel / x->out_size % y->out_size;
  const uint8_t *from = a + pixel / x->out_size / y->out_size * y->size * x->size * image->channels;
  return (struct nnd_int8_corner){from, row, column, row * y->stride - y->pad, column * x->stride - x->pad};
}

/* Goes on by pixels of the same row. */
NND_INLINE void nnd_int8_next_corner(const struct nnd_int8_image *image, nnd_size pixels,
                                     struct nnd_int8_corner *corner) {
  const struct nnd_axis *y = &image->y, *x = &image->x;
  corner->column += pixels, corner->x += pixels * x->stride;
  if (corner->column < x->out_size) return;
  corner->column = 0, corner->x = -x->pad;
  corner->row++, corner->y += y->stride;
  if (corner->row < y->out_size) return;
  corner->row = 0, corner->y = -y->pad, corner->image += y->size * x->size * image->channels;
}

/* The pixel that a tap reads; `outside` where it lies there. */
NND_INLINE const uint8_t *nnd_int8_pixel(const struct nnd_int8_image *image, const struct nnd_int8_corner *corner,
                                         nnd_size ky, nnd_size kx, const uint8_t *outside) {
  const nnd_size y = corner->y + ky * image->y.dilation, x = corner->x + kx * image->x.dilation;
  const int is_inside = y >= 0 && y < image->y.size && x >= 0 && x < image->x.size;
  return is_inside ? corner->image + (y * image->x.size + x) * image->channels : outside;
}

/* All taps of a window side by side, with zeros behind the last up to a whole group of k. */
static void nnd_copy_window(const struct nnd_int8_conv_fields *t, const struct nnd_int8_corner *corner,
                            nnd_size channel, const uint8_t *outside, uint8_t *to) {
  const nnd_size channels = t->own->window.channels;
  for (nnd_size ky = 0; ky < t->image.y.kernel; ky++)
    for (nnd_size kx = 0; kx < t->image.x.kernel; kx++, to += channels)
      memcpy(to, nnd_int8_pixel(&t->image, corner, ky, kx, outside) + channel, (size_t)channels);
  memset(to, 0, NND_INT8_DEPTH);
}

/* Pointers that lie `step` bytes apart; as many as a tile has rows take a few vectors. */
NND_INLINE void nnd_point_evenly(const void **to, const uint8_t *from, nnd_size count, nnd_size step) {
  if (count == NND_INT8_ROWS)
    for (int i = 0; i < NND_INT8_ROWS; i++) to[i] = from + i * step;
  else
    for (nnd_size i = 0; i < count; i++) to[i] = from + i * step;
}

/* How many of `count` pixels in a row have windows whose runs may be read where they lie; 0: not the first. */
NND_INLINE nnd_size nnd_readable_pixels(const struct nnd_int8_conv_fields *t, const struct nnd_int8_corner *corner,
                                        const uint8_t *end, nnd_size count) {
  const struct nnd_axis y = t->image.y, x = t->image.x;
  if (corner->column < t->first_inside || corner->column >= t->end_inside) return 0;
  const nnd_size row = nnd_min(y.size - 1, corner->y + (y.kernel - 1) * y.dilation); /* the last that is read */
  const nnd_size left = end - corner->image - (row * x.size + corner->x) * t->image.channels - t->k;
  if (left < 0) return 0;
  count = nnd_min(count, t->end_inside - corner->column);
  const nnd_size step = x.stride * t->image.channels;
  return left >= (count - 1) * step ? count : left / step + 1;
}

/* The rows of the windows of `count` pixels as runs of `t->k` bytes. */
static void nnd_point_at_runs(const struct nnd_int8_conv_fields *t, const struct nnd_int8_corner *corner,
                              nnd_size count, const uint8_t *outside, const void **to) {
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const nnd_size channels = t->image.channels;
  for (nnd_size ky = 0; ky < y.kernel; ky++, to += NND_INT8_MOST_ROWS) {
    const nnd_size row = corner->y + ky * y.dilation;
    if (row < 0 || row >= y.size)
      nnd_point_evenly(to, outside, count, 0);
    else
      nnd_point_evenly(to, corner->image + (row * x.size + corner->x) * channels, count, x.stride * channels);
  }
}

/* The same of one pixel whose window hangs over an edge of its row, or of the memory: it is copied. Returns where the
 * next copies go. */
static uint8_t *nnd_copy_runs(const struct nnd_int8_conv_fields *t, const struct nnd_int8_corner *corner,
                              const uint8_t *outside, uint8_t *copies, const void **to) {
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const nnd_size channels = t->image.channels;
  const nnd_size begin = nnd_min(x.size, nnd_max(0, corner->x)), last = nnd_min(x.size, corner->x + x.kernel);
  const nnd_size before = nnd_min(x.kernel, nnd_max(0, begin - corner->x)) * channels;
  const nnd_size count = nnd_max(0, last - begin) * channels;
  for (nnd_size ky = 0; ky < y.kernel; ky++, to += NND_INT8_MOST_ROWS) {
    const nnd_size row = corner->y + ky * y.dilation;
    *to = outside;
    if (row < 0 || row >= y.size) continue;
    memcpy(copies, outside, (size_t)before);
    memcpy(copies + before, corner->image + (row * x.size + begin) * channels, (size_t)count);
    memcpy(copies + before + count, outside, (size_t)(t->k - before - count));
    *to = copies, copies += t->row_bytes;
  }
  return copies;
}

/* The taps of `count` pixels in a row, one by one; those outside of the image are all the same pixel. */
static void nnd_point_at_taps(const struct nnd_int8_conv_fields *t, const struct nnd_int8_corner *corner,
                              nnd_size channel, nnd_size count, const uint8_t *outside, const void **to) {
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const nnd_size channels = t->image.channels, step = x.stride * channels, reach = (count - 1) * x.stride;
  for (nnd_size ky = 0; ky < y.kernel; ky++) {
    const nnd_size row = corner->y + ky * y.dilation;
    const uint8_t *from = corner->image + row * x.size * channels + channel;
    for (nnd_size kx = 0; kx < x.kernel; kx++, to += NND_INT8_MOST_ROWS) {
      const nnd_size at = corner->x + kx * x.dilation; /* of the first pixel */
      nnd_size begin = at < 0 ? nnd_min(count, nnd_ceil_div(-at, x.stride)) : 0;
      nnd_size end = at + reach < x.size ? count : at < x.size ? (x.size - 1 - at) / x.stride + 1 : 0;
      if (row < 0 || row >= y.size) end = 0;
      end = nnd_max(begin, end);
      nnd_point_evenly(to, outside, begin, 0);
      nnd_point_evenly(to + begin, from + (at + begin * x.stride) * channels, end - begin, step);
      nnd_point_evenly(to + end, outside, count - end, 0);
    }
  }
}

/* Makes what a batch of tiles reads of a group's channels. */
static void nnd_prepare_batch(const struct nnd_int8_conv_fields *t, const struct nnd_int8_data *d, nnd_size batch,
                              nnd_size group, char *scratch) {
  const struct nnd_int8_conv_own *own = t->own;
  const nnd_size channel = group * own->window.channels, taps = own->taps;
  const nnd_size begin = nnd_even(t->tiles.count, t->batches, batch);
  const nnd_size last = nnd_even(t->tiles.count, t->batches, batch + 1);
  const uint8_t *end = d->a + t->image.images * t->image.y.size * t->image.x.size * t->image.channels;
  const void **pointers = (const void **)(scratch + t->pointers_at);
  const uint8_t *outside = (uint8_t *)scratch;
  uint8_t *row = (uint8_t *)scratch + t->rows_at;
  int32_t *sums = (int32_t *)(scratch + t->sums_at);
  struct nnd_int8_corner corner = nnd_int8_corner_of(&t->image, d->a, nnd_conv_row(t, begin));
  char *packed = scratch + t->packed_at;
  for (nnd_size tile = begin; tile < last; tile++) {
    const nnd_size count = nnd_conv_row(t, tile + 1) - nnd_conv_row(t, tile);
    for (nnd_size r = 0, pixels; r < count; r += pixels, nnd_int8_next_corner(&t->image, pixels, &corner)) {
      pixels = 1;
      if (own->is_of_runs) {
        const nnd_size readable = nnd_readable_pixels(t, &corner, end, count - r);
        pixels = nnd_max(1, readable);
        if (readable)
          nnd_point_at_runs(t, &corner, pixels, outside, pointers + r);
        else
          row = nnd_copy_runs(t, &corner, outside, row, pointers + r);
      } else if (own->copies) {
        nnd_copy_window(t, &corner, channel, outside, row);
        pointers[r] = row, row += t->row_bytes;
      } else {
        pixels = nnd_min(count - r, t->image.x.out_size - corner.column);
        nnd_point_at_taps(t, &corner, channel, pixels, outside, pointers + r);
      }
    }
    for (nnd_size r = 0; own->record.zeros && r < count; r++) {
      uint32_t sum = 0;
      for (nnd_size tap = 0; tap < taps; tap++)
        sum += (uint32_t)nnd_int8_row_sum(pointers[tap * NND_INT8_MOST_ROWS + r], own->k, t->is_signed);
      *sums++ = (int32_t)sum;
    }
    if (nnd_int8_by_blocks(t->multiply)) {
      nnd_int8_pack_strip(pointers, NND_INT8_MOST_ROWS, taps, own->k, count, packed);
      packed += nnd_int8_strip_bytes(taps, own->k), row = (uint8_t *)scratch + t->rows_at;
    } else {
      pointers += taps * NND_INT8_MOST_ROWS;
    }
  }
}

/* A batch of strips by the panels [panel, end) of a group. */
static void nnd_run_conv_strips(const struct nnd_int8_conv_fields *t, const struct nnd_int8_data *d, nnd_size batch,
                                nnd_size group, nnd_size panel, nnd_size end, const char *scratch) {
  const struct nnd_int8_conv_own *own = t->own;
  const struct nnd_int8_strip_job job = {
      .multiply = t->multiply,
      .record = &own->record,
      .data = d,
      .strips = t->strips,
      .begin = nnd_even(t->tiles.count, t->batches, batch),
      .last = nnd_even(t->tiles.count, t->batches, batch + 1),
      .column = group * t->columns,
      .columns = t->columns,
      .panel = panel,
      .end = end,
      .column_sums = own->column_sums,
      .row_sums = own->record.zeros ? (const int32_t *)(scratch + t->sums_at) : NULL,
      .weights = own->packed + group * nnd_int8_conv_bytes(own->taps, own->k, t->columns),
      .from = scratch + t->packed_at,
      .k = own->k,
      .taps = own->taps,
      .zero = nnd_int8_zero(d, t->is_signed),
      .is_packed = 1,
      .is_signed = t->is_signed,
      .factor_step = t->factor_step};
  nnd_run_int8_strips(&job);
}

/* A batch of tiles by one panel of a group. */
static void nnd_run_conv_panel(const struct nnd_int8_conv_fields *t, const struct nnd_int8_data *d, nnd_size batch,
                               nnd_size group, nnd_size panel, const char *scratch) {
  const struct nnd_int8_conv_own *own = t->own;
  const struct nnd_int8_record *r = &own->record;
  const nnd_size begin = nnd_even(t->tiles.count, t->batches, batch);
  const nnd_size last = nnd_even(t->tiles.count, t->batches, batch + 1);
  const nnd_size top = nnd_conv_row(t, begin), of_group = panel * NND_INT8_COLUMNS;
  const nnd_size column = group * t->columns + of_group, columns = nnd_min(NND_INT8_COLUMNS, t->columns - of_group);
  const int32_t *column_sums = own->column_sums + column;
  int32_t first[NND_INT8_COLUMNS], sums[NND_INT8_ROWS * NND_INT8_COLUMNS];
  float factors[NND_INT8_COLUMNS];
  nnd_begin_int8(r, d, column, columns, own->column_sums, nnd_int8_zero(d, t->is_signed), t->factor_step, first,
                 factors);
  const int8_t *weights = own->packed + group * nnd_int8_conv_bytes(own->taps, own->k, t->columns);
  struct nnd_int8_job job = {.tap_rows = NND_INT8_MOST_ROWS,
                             .taps = own->taps,
                             .k = t->k,
                             .is_signed = t->is_signed,
                             .weights = weights + nnd_int8_conv_bytes(own->taps, own->k, of_group),
                             .column_sums = column_sums,
                             .first = first,
                             .sums = sums,
                             .sums_row = NND_INT8_COLUMNS};
  struct nnd_int8_ended ended = {.sums = sums,
                                 .sums_row = NND_INT8_COLUMNS,
                                 .columns = columns,
                                 .zeros = r->zeros ? r->zeros + column : NULL,
                                 .factors = factors,
                                 .bias = r->bias ? r->bias + column : NULL,
                                 .numbers = r->numbers ? r->numbers + column : NULL,
                                 .out_row = r->columns};
  if (nnd_int8_ends_in_tiles(r, columns)) job.end = &r->end, job.ended = &ended;
  const nnd_int8_kernel *kernels = t->kernels->of[nnd_int8_vectors(t->columns, of_group)];
  const void *const *pointers = (const void *const *)(scratch + t->pointers_at);
  for (nnd_size tile = begin; tile < last; tile++) {
    const nnd_size row = nnd_conv_row(t, tile);
    ended.rows = nnd_conv_row(t, tile + 1) - row;
    job.rows = pointers + (tile - begin) * own->taps * NND_INT8_MOST_ROWS;
    ended.row_sums = (const int32_t *)(scratch + t->sums_at) + row - top;
    ended.out = d->out + (row * r->columns + column) * nnd_element_bytes[r->end.element];
    ended.residual = d->residual ? d->residual + row * r->columns + column : NULL;
    kernels[ended.rows](&job);
    if (!job.end) nnd_int8_finish(&r->end, &ended);
  }
  const nnd_size rows = nnd_conv_row(t, last) - top;
  nnd_int8_look_up_rows(&r->end, d->out + top * r->columns + column, rows, columns, r->columns);
}

static void nnd_run_int8_convolution(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_conv_fields *t = fields;
  const struct nnd_int8_data d = {at[0], at[1], at[2], at[3], at[4]};
  const nnd_size of_batch = t->own->window.groups * t->panels;
  memset(part.scratch, d.zero ? *d.zero : 0, (size_t)t->outside_bytes);
  nnd_size first, last;
  nnd_share(t->batches * of_batch, part, &first, &last);
  for (nnd_size unit = first, panels; unit < last; unit += panels) {
    const nnd_size batch = unit / of_batch, group = unit % of_batch / t->panels, panel = unit % t->panels;
    panels = nnd_min(t->panels - panel, last - unit);
    nnd_prepare_batch(t, &d, batch, group, part.scratch);
    const int by_blocks = nnd_int8_by_blocks(t->multiply);
    if (by_blocks) nnd_run_conv_strips(t, &d, batch, group, panel, panel + panels, part.scratch);
    for (nnd_size i = 0; !by_blocks && i < panels; i++)
      nnd_run_conv_panel(t, &d, batch, group, panel + i, part.scratch);
  }
}

static nnd_size nnd_in_lines(nnd_size num_bytes) { return nnd_ceil_div(num_bytes, NND_LINE_BYTES) * NND_LINE_BYTES; }

/* The most pixels of `held` that follow each other whose windows hang over an edge of their rows; and fewer than a
 * group of k of each row whose windows may end where the memory does, which groups reach beyond. */
static nnd_size nnd_most_copied(const struct nnd_int8_conv_fields *t, nnd_size held) {
  const struct nnd_axis y = t->image.y;
  const nnd_size columns = t->image.x.out_size, rows = nnd_min(held, held / columns + 2);
  const nnd_size last = NND_INT8_DEPTH * ((y.kernel - 1) * y.dilation + 1);
  return nnd_min(held, rows * (columns - t->end_inside + t->first_inside) + last);
}

static void nnd_find_inside(struct nnd_int8_conv_fields *t) {
  const struct nnd_axis x = t->image.x;
  const nnd_size last = x.size - (x.kernel - 1) * x.dilation - 1 + x.pad; /* where the last such window begins */
  t->first_inside = nnd_min(x.out_size, nnd_ceil_div(x.pad, x.stride));
  t->end_inside = nnd_max(t->first_inside, last < 0 ? 0 : nnd_min(x.out_size, last / x.stride + 1));
}

static int nnd_make_int8_convolution(struct nnd_maker *m) {
  const struct nnd_int8_conv_own *own = m->step->own;
  const struct nnd_int8_record *r = &own->record;
  struct nnd_int8_image image;
  if (!nnd_make_int8_window(m, &own->window, r, &image)) return 0;
  if (own->deep) return nnd_make_int8_deep(m, own->deep, r, &image);
  const int plain = m->table->model->options.plain_bytes != 0;
  const struct nnd_int8_kernels *kernels = nnd_int8_kernels_here(plain);
  const nnd_int8_multiplier multiply =
      nnd_int8_multiplier_here(plain, image.pixels, own->taps * own->k, r->columns / own->window.groups);
  if (nnd_int8_is_padded(own, &image, kernels, multiply))
    return nnd_make_int8_padded(m, own, &image, kernels, multiply);
  struct nnd_int8_conv_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size columns = r->columns / own->window.groups;
  *t = (struct nnd_int8_conv_fields){.own = own,
                                     .kernels = kernels,
                                     .multiply = multiply,
                                     .strips = nnd_int8_strips_of(image.pixels),
                                     .image = image,
                                     .tiles = nnd_int8_tiles_of(image.pixels),
                                     .panels = nnd_ceil_div(columns, NND_INT8_COLUMNS),
                                     .columns = columns,
                                     .is_signed = nnd_shape_of(m, r->a)->element == NND_INT8,
                                     .factor_step = r->factor >= 0 && nnd_shape_of(m, r->factor)->count != 1};
  if (multiply) t->tiles.count = t->strips.count;
  const nnd_size tile_rows = multiply ? t->strips.each : NND_INT8_ROWS;
  const nnd_size strip_bytes = multiply ? nnd_int8_strip_bytes(own->taps, own->k) : 0;
  nnd_find_inside(t);
  const int is_padded = own->copies || own->is_of_runs; /* kernels read whole groups of k */
  t->k = is_padded ? nnd_int8_groups(own->k) * NND_INT8_DEPTH : own->k;
  if (is_padded) t->row_bytes = nnd_in_lines(t->k + NND_INT8_DEPTH);
  t->outside_bytes = nnd_max(image.channels, t->k);
  const nnd_size pointer_bytes = own->taps * (nnd_size)sizeof(void *);
  const nnd_size of_window = nnd_min(image.x.stride * image.y.stride, own->record.inner) * image.channels +
                             pointer_bytes + (own->copies ? t->row_bytes : 0) +
                             r->columns * nnd_element_bytes[r->end.element];
  const nnd_size of_pixel = multiply ? strip_bytes / NND_INT8_STRIP : of_window;
  const nnd_size held_bytes = nnd_int8_held_bytes(m, r->inner * r->columns);
  const nnd_size most = nnd_max(1, held_bytes / tile_rows / of_pixel); /* tiles of a batch */
  const nnd_size units = t->panels * own->window.groups;
  const int threads = nnd_threads(m);
  t->batches = nnd_ceil_div(t->tiles.count, multiply ? nnd_ceil_div(most, 2) * 2 : most);
  if (threads > 1) t->batches = nnd_max(t->batches, nnd_min(t->tiles.count, nnd_ceil_div(8 * threads, units)));
  const nnd_size tiles = nnd_ceil_div(t->tiles.count, t->batches), held = tiles * tile_rows;
  const nnd_size pointed = multiply ? tile_rows : held; /* pixels that are copied and pointed at together */
  const nnd_size copied = own->copies ? pointed : own->is_of_runs ? nnd_most_copied(t, pointed) * own->taps : 0;
  t->rows_at = nnd_in_lines(t->outside_bytes);
  t->sums_at = t->rows_at + copied * t->row_bytes;
  t->pointers_at = t->sums_at + nnd_in_lines(r->zeros ? held * (nnd_size)sizeof(int32_t) : 0);
  t->packed_at = t->pointers_at + nnd_in_lines((multiply ? 1 : tiles) * NND_INT8_MOST_ROWS * pointer_bytes);
  m->scratch_bytes = t->packed_at + tiles * strip_bytes;
  m->instance->run = nnd_run_int8_convolution;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld x %lld x %lld by %s, %lld batches%s",
           (long long)image.pixels, (long long)r->inner, (long long)columns, multiply ? "amx" : kernels->name,
           (long long)t->batches, own->copies ? ", windows copied" : "");
  return 1;
}

const struct nnd_op nnd_op_int8_convolution = {"int8_convolution", nnd_open_int8_convolution,
                                               nnd_make_int8_convolution};
