/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows over rows of an image that are copied with what lies around them: all pixels of an output row are even rows
 * of products then, and nobody asks where an edge is.
 */
#include <stdio.h>

#include "ops/int8_convolution.h"
#include "ops/windows.h"

#define NND_MOST_PADDED ((nnd_size)1 << 20) /* bytes of the rows that are copied at once */
#define NND_INT8_LEAST_LINE 5               /* pixels of a strip; fewer in a row are packed as others are */
#define NND_MOST_AROUND 1024                /* pixels that a window reaches, and that lie before an image */

/* Batches are rows of the output of one image. Scratch: the rows that these read, and a pointer for each tap. */
struct nnd_int8_padded_fields {
  const struct nnd_int8_conv_own *own;
  const struct nnd_int8_kernels *kernels;
  struct nnd_int8_image image;
  struct nnd_int8_tiles tiles;             /* of an output row */
  nnd_size rows, batches, panels;          /* output rows of a batch, batches of an image */
  nnd_size row_bytes, copied, pointers_at; /* of a row; bytes of the image's row that it holds */
  int is_signed, factor_step;
  nnd_int8_multiplier multiply; /* null: rows are multiplied in tiles */
  struct nnd_int8_strips strips;
};

static nnd_size nnd_padded_row_bytes(const struct nnd_int8_image *image) {
  const struct nnd_axis x = image->x;
  const nnd_size span = (x.out_size - 1) * x.stride + (x.kernel - 1) * x.dilation + 1;
  return nnd_ceil_div(span * image->channels + NND_INT8_DEPTH, NND_LINE_BYTES) * NND_LINE_BYTES;
}

