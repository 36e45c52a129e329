/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_connected: rows of bytes by a constant matrix of bytes, packed when the step is opened; sums are exact.
 *
 *   a (tensor of uint8 or int8: whole rows, side by side), its zero point (a tensor of one of these; -1: zero),
 *   weights (uint8 or int8: inner, columns), is transposed: (columns, inner),
 *   zero points of the weights (of their type, one or one a column; -1: zeros), bias of the sums (int32; -1: none),
 *   factors (float32, one or one a column; -1: ones), a factor (tensor of one float32 or one a column; -1: one),
 *   bias (float32; -1: none), program of the end (-1: none), numbers of the end (-1: none),
 *   residual (tensor, which lies as the output does; -1: none), zero point of an output of bytes,
 *   output (float32, or int32: sums without factors and all that follows, or uint8 or int8: the nearest)
 *
 *   x = sum of (a - zero) * (weights - zeros) + bias of the sums, times factors, plus bias; then the end
 */
#include <stdio.h>

#include "kernels/int8_end.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

struct nnd_connected_own {
  int a, zero, factor, residual, out; /* tensors */
  nnd_size inner, columns;
  const int8_t *packed;
  const int32_t *column_sums, *zeros, *whole_bias; /* zeros: of weights that are int8; null where there are none */
  const float *factors, *bias, *numbers;
  struct nnd_int8_end end;
};

struct nnd_bytes_to_pack {
  const uint8_t *from;
  int8_t *to;
  int32_t *column_sums;
  nnd_size inner, columns, k_step, column_step;
  int is_unsigned;
};

static void nnd_pack_bytes(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_bytes_to_pack *t = fields;
  for (nnd_size panel = first; panel < last; panel++) {
    const nnd_size column = panel * NND_INT8_COLUMNS;
    nnd_int8_pack(t->from + column * t->column_step, t->is_unsigned, t->inner,
                  nnd_min(NND_INT8_COLUMNS, t->columns - column), t->k_step, t->column_step,
                  t->to + nnd_int8_packed_bytes(t->inner, column), t->column_sums + column);
  }
}

static int nnd_is_byte(int element) { return element == NND_UINT8 || element == NND_INT8; }

/* Numbers, one for all columns or one for each, as whole vectors of int32 or, bit for bit, of floats. */
static void *nnd_spread_columns(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size columns) {
  if (!from || o->message->failed) return NULL;
  int32_t *to = nnd_packed(o, nnd_blocks(columns) * NND_LANES * (nnd_size)sizeof *to);
  if (from->count != 1 && from->count != columns)
    nnd_fail(o->message, "%lld numbers for %lld columns", (long long)from->count, (long long)columns);
  if (o->message->failed) return NULL;
  for (nnd_size c = 0; c < columns; c++) {
    const nnd_size at = from->count == 1 ? 0 : c;
    if (from->element == NND_UINT8)
      to[c] = ((const uint8_t *)from->data)[at] - 128; /* as the weights are packed */
    else if (from->element == NND_INT8)
      to[c] = ((const int8_t *)from->data)[at];
    else
      to[c] = ((const int32_t *)from->data)[at];
  }
  return to;
}

static int nnd_pack_connected(struct nnd_opener *o, struct nnd_connected_own *own,
                              const struct nnd_weight_data *weights, int is_transposed) {
  if (weights->rank != 2) return nnd_fail(o->message, "weights of %d axes for rows of bytes", weights->rank);
  own->inner = weights->sizes[is_transposed], own->columns = weights->sizes[1 - is_transposed];
  struct nnd_bytes_to_pack t = {.from = weights->data,
                                .inner = own->inner,
                                .columns = own->columns,
                                .k_step = is_transposed ? 1 : own->columns,
                                .column_step = is_transposed ? own->inner : 1,
                                .is_unsigned = weights->element == NND_UINT8};
  if (own->inner < 1 || own->columns < 1) return nnd_fail(o->message, "weights without elements");
  own->packed = t.to = nnd_packed(o, nnd_int8_packed_bytes(t.inner, t.columns));
  own->column_sums = t.column_sums = nnd_packed(o, nnd_blocks(t.columns) * NND_LANES * (nnd_size)sizeof *t.column_sums);
  if (!t.to || !t.column_sums) return 0;
  nnd_pack(o, weights, nnd_pack_bytes, &t, sizeof t, nnd_ceil_div(t.columns, NND_INT8_COLUMNS), 0);
  return 1;
}

