/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_connected: rows of bytes by a constant matrix of bytes, packed when the step is opened; sums are exact.
 */
#include <stdio.h>

#include "ops/int8_strips.h"
#include "ops/windows.h"

struct nnd_connected_own {
  struct nnd_int8_record record;
  const int8_t *packed;
  const int32_t *column_sums;
};

struct nnd_bytes_to_pack {
  const uint8_t *from;
  int8_t *to;
  int32_t *column_sums;
  const struct nnd_int8_kernels *kernels;
  nnd_size inner, columns, k_step, column_step;
  int is_unsigned;
};

static void nnd_pack_bytes(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_bytes_to_pack *t = fields;
  for (nnd_size panel = first; panel < last; panel++) {
    const nnd_size column = panel * NND_INT8_COLUMNS, columns = nnd_min(NND_INT8_COLUMNS, t->columns - column);
    int8_t *to = t->to + nnd_int8_packed_bytes(t->inner, column);
    nnd_int8_pack(t->from + column * t->column_step, t->is_unsigned, t->inner, columns, t->k_step, t->column_step, to,
                  t->column_sums + column);
    nnd_int8_settle(t->kernels, t->inner, columns, to);
  }
}

static int nnd_pack_connected(struct nnd_opener *o, struct nnd_connected_own *own, int is_transposed) {
  const struct nnd_weight_data *weights = own->record.weights;
  if (weights->rank != 2) return nnd_fail(o->message, "weights of %d axes for rows of bytes", weights->rank);
  const nnd_size inner = weights->sizes[is_transposed], columns = weights->sizes[1 - is_transposed];
  if (inner < 1 || columns < 1) return nnd_fail(o->message, "weights without elements");
  struct nnd_bytes_to_pack t = {.from = weights->data,
                                .kernels = nnd_int8_kernels_here(o->model->options.plain_bytes != 0),
                                .inner = inner,
                                .columns = columns,
                                .k_step = is_transposed ? 1 : columns,
                                .column_step = is_transposed ? inner : 1,
                                .is_unsigned = weights->element == NND_UINT8};
  own->record.inner = inner, own->record.columns = columns;
  own->packed = t.to = nnd_take_int8(o, weights, nnd_int8_packed_bytes(inner, columns), columns, &t.column_sums);
  own->column_sums = t.column_sums;
  if (!t.to) return 0;
  nnd_pack(o, weights, nnd_pack_bytes, &t, sizeof t, nnd_ceil_div(columns, NND_INT8_COLUMNS), 0);
  return 1;
}

NND_RECORD(int8_connected)

static int nnd_open_int8_connected(struct nnd_opener *o) {
  struct nnd_connected_own *own = nnd_own(o, sizeof *own);
  struct nnd_int8_connected words;
  return own && nnd_read_int8_connected(o, &words) && nnd_open_int8(o, &own->record, &words.sums) &&
         nnd_pack_connected(o, own, words.is_transposed) && nnd_spread_int8(o, &own->record, &words.sums);
}

/* Tiles share their rows evenly; `copied`: bytes of scratch of the rows of a group, 0 where they are read in place.
 * Sums of rows lie behind them. */
struct nnd_connected_fields {
  const struct nnd_connected_own *own;
  const struct nnd_int8_kernels *kernels;
  struct nnd_int8_tiles tiles;
  nnd_size rows, groups, panels, row_bytes, copied;
  int is_signed, factor_step;
  nnd_int8_multiplier multiply; /* null: rows are multiplied in tiles; else two strips are a tile */
  struct nnd_int8_strips strips;
};

/* What a panel needs beside its weights. */
struct nnd_connected_panel {
  int32_t first[NND_INT8_COLUMNS], sums[NND_INT8_ROWS * NND_INT8_COLUMNS];
  float factors[NND_INT8_COLUMNS];
};