/* Rows of the image that `rows` of the output read. */
static nnd_size nnd_padded_rows(struct nnd_axis y, nnd_size rows) {
  return (rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
}

/* What is read of each tap. */
static nnd_size nnd_padded_k(const struct nnd_int8_conv_own *own) { return nnd_int8_groups(own->k) * NND_INT8_DEPTH; }

int nnd_int8_is_padded(const struct nnd_int8_conv_own *own, const struct nnd_int8_image *image,
                       const struct nnd_int8_kernels *kernels, nnd_int8_multiplier multiply) {
  const struct nnd_axis y = image->y, x = image->x;
  if (own->window.groups > 1 || own->copies || own->record.zeros || !kernels->even[1][NND_INT8_ROWS]) return 0;
  const nnd_size panels = nnd_ceil_div(own->record.columns, NND_INT8_COLUMNS);
  if (multiply ? x.out_size < NND_INT8_LEAST_LINE || !nnd_int8_reads_rows(nnd_padded_k(own), image->channels, panels)
               : nnd_int8_tiles_of(x.out_size).each < NND_INT8_EVEN_ROWS)
    return 0;
  for (int i = 0; i < 2; i++) {
    const struct nnd_axis one = i ? x : y;
    if (one.pad > NND_MOST_AROUND || (one.kernel - 1) * one.dilation > NND_MOST_AROUND || one.stride > one.size)
      return 0;
  }
  if (x.out_size > (x.size + 2 * NND_MOST_AROUND) / x.stride + 1) return 0;
  return nnd_padded_row_bytes(image) <= NND_MOST_PADDED / nnd_padded_rows(y, 1);
}

/* Copies the rows of the image that the output's rows from `top` on read; around them the zero point is already. */
static void nnd_copy_padded(const struct nnd_int8_padded_fields *t, const uint8_t *image, nnd_size top, nnd_size rows,
                            uint8_t zero, uint8_t *to) {
  const struct nnd_axis y = t->image.y, x = t->image.x;
  to += x.pad * t->image.channels;
  for (nnd_size i = 0; i < nnd_padded_rows(y, rows); i++, to += t->row_bytes) {
    const nnd_size row = top * y.stride - y.pad + i;
    if (row < 0 || row >= y.size)
      memset(to, zero, (size_t)t->copied);
    else
      memcpy(to, image + row * x.size * t->image.channels, (size_t)t->copied);
  }
}

/* Some rows of the output, of image `number`, by one panel. */
static void nnd_run_padded_panel(const struct nnd_int8_padded_fields *t, const struct nnd_int8_data *d, nnd_size number,
                                 nnd_size top, nnd_size bottom, nnd_size panel, char *scratch) {
  const struct nnd_int8_conv_own *own = t->own;
  const struct nnd_int8_record *r = &own->record;
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const nnd_size column = panel * NND_INT8_COLUMNS, columns = nnd_min(NND_INT8_COLUMNS, r->columns - column);
  const nnd_size step = x.stride * t->image.channels, out_bytes = nnd_element_bytes[r->end.element];
  const nnd_size across = own->is_of_runs ? 1 : x.kernel; /* taps of a row of a window */
  int32_t first[NND_INT8_COLUMNS], sums[NND_INT8_ROWS * NND_INT8_COLUMNS];
  float factors[NND_INT8_COLUMNS];
  nnd_begin_int8(r, d, column, columns, own->column_sums, nnd_int8_zero(d, t->is_signed), t->factor_step, first,
                 factors);
  const void **pointers = (const void **)(scratch + t->pointers_at);
  struct nnd_int8_job job = {.rows = pointers,
                             .tap_rows = 1,
                             .taps = own->taps,
                             .k = nnd_padded_k(own),
                             .step = step,
                             .is_signed = t->is_signed,
                             .weights = own->packed + nnd_int8_conv_bytes(own->taps, own->k, column),
                             .column_sums = own->column_sums + column,
                             .first = first,
                             .sums = sums,
                             .sums_row = NND_INT8_COLUMNS};
  struct nnd_int8_ended ended = {.sums = sums,
                                 .sums_row = NND_INT8_COLUMNS,
                                 .columns = columns,
                                 .factors = factors,
                                 .bias = r->bias ? r->bias + column : NULL,
                                 .numbers = r->numbers ? r->numbers + column : NULL,
                                 .out_row = r->columns};
  if (nnd_int8_ends_in_tiles(r, columns)) job.end = &r->end, job.ended = &ended;
  const nnd_int8_kernel *kernels = t->kernels->even[nnd_int8_vectors(r->columns, column)];
  for (nnd_size row = top; row < bottom; row++) {
    const uint8_t *from = (const uint8_t *)scratch + (row - top) * y.stride * t->row_bytes;
    const nnd_size begin = ((number * y.out_size + row) * x.out_size) * r->columns + column;
    for (nnd_size tap = 0; tap < own->taps; tap++)
      pointers[tap] = from + tap / across * y.dilation * t->row_bytes + tap % across * x.dilation * t->image.channels;
    for (nnd_size tile = 0; tile < t->tiles.count; tile++) {
      const nnd_size pixel = nnd_int8_tile_row(t->tiles, tile);
      ended.rows = nnd_int8_tile_row(t->tiles, tile + 1) - pixel;
      ended.out = d->out + (begin + pixel * r->columns) * out_bytes;
      ended.residual = d->residual ? d->residual + begin + pixel * r->columns : NULL;
      kernels[ended.rows](&job);
      if (!job.end) nnd_int8_finish(&r->end, &ended);
      for (nnd_size tap = 0; tap < own->taps; tap++) pointers[tap] = (const uint8_t *)pointers[tap] + ended.rows * step;
    }
  }
  const nnd_size begin = (number * y.out_size + top) * x.out_size;
  nnd_int8_look_up_rows(&r->end, d->out + begin * r->columns + column, (bottom - top) * x.out_size, columns,
                        r->columns);
}

/* The same by strips, which are parts of lines. */
static void nnd_run_padded_strips(const struct nnd_int8_padded_fields *t, const struct nnd_int8_data *d,
                                  nnd_size number, nnd_size top, nnd_size bottom, nnd_size panel, nnd_size end,
                                  char *scratch) {
  const struct nnd_int8_conv_own *own = t->own;
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const nnd_size across = own->is_of_runs ? 1 : x.kernel;
  nnd_size *offsets = (nnd_size *)(scratch + t->pointers_at);
  for (nnd_size tap = 0; tap < own->taps; tap++)
    offsets[tap] = tap / across * y.dilation * t->row_bytes + tap % across * x.dilation * t->image.channels;
  const struct nnd_int8_strip_job job = {.multiply = t->multiply,
                                         .record = &own->record,
                                         .data = d,
                                         .strips = t->strips,
                                         .last = (bottom - top) * t->strips.count,
                                         .top = (number * y.out_size + top) * x.out_size,
                                         .columns = own->record.columns,
                                         .panel = panel,
                                         .end = end,
                                         .column_sums = own->column_sums,
                                         .weights = own->packed,
                                         .from = scratch,
                                         .k = nnd_padded_k(own),
                                         .line = y.stride * t->row_bytes,
                                         .step = x.stride * t->image.channels,
                                         .offsets = offsets,
                                         .taps = own->taps,
                                         .zero = nnd_int8_zero(d, t->is_signed),
                                         .is_signed = t->is_signed,
                                         .factor_step = t->factor_step};
  nnd_run_int8_strips(&job);
}

static void nnd_run_int8_padded(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_padded_fields *t = fields;
  const struct nnd_axis y = t->image.y, x = t->image.x;
  const struct nnd_int8_data d = {at[0], at[1], at[2], at[3], at[4]};
  const uint8_t zero = d.zero ? *d.zero : 0;
  memset(part.scratch, zero, (size_t)t->pointers_at);
  nnd_size first, last;
  nnd_share(t->image.images * t->batches * t->panels, part, &first, &last);
  for (nnd_size unit = first, panels; unit < last; unit += panels) {
    const nnd_size batch = unit / t->panels % t->batches, number = unit / t->panels / t->batches;
    const nnd_size panel = unit % t->panels;
    panels = nnd_min(t->panels - panel, last - unit);
    const nnd_size top = nnd_even(y.out_size, t->batches, batch), bottom = nnd_even(y.out_size, t->batches, batch + 1);
    nnd_copy_padded(t, d.a + number * y.size * x.size * t->image.channels, top, bottom - top, zero,
                    (uint8_t *)part.scratch);
    const int by_blocks = nnd_int8_by_blocks(t->multiply);
    if (by_blocks) nnd_run_padded_strips(t, &d, number, top, bottom, panel, panel + panels, part.scratch);
    for (nnd_size i = 0; !by_blocks && i < panels; i++)
      nnd_run_padded_panel(t, &d, number, top, bottom, panel + i, part.scratch);
  }
}

int nnd_make_int8_padded(struct nnd_maker *m, const struct nnd_int8_conv_own *own, const struct nnd_int8_image *image,
                         const struct nnd_int8_kernels *kernels, nnd_int8_multiplier multiply) {
  const struct nnd_int8_record *r = &own->record;
  const struct nnd_axis y = image->y, x = image->x;
  struct nnd_int8_padded_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_int8_padded_fields){.own = own,
                                       .kernels = kernels,
                                       .multiply = multiply,
                                       .image = *image,
                                       .tiles = nnd_int8_tiles_of(x.out_size),
                                       .strips = nnd_int8_strips_of(x.out_size),
                                       .panels = nnd_ceil_div(r->columns, NND_INT8_COLUMNS),
                                       .row_bytes = nnd_padded_row_bytes(image),
                                       .is_signed = nnd_shape_of(m, r->a)->element == NND_INT8,
                                       .factor_step = r->factor >= 0 && nnd_shape_of(m, r->factor)->count != 1};
  t->copied = nnd_max(0, nnd_min(x.size * image->channels, t->row_bytes - x.pad * image->channels));
  const nnd_size of_row = y.stride * t->row_bytes + x.out_size * r->columns * nnd_element_bytes[r->end.element];
  const nnd_size fitting = nnd_int8_held_bytes(m, r->inner * r->columns) / of_row;
  const nnd_size most = nnd_max(1, nnd_min(fitting, NND_MOST_PADDED / (y.stride * t->row_bytes)));
  t->batches = nnd_ceil_div(y.out_size, most);
  const nnd_size units = t->panels * image->images, threads = nnd_threads(m);
  if (threads > 1) t->batches = nnd_max(t->batches, nnd_min(y.out_size, nnd_ceil_div(8 * threads, units)));
  t->rows = nnd_ceil_div(y.out_size, t->batches);
  t->pointers_at = nnd_padded_rows(y, t->rows) * t->row_bytes;
  m->scratch_bytes = t->pointers_at + own->taps * (nnd_size)sizeof(void *);
  m->instance->run = nnd_run_int8_padded;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld x %lld x %lld by %s, %lld rows at once",
           (long long)image->pixels, (long long)r->inner, (long long)r->columns, multiply ? "amx" : kernels->name,
           (long long)t->rows);
  return 1;
}