/* The zero points of weights as they are packed: uint8 without any have 128 taken from them. */
static const int32_t *nnd_zeros_of(struct nnd_opener *o, const struct nnd_connected_own *own,
                                   const struct nnd_weight_data *weights, const struct nnd_weight_data *zeros) {
  static const uint8_t none = 0;
  const struct nnd_weight_data one = {.element = NND_UINT8, .count = 1, .data = &none};
  if (!zeros && weights->element == NND_UINT8) zeros = &one;
  const int32_t *found = nnd_spread_columns(o, zeros, own->columns);
  for (nnd_size c = 0; found && c < own->columns; c++)
    if (found[c]) return found;
  return NULL;
}

static const struct nnd_weight_data *nnd_read_bytes(struct nnd_opener *o) {
  const struct nnd_weight_data *found = nnd_read_any_weight(o);
  if (found && !nnd_is_byte(found->element)) nnd_fail(o->message, "weights that are no bytes");
  return found;
}

static int nnd_open_int8_connected(struct nnd_opener *o) {
  struct nnd_connected_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->a = nnd_read_any_tensor(o);
  own->zero = nnd_read_any_optional_tensor(o);
  const struct nnd_weight_data *weights = nnd_read_bytes(o);
  const int is_transposed = (int)nnd_word(o, 0, 1);
  const struct nnd_weight_data *zeros = nnd_read_bytes(o), *whole_bias = nnd_read_weight_of(o, NND_INT32);
  const struct nnd_weight_data *factors = nnd_read_weight(o);
  own->factor = nnd_read_optional_tensor(o);
  const struct nnd_weight_data *bias = nnd_read_weight(o);
  const struct nnd_program *program = nnd_read_program(o);
  const struct nnd_weight_data *numbers = nnd_read_weight(o);
  own->residual = nnd_read_optional_tensor(o);
  own->end.zero = (float)nnd_word(o, -128, 255);
  own->out = nnd_write_any_tensor(o);
  if (o->message->failed) return 0;
  const struct nnd_tensor *tensors = o->model->tensors;
  const int element = own->end.element = tensors[own->out].element;
  if (!weights || !nnd_is_byte(tensors[own->a].element) || tensors[own->out].is_blocked ||
      (own->zero >= 0 && tensors[own->zero].element != tensors[own->a].element) ||
      (zeros && zeros->element != weights->element) || (own->residual >= 0 && tensors[own->residual].is_blocked) ||
      (own->factor >= 0 && tensors[own->factor].is_blocked) ||
      (!nnd_is_byte(element) && element != NND_FLOAT32 && element != NND_INT32))
    return nnd_fail(o->message, "a product of bytes of tensors that do not fit it");
  if ((element == NND_INT8 && own->end.zero > 127) || (element == NND_UINT8 && own->end.zero < 0))
    return nnd_fail(o->message, "a zero point that the output does not hold");
  if (element == NND_INT32 && (factors || own->factor >= 0 || bias || program || numbers || own->residual >= 0))
    return nnd_fail(o->message, "sums that are stored as they are have an end");
  own->end.end = nnd_end_of(o, program, own->residual >= 0, numbers != NULL);
  if (!nnd_pack_connected(o, own, weights, is_transposed)) return 0;
  own->zeros = nnd_zeros_of(o, own, weights, zeros);
  own->whole_bias = nnd_spread_columns(o, whole_bias, own->columns);
  own->factors = nnd_spread_columns(o, factors, own->columns);
  own->bias = nnd_spread_columns(o, bias, own->columns);
  own->numbers = nnd_spread_columns(o, numbers, own->columns);
  return !o->message->failed;
}

/* Tiles share their rows evenly; `copied`: bytes of scratch of the rows of a group, 0 where they are read in place. Sums
 * of rows lie behind them. */
struct nnd_connected_fields {
  const struct nnd_connected_own *own;
  const struct nnd_int8_kernels *kernels;
  nnd_size rows, tiles, groups, panels, row_bytes, copied;
  int is_signed, factor_step;
};

struct nnd_connected_data {
  char *out;
  const uint8_t *a, *zero;
  const float *factor, *residual;
};

/* What a panel needs beside its weights. */
struct nnd_connected_panel {
  int32_t first[NND_INT8_COLUMNS], sums[NND_INT8_ROWS * NND_INT8_COLUMNS];
  float factors[NND_INT8_COLUMNS];
};