/* A group of tiles for the panels [panel, end). */
static void nnd_run_connected_group(const struct nnd_connected_fields *t, const struct nnd_int8_data *d, nnd_size group,
                                    nnd_size panel, nnd_size end, char *scratch) {
  const struct nnd_int8_record *own = &t->own->record;
  const nnd_size begin = nnd_even(t->tiles.count, t->groups, group);
  const nnd_size last = nnd_even(t->tiles.count, t->groups, group + 1);
  const nnd_size top = nnd_int8_tile_row(t->tiles, begin), bottom = nnd_int8_tile_row(t->tiles, last);
  const uint8_t *a = d->a + top * own->inner;
  const int turns = t->copied && t->is_signed && t->kernels->turns_int8, is_signed = t->is_signed && !turns;
  uint32_t zero = nnd_int8_zero(d, t->is_signed);
  if (t->copied) {
    const uint8_t flip = turns ? 0x80 : 0;
    const nnd_size inner = own->inner; /* or each byte that is written might change it */
    zero += flip;
    for (nnd_size r = 0; r < bottom - top; r++) {
      const uint8_t *from = a + r * inner;
      uint8_t *to = (uint8_t *)scratch + r * t->row_bytes;
      for (nnd_size k = 0; k < inner; k++) to[k] = from[k] ^ flip;
    }
    a = (const uint8_t *)scratch;
  }
  struct nnd_connected_panel p;
  const void *rows[NND_INT8_ROWS];
  int32_t *row_sums = (int32_t *)(scratch + t->copied);
  for (nnd_size r = 0; own->zeros && r < bottom - top; r++)
    row_sums[r] = nnd_int8_row_sum(a + r * t->row_bytes, own->inner, is_signed);
  const nnd_size out_bytes = nnd_element_bytes[own->end.element];
  for (; panel < end; panel++) {
    const nnd_size column = panel * NND_INT8_COLUMNS;
    const nnd_size columns = nnd_min(NND_INT8_COLUMNS, own->columns - column);
    nnd_begin_int8(own, d, column, columns, t->own->column_sums, zero, t->factor_step, p.first, p.factors);
    struct nnd_int8_job job = {.rows = rows,
                               .taps = 1,
                               .k = own->inner,
                               .step = t->row_bytes,
                               .is_signed = is_signed,
                               .weights = t->own->packed + nnd_int8_packed_bytes(own->inner, column),
                               .column_sums = t->own->column_sums + column,
                               .first = p.first,
                               .sums = p.sums,
                               .sums_row = NND_INT8_COLUMNS};
    struct nnd_int8_ended ended = {.sums = p.sums,
                                   .sums_row = NND_INT8_COLUMNS,
                                   .columns = columns,
                                   .zeros = own->zeros ? own->zeros + column : NULL,
                                   .factors = p.factors,
                                   .bias = own->bias ? own->bias + column : NULL,
                                   .numbers = own->numbers ? own->numbers + column : NULL,
                                   .out_row = own->columns};
    if (nnd_int8_ends_in_tiles(own, columns)) job.end = &own->end, job.ended = &ended;
    const int vectors = nnd_int8_vectors(own->columns, column);
    const nnd_int8_kernel *kernels = t->kernels->of[vectors];
    const nnd_int8_kernel *even = t->kernels->even[vectors];
    const int finds_even = own->inner % NND_INT8_DEPTH == 0 && even[NND_INT8_ROWS];
    for (nnd_size tile = begin; tile < last; tile++) {
      const nnd_size row = nnd_int8_tile_row(t->tiles, tile), count = nnd_int8_tile_row(t->tiles, tile + 1) - row;
      const int is_even = finds_even && count >= NND_INT8_EVEN_ROWS;
      for (nnd_size r = 0; r < (is_even ? 1 : count); r++) rows[r] = a + (row - top + r) * t->row_bytes;
      ended.rows = count;
      ended.row_sums = row_sums + row - top;
      ended.out = d->out + (row * own->columns + column) * out_bytes;
      ended.residual = d->residual ? d->residual + row * own->columns + column : NULL;
      (is_even ? even : kernels)[count](&job);
      if (!job.end) nnd_int8_finish(&own->end, &ended);
    }
    nnd_int8_look_up_rows(&own->end, d->out + (top * own->columns + column) * out_bytes, bottom - top, columns,
                          own->columns);
  }
}

/* The same by strips. */
static void nnd_run_connected_strips(const struct nnd_connected_fields *t, const struct nnd_int8_data *d,
                                     nnd_size group, nnd_size panel, nnd_size end, char *scratch) {
  const struct nnd_int8_record *own = &t->own->record;
  const nnd_size begin = 2 * nnd_even(t->tiles.count, t->groups, group);
  const nnd_size last = nnd_min(t->strips.count, 2 * nnd_even(t->tiles.count, t->groups, group + 1));
  const nnd_size top = nnd_int8_strip_row(t->strips, begin), bottom = nnd_int8_strip_row(t->strips, last);
  const nnd_size inner = own->inner;
  const uint8_t *a = d->a + top * inner;
  const int is_read = nnd_int8_reads_rows(inner, inner + (nnd_size)((uintptr_t)d->a % NND_LINE_BYTES), t->panels);
  int32_t *row_sums = (int32_t *)(scratch + t->copied);
  for (nnd_size r = 0; own->zeros && r < bottom - top; r++)
    row_sums[r] = nnd_int8_row_sum(a + r * inner, inner, t->is_signed);
  for (nnd_size strip = begin; !is_read && strip < last; strip++) {
    const nnd_size row = nnd_int8_strip_row(t->strips, strip), count = nnd_int8_strip_row(t->strips, strip + 1) - row;
    const void *rows[NND_INT8_STRIP];
    for (nnd_size r = 0; r < count; r++) rows[r] = d->a + (row + r) * inner;
    nnd_int8_pack_strip(rows, 0, 1, inner, count, scratch + (strip - begin) * nnd_int8_strip_bytes(1, inner));
  }
  static const nnd_size nowhere = 0;
  const struct nnd_int8_strip_job job = {.multiply = t->multiply,
                                         .record = own,
                                         .data = d,
                                         .strips = t->strips,
                                         .begin = begin,
                                         .last = last,
                                         .columns = own->columns,
                                         .panel = panel,
                                         .end = end,
                                         .column_sums = t->own->column_sums,
                                         .row_sums = own->zeros ? row_sums : NULL,
                                         .weights = t->own->packed,
                                         .from = is_read ? (const char *)d->a : scratch,
                                         .k = inner,
                                         .step = inner,
                                         .offsets = &nowhere,
                                         .taps = 1,
                                         .zero = nnd_int8_zero(d, t->is_signed),
                                         .is_packed = !is_read,
                                         .is_signed = t->is_signed,
                                         .factor_step = t->factor_step};
  nnd_run_int8_strips(&job);
}

