/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/int8_record.h"

/* Numbers, one for all columns or one for each, as int32 or, bit for bit, as floats. */
static void *nnd_spread_columns(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size columns) {
  if (!from || o->message->failed) return NULL;
  int32_t *to = nnd_packed(o, (nnd_blocks(columns) * NND_LANES + NND_INT8_COLUMNS) * (nnd_size)sizeof *to);
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

/* The zero points of weights as they are packed: uint8 without any have 128 taken from them. */
static const int32_t *nnd_zeros_of(struct nnd_opener *o, const struct nnd_int8_record *r,
                                   const struct nnd_weight_data *zeros) {
  static const uint8_t none = 0;
  const struct nnd_weight_data one = {.element = NND_UINT8, .count = 1, .data = &none};
  if (!zeros && r->weights->element == NND_UINT8) zeros = &one;
  const int32_t *found = nnd_spread_columns(o, zeros, r->columns);
  for (nnd_size c = 0; found && c < r->columns; c++)
    if (found[c]) return found;
  return NULL;
}

const uint8_t *nnd_byte_table_of(struct nnd_opener *o, const struct nnd_program *program, int from, int to) {
  if (!program || o->message->failed) return NULL;
  uint8_t *table = nnd_packed(o, NND_INT8_TABLE);
  if (!nnd_is_byte(from) || !nnd_is_byte(to) || program->num_operands > 1)
    nnd_fail(o->message, "a table of something else than one byte");
  else if (table)
    nnd_int8_make_table(program, from, to, table);
  return table;
}

int nnd_open_int8(struct nnd_opener *o, struct nnd_int8_record *r, const struct nnd_int8_sums *words) {
  const struct nnd_weight_data *weights = words->weights, *zeros = words->zeros;
  const struct nnd_epilogue *e = &words->epilogue;
  r->a = words->a, r->zero = words->zero, r->factor = words->factor, r->residual = e->residual, r->out = words->out;
  r->weights = weights, r->end.zero = (float)words->output_zero;
  const struct nnd_tensor *tensors = o->model->tensors;
  const int element = r->end.element = tensors[r->out].element;
  if (!weights || !nnd_is_byte(weights->element) || !nnd_is_byte(tensors[r->a].element) || tensors[r->out].is_blocked ||
      (r->zero >= 0 && tensors[r->zero].element != tensors[r->a].element) ||
      (zeros && zeros->element != weights->element) || (r->residual >= 0 && tensors[r->residual].is_blocked) ||
      (r->factor >= 0 && tensors[r->factor].is_blocked) ||
      (!nnd_is_byte(element) && element != NND_FLOAT32 && element != NND_INT32))
    return nnd_fail(o->message, "a product of bytes of tensors that do not fit it");
  if ((element == NND_INT8 && r->end.zero > 127) || (element == NND_UINT8 && r->end.zero < 0))
    return nnd_fail(o->message, "a zero point that the output does not hold");
  if (element == NND_INT32 &&
      (words->factors || r->factor >= 0 || words->bias || e->program || e->channel || r->residual >= 0))
    return nnd_fail(o->message, "sums that are stored as they are have an end");
  r->end.end = nnd_end_of_words(o, e);
  r->end.table = nnd_byte_table_of(o, words->table, element, element);
  return !o->message->failed;
}

/* Whether all numbers are less than a bound; not a number is not. */
static int nnd_is_below(const float *numbers, nnd_size count, float bound) {
  for (nnd_size i = 0; numbers && i < count; i++)
    if (!(numbers[i] < bound && numbers[i] > -bound)) return 0;
  return 1;
}

int nnd_spread_int8(struct nnd_opener *o, struct nnd_int8_record *r, const struct nnd_int8_sums *words) {
  r->zeros = nnd_zeros_of(o, r, words->zeros);
  r->whole_bias = nnd_spread_columns(o, words->whole_bias, r->columns);
  r->factors = nnd_spread_columns(o, words->factors, r->columns);
  r->bias = nnd_spread_columns(o, words->bias, r->columns);
  r->numbers = nnd_spread_columns(o, words->epilogue.channel, r->columns);
  if (o->message->failed) return 0;
  const int is_held =
      r->factors && nnd_is_below(r->factors, r->columns, 0.5f) && nnd_is_below(r->bias, r->columns, (float)(1 << 29));
  nnd_int8_find_quick(&r->end, r->factor < 0 && is_held);
  return 1;
}

int8_t *nnd_take_int8(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size num_bytes, nnd_size columns,
                      int32_t **column_sums) {
  const nnd_size sums = nnd_blocks(columns) * NND_LANES + NND_INT8_COLUMNS;
  *column_sums = nnd_packed_of(o, from, sums * (nnd_size)sizeof **column_sums);
  int8_t *packed = nnd_packed_of(o, from, num_bytes + NND_INT8_BEHIND);
  return *column_sums ? packed : NULL;
}

int nnd_give_int8(struct nnd_maker *m, const struct nnd_int8_record *r, nnd_size rows) {
  const nnd_size out = nnd_shape_of(m, r->out)->count;
  const nnd_size factors = r->factor < 0 ? 1 : nnd_shape_of(m, r->factor)->count;
  if (rows < 1 || out % r->columns || out / r->columns != rows ||
      (r->zero >= 0 && nnd_shape_of(m, r->zero)->count != 1) || (factors != 1 && factors != r->columns) ||
      (r->residual >= 0 && nnd_shape_of(m, r->residual)->count != out))
    return nnd_fail(m->message, "the operands of a product of bytes do not fit together");
  nnd_give_tensor(m, r->out);
  nnd_give_tensor(m, r->a);
  nnd_give_tensor(m, r->zero);
  nnd_give_tensor(m, r->factor);
  nnd_give_tensor(m, r->residual);
  return 1;
}

void nnd_begin_int8(const struct nnd_int8_record *r, const struct nnd_int8_data *d, nnd_size column, nnd_size columns,
                    const int32_t *column_sums, uint32_t zero, int factor_step, int32_t *first, float *factors) {
  const uint32_t inner = (uint32_t)r->inner;
  for (nnd_size c = 0; c < nnd_blocks(columns) * NND_LANES; c += NND_LANES) {
    nnd_vu sums = *(const nnd_vu_any *)(column_sums + column + c), begin = {0};
    if (r->zeros) sums -= *(const nnd_vu_any *)(r->zeros + column + c) * inner;
    if (r->whole_bias) begin = *(const nnd_vu_any *)(r->whole_bias + column + c);
    *(nnd_vu_any *)(first + c) = begin - sums * zero;
    nnd_store_any(factors + c, r->factors ? nnd_load_any(r->factors + column + c) : nnd_splat(1.0f));
  }
  for (nnd_size c = 0; d->factor && c < columns; c++) factors[c] *= d->factor[factor_step ? column + c : 0];
}

int32_t nnd_int8_row_sum(const uint8_t *row, nnd_size count, int is_signed) {
  uint32_t sum = 0;
  if (is_signed)
    for (nnd_size k = 0; k < count; k++) sum += (uint32_t)(int8_t)row[k];
  else
    for (nnd_size k = 0; k < count; k++) sum += row[k];
  return (int32_t)sum;
}