static void nnd_begin_panel(const struct nnd_connected_fields *t, const struct nnd_connected_data *d, nnd_size column,
                            uint32_t zero, struct nnd_connected_panel *panel) {
  const struct nnd_connected_own *own = t->own;
  const nnd_size columns = nnd_min(NND_INT8_COLUMNS, own->columns - column);
  for (nnd_size c = 0; c < nnd_blocks(columns) * NND_LANES; c++) {
    const uint32_t of_zeros = own->zeros ? (uint32_t)own->inner * (uint32_t)own->zeros[column + c] : 0;
    uint32_t begin = own->whole_bias ? (uint32_t)own->whole_bias[column + c] : 0;
    begin -= zero * ((uint32_t)own->column_sums[column + c] - of_zeros);
    panel->first[c] = (int32_t)begin;
    const float factor = own->factors ? own->factors[column + c] : 1.0f;
    const nnd_size at = t->factor_step ? nnd_min(column + c, own->columns - 1) : 0;
    panel->factors[c] = d->factor ? d->factor[at] * factor : factor;
  }
}

static void nnd_sum_rows(const uint8_t *a, nnd_size row_bytes, nnd_size rows, nnd_size inner, int is_signed,
                         int32_t *sums) {
  for (nnd_size r = 0; r < rows; r++, a += row_bytes) {
    uint32_t sum = 0;
    if (is_signed)
      for (nnd_size k = 0; k < inner; k++) sum += (uint32_t)(int8_t)a[k];
    else
      for (nnd_size k = 0; k < inner; k++) sum += a[k];
    sums[r] = (int32_t)sum;
  }
}

/* A group of tiles for the panels [panel, end). */
static void nnd_run_connected_group(const struct nnd_connected_fields *t, const struct nnd_connected_data *d,
                                    nnd_size group, nnd_size panel, nnd_size end, char *scratch) {
  const struct nnd_connected_own *own = t->own;
  const nnd_size begin = nnd_even(t->tiles, t->groups, group), last = nnd_even(t->tiles, t->groups, group + 1);
  const nnd_size top = nnd_even(t->rows, t->tiles, begin), bottom = nnd_even(t->rows, t->tiles, last);
  const uint8_t *a = d->a + top * own->inner;
  const int is_signed = t->is_signed && !t->copied;
  uint32_t zero = 0;
  if (d->zero) zero = t->is_signed ? (uint32_t)(int8_t)*d->zero : *d->zero;
  if (t->copied) {
    const uint8_t flip = t->is_signed ? 0x80 : 0;
    zero += flip;
    for (nnd_size r = 0; r < bottom - top; r++) {
      const uint8_t *from = a + r * own->inner;
      uint8_t *to = (uint8_t *)scratch + r * t->row_bytes;
      for (nnd_size k = 0; k < own->inner; k++) to[k] = from[k] ^ flip;
    }
    a = (const uint8_t *)scratch;
  }
  struct nnd_connected_panel p;
  const void *rows[NND_INT8_ROWS];
  int32_t *row_sums = (int32_t *)(scratch + t->copied);
  if (own->zeros) nnd_sum_rows(a, t->row_bytes, bottom - top, own->inner, is_signed, row_sums);
  const nnd_size out_bytes = nnd_element_bytes[own->end.element];
  for (; panel < end; panel++) {
    const nnd_size column = panel * NND_INT8_COLUMNS;
    nnd_begin_panel(t, d, column, zero, &p);
    struct nnd_int8_job job = {.rows = rows,
                               .taps = 1,
                               .k = own->inner,
                               .is_signed = is_signed,
                               .weights = own->packed + nnd_int8_packed_bytes(own->inner, column),
                               .column_sums = own->column_sums + column,
                               .first = p.first,
                               .sums = p.sums,
                               .sums_row = NND_INT8_COLUMNS};
    struct nnd_int8_ended ended = {.sums = p.sums,
                                   .sums_row = NND_INT8_COLUMNS,
                                   .columns = nnd_min(NND_INT8_COLUMNS, own->columns - column),
                                   .zeros = own->zeros ? own->zeros + column : NULL,
                                   .factors = p.factors,
                                   .bias = own->bias ? own->bias + column : NULL,
                                   .numbers = own->numbers ? own->numbers + column : NULL,
                                   .out_row = own->columns};
    const nnd_int8_kernel *kernels = t->kernels->of[nnd_int8_vectors(own->columns, column)];
    for (nnd_size tile = begin; tile < last; tile++) {
      const nnd_size row = nnd_even(t->rows, t->tiles, tile), count = nnd_even(t->rows, t->tiles, tile + 1) - row;
      for (nnd_size r = 0; r < count; r++) rows[r] = a + (row - top + r) * t->row_bytes;
      kernels[count](&job);
      ended.rows = count;
      ended.row_sums = row_sums + row - top;
      ended.out = d->out + (row * own->columns + column) * out_bytes;
      ended.residual = d->residual ? d->residual + row * own->columns + column : NULL;
      nnd_int8_finish(&own->end, &ended);
    }
  }
}