static void nnd_run_connected(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_connected_fields *t = fields;
  const struct nnd_int8_data d = {at[0], at[1], at[2], at[3], at[4]};
  nnd_size unit, last;
  nnd_share(t->groups * t->panels, part, &unit, &last);
  while (unit < last) {
    const nnd_size group = unit / t->panels, panel = unit % t->panels, end = nnd_min(t->panels, panel + last - unit);
    (nnd_int8_by_blocks(t->multiply) ? nnd_run_connected_strips : nnd_run_connected_group)(t, &d, group, panel, end,
                                                                                           part.scratch);
    unit += end - panel;
  }
}

#define NND_FEW_PANELS 3       /* by which rows are not copied: turning them on the way costs less */
#define NND_SAME_SET_BYTES 512 /* rows that lie a multiple of so many bytes apart share too little of the first cache */

static int nnd_make_int8_connected(struct nnd_maker *m) {
  const struct nnd_connected_own *opened = m->step->own;
  const struct nnd_int8_record *own = &opened->record;
  struct nnd_connected_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size elements = nnd_shape_of(m, own->a)->count, rows = elements / own->inner;
  if (elements % own->inner) return nnd_fail(m->message, "the operands of a product of bytes do not fit together");
  if (!nnd_give_int8(m, own, rows)) return 0;
  const int plain = m->table->model->options.plain_bytes != 0;
  *t = (struct nnd_connected_fields){.own = opened,
                                     .kernels = nnd_int8_kernels_here(plain),
                                     .multiply = nnd_int8_multiplier_here(plain, rows, own->inner, own->columns),
                                     .rows = rows,
                                     .tiles = nnd_int8_tiles_of(rows),
                                     .panels = nnd_ceil_div(own->columns, NND_INT8_COLUMNS),
                                     .row_bytes = own->inner,
                                     .is_signed = nnd_shape_of(m, own->a)->element == NND_INT8,
                                     .factor_step = own->factor >= 0 && nnd_shape_of(m, own->factor)->count != 1};
  const int threads = nnd_threads(m), turns = t->is_signed && t->kernels->turns_int8;
  const int copies = turns || (own->inner % NND_SAME_SET_BYTES == 0 && rows > 4);
  if (copies && t->panels >= NND_FEW_PANELS) t->row_bytes = own->inner + NND_LINE_BYTES;
  nnd_size tile_rows = NND_INT8_ROWS;
  if (t->multiply) {
    t->strips = nnd_int8_strips_of(rows), tile_rows = 2 * t->strips.each;
    t->tiles.count = nnd_ceil_div(t->strips.count, 2);
    t->row_bytes = nnd_int8_strip_bytes(1, own->inner) / NND_INT8_STRIP;
  }
  const nnd_size of_row = t->row_bytes + (t->multiply ? 0 : own->columns * nnd_element_bytes[own->end.element]);
  const nnd_size most = nnd_max(1, nnd_int8_held_bytes(m, own->inner * own->columns) / (tile_rows * of_row));
  t->groups = nnd_ceil_div(t->tiles.count, most);
  if (threads > 1) t->groups = nnd_max(t->groups, nnd_min(t->tiles.count, nnd_ceil_div(8 * threads, t->panels)));
  const nnd_size tiles = nnd_ceil_div(t->tiles.count, t->groups); /* of a group */
  const nnd_size held = t->multiply ? 2 * tiles * NND_INT8_STRIP : tiles * nnd_ceil_div(rows, t->tiles.count);
  if (t->multiply || t->row_bytes != own->inner)
    t->copied = nnd_ceil_div(held * t->row_bytes, NND_LINE_BYTES) * NND_LINE_BYTES;
  m->scratch_bytes = t->copied + (own->zeros ? held * (nnd_size)sizeof(int32_t) : 0);
  nnd_tell_operations(m, rows * own->columns, nnd_ceil_div(own->inner, 2));
  m->instance->run = nnd_run_connected;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld x %lld x %lld by %s, %lld groups%s", (long long)rows,
           (long long)own->inner, (long long)own->columns, t->multiply ? "amx" : t->kernels->name, (long long)t->groups,
           t->copied && !t->multiply ? ", rows copied" : "");
  return 1;
}

const struct nnd_op nnd_op_int8_connected = {"int8_connected", nnd_open_int8_connected, nnd_make_int8_connected};