static void nnd_run_connected(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_connected_fields *t = fields;
  const struct nnd_connected_data d = {at[0], at[1], at[2], at[3], at[4]};
  nnd_size unit, last;
  nnd_share(t->groups * t->panels, part, &unit, &last);
  while (unit < last) {
    const nnd_size group = unit / t->panels, panel = unit % t->panels, end = nnd_min(t->panels, panel + last - unit);
    nnd_run_connected_group(t, &d, group, panel, end, part.scratch);
    unit += end - panel;
  }
}

#define NND_FEW_PANELS 3       /* by which rows are not copied: turning them on the way costs less */
#define NND_SAME_SET_BYTES 512 /* rows that lie a multiple of so many bytes apart share too little of the first cache */

static int nnd_make_int8_connected(struct nnd_maker *m) {
  const struct nnd_connected_own *own = m->step->own;
  struct nnd_connected_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size elements = nnd_shape_of(m, own->a)->count, out = nnd_shape_of(m, own->out)->count;
  const nnd_size factors = own->factor < 0 ? 1 : nnd_shape_of(m, own->factor)->count;
  const nnd_size rows = elements / own->inner;
  if (elements % own->inner || out % own->columns || out / own->columns != rows || rows < 1 ||
      (own->zero >= 0 && nnd_shape_of(m, own->zero)->count != 1) || (factors != 1 && factors != own->columns) ||
      (own->residual >= 0 && nnd_shape_of(m, own->residual)->count != out))
    return nnd_fail(m->message, "the operands of a product of bytes do not fit together");
  *t = (struct nnd_connected_fields){.own = own,
                                     .kernels = nnd_int8_kernels_here(m->table->model->options.plain_bytes != 0),
                                     .rows = rows,
                                     .tiles = nnd_ceil_div(rows, NND_INT8_ROWS),
                                     .panels = nnd_ceil_div(own->columns, NND_INT8_COLUMNS),
                                     .row_bytes = own->inner,
                                     .is_signed = nnd_shape_of(m, own->a)->element == NND_INT8,
                                     .factor_step = factors != 1};
  const int threads = nnd_threads(m), copies = t->is_signed || (own->inner % NND_SAME_SET_BYTES == 0 && rows > 4);
  if (copies && t->panels >= NND_FEW_PANELS) t->row_bytes = own->inner + NND_LINE_BYTES;
  const nnd_size most = nnd_max(1, nnd_l2(m) / 4 / (NND_INT8_ROWS * t->row_bytes)); /* tiles of a group */
  t->groups = nnd_ceil_div(t->tiles, most);
  if (threads > 1) t->groups = nnd_max(t->groups, nnd_min(t->tiles, nnd_ceil_div(8 * threads, t->panels)));
  const nnd_size held = nnd_ceil_div(t->tiles, t->groups) * nnd_ceil_div(rows, t->tiles); /* rows of a group */
  if (t->row_bytes != own->inner) t->copied = nnd_ceil_div(held * t->row_bytes, NND_LINE_BYTES) * NND_LINE_BYTES;
  m->scratch_bytes = t->copied + (own->zeros ? held * (nnd_size)sizeof(int32_t) : 0);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->a);
  nnd_give_tensor(m, own->zero);
  nnd_give_tensor(m, own->factor);
  nnd_give_tensor(m, own->residual);
  m->instance->run = nnd_run_connected;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld x %lld x %lld by %s, %lld groups%s", (long long)rows,
           (long long)own->inner, (long long)own->columns, t->kernels->name, (long long)t->groups,
           t->copied ? ", rows copied" : "");
  return 1;
}

const struct nnd_op nnd_op_int8_connected = {"int8_connected", nnd_open_int8_connected, nnd_make_int8_connected};
