/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8_end.h"

#include "base/operators.h"
#include "kernels/int8_bytes.h"
#include "kernels/masked.h"

#define NND_MOST_ENDED (NND_INT8_MOST_ROWS * NND_PANEL)

typedef int8_t nnd_int8_lanes __attribute__((vector_size(NND_LANES)));

NND_INLINE nnd_vu nnd_int8_sum(const struct nnd_int8_ended *t, nnd_size r, nnd_size c) {
  nnd_vu sum = *(const nnd_vu_any *)(t->sums + r * t->sums_row + c);
  if (t->zeros) sum -= *(const nnd_vu_any *)(t->zeros + c) * (uint32_t)t->row_sums[r];
  return sum;
}

/* Ends vectors of one row after the other, by a program. */
NND_NOINLINE void nnd_int8_program(const struct nnd_program *program, const struct nnd_int8_ended *t, int vectors,
                                   vf *x) {
  vf results[NND_RESULTS * NND_AT_ONCE], added[NND_AT_ONCE], numbers[NND_AT_ONCE];
  const vf zero = nnd_splat(0.0f);
  const int all = (int)t->rows * vectors;
  for (int begin = 0; begin < all; begin += NND_AT_ONCE) {
    const int some = (int)nnd_min(NND_AT_ONCE, all - begin);
    for (int i = 0; i < some; i++) {
      const nnd_size r = (begin + i) / vectors, c = (begin + i) % vectors * NND_LANES;
      const nnd_size count = nnd_min(NND_LANES, t->columns - c);
      added[i] = t->residual ? nnd_load_first(t->residual + r * t->out_row + c, count) : zero;
      numbers[i] = t->numbers ? nnd_load_any(t->numbers + c) : zero;
    }
    const struct nnd_source operands[NND_OPERANDS] = {{x + begin, 1}, {added, 1}, {numbers, 1}, {&zero, 0}};
    const struct nnd_source outcome = nnd_program_run(program, operands, some, results);
    for (int i = 0; i < some; i++) x[begin + i] = nnd_vector_of(outcome, i);
  }
}

NND_INLINE vf nnd_int8_ended(const struct nnd_end *end, const struct nnd_int8_ended *t, nnd_size at, nnd_size count,
                             vf x) {
  if (end->adds) x += nnd_load_first(t->residual + at, count);
  if (end->kind == NND_END_PLAIN || end->kind == NND_END_PROGRAM) return x;
  const vf line = x * end->scale + end->shift;
  const vf bounded = nnd_at_most(nnd_splat(end->high), nnd_at_least(nnd_splat(end->low), line));
  return end->kind == NND_END_GATED ? x * bounded * end->factor : bounded;
}

NND_INLINE void nnd_int8_store(const struct nnd_int8_end *e, const struct nnd_int8_ended *t, nnd_size at,
                               nnd_size count, vf x) {
  if (e->element == NND_FLOAT32) {
    nnd_store_first((float *)t->out + at, x, count);
    return;
  }
  const float low = (e->element == NND_INT8 ? -128.0f : 0.0f) - e->zero;
  const vf whole = nnd_op_round(nnd_saturated(low, low + 255.0f, x)) + e->zero;
  const nnd_int8_lanes bytes = __builtin_convertvector(__builtin_convertvector(whole, vi), nnd_int8_lanes);
  if (count == NND_LANES)
    memcpy((int8_t *)t->out + at, &bytes, NND_LANES);
  else
    memcpy((int8_t *)t->out + at, &bytes, (size_t)count);
}

static float nnd_within(float x, float low, float high) {
  const float above = x > low ? x : low;
  return above < high ? above : high;
}

void nnd_int8_find_quick(struct nnd_int8_end *e, int is_held) {
  const int is_bounded = e->end.kind == NND_END_BOUNDED;
  if (!is_held || (e->element != NND_UINT8 && e->element != NND_INT8) || e->end.adds || e->end.residual ||
      (!is_bounded && e->end.kind != NND_END_PLAIN))
    return;
  const float low = (e->element == NND_INT8 ? -128.0f : 0.0f) - e->zero, high = low + 255.0f;
  const vf ends = nnd_splat(is_bounded ? nnd_within(e->end.low, low, high) : low);
  const vf others = nnd_splat(is_bounded ? nnd_within(e->end.high, low, high) : high);
  e->least = (int)(nnd_op_round(ends)[0] + e->zero), e->most = (int)(nnd_op_round(others)[0] + e->zero);
  e->is_whole = e->most - e->least == 255;
  e->is_quick = 1;
}

/* Numbers of a row's vectors. */
NND_INLINE void nnd_int8_numbers(const struct nnd_int8_ended *t, nnd_size r, int vectors, const vf *factors,
                                 const vf *bias, vf *x) {
  NND_UNROLL
  for (int v = 0; v < vectors; v++)
    x[v] = __builtin_convertvector((vi)nnd_int8_sum(t, r, v * NND_LANES), vf) * factors[v] + bias[v];
}

/* Bytes of as many rows as fill four vectors; what is read again and again is copied, or each store might change it. */
NND_INLINE void nnd_int8_quick(const struct nnd_int8_end *given, const struct nnd_int8_ended *sums, int vectors) {
  const struct nnd_int8_end e = *given;
  const struct nnd_int8_ended t = *sums;
  vf factors[NND_PANEL], bias[NND_PANEL], x[4];
  nnd_int8_load_columns(&t, vectors, factors, bias);
  const int rows = 4 / vectors;
  for (nnd_size r = 0; r < t.rows; r += rows) {
    const int some = (int)nnd_min(rows, t.rows - r);
    for (int i = 0; i < 4; i++) x[i] = nnd_splat(0.0f);
    NND_UNROLL
    for (int i = 0; i < rows; i++)
      if (i < some) nnd_int8_numbers(&t, r + i, vectors, factors, bias, x + i * vectors);
    nnd_int8_store_rows(&e, &t, x, vectors, r, some);
  }
}

void nnd_int8_finish(const struct nnd_int8_end *e, const struct nnd_int8_ended *t) {
  const int vectors = (int)nnd_blocks(t->columns);
  if (e->is_quick && vectors != 3) {
    switch (vectors) {
      case 1: nnd_int8_quick(e, t, 1); return;
#if NND_PANEL == 4
      case 4: nnd_int8_quick(e, t, 4); return;
#endif
      default: nnd_int8_quick(e, t, 2); return;
    }
  }
  if (e->element == NND_INT32) {
    for (nnd_size r = 0; r < t->rows; r++)
      for (nnd_size c = 0; c < t->columns; c += NND_LANES) /* bits of floats are as good as others */
        nnd_store_first((float *)t->out + r * t->out_row + c, (vf)nnd_int8_sum(t, r, c),
                        nnd_min(NND_LANES, t->columns - c));
    return;
  }
  vf x[NND_MOST_ENDED];
  for (int v = 0; v < vectors; v++) {
    const nnd_size c = v * NND_LANES;
    const vf factor = t->factors ? nnd_load_any(t->factors + c) : nnd_splat(1.0f);
    const vf bias = t->bias ? nnd_load_any(t->bias + c) : nnd_splat(0.0f);
    for (nnd_size r = 0; r < t->rows; r++)
      x[r * vectors + v] = __builtin_convertvector((vi)nnd_int8_sum(t, r, c), vf) * factor + bias;
  }
  if (e->end.kind == NND_END_PROGRAM) nnd_int8_program(e->end.program, t, vectors, x);
  for (nnd_size r = 0; r < t->rows; r++)
    for (int v = 0; v < vectors; v++) {
      const nnd_size c = v * NND_LANES, at = r * t->out_row + c, count = nnd_min(NND_LANES, t->columns - c);
      nnd_int8_store(e, t, at, count, nnd_int8_ended(&e->end, t, at, count, x[r * vectors + v]));
    }
}

void nnd_int8_look_up_rows(const struct nnd_int8_end *e, void *out, nnd_size rows, nnd_size columns, nnd_size out_row) {
  if (!e->table) return;
  if (columns == out_row) columns *= rows, rows = 1;
  uint8_t *row = out;
  for (nnd_size r = 0; r < rows; r++, row += out_row) nnd_int8_look_up(e->table, row, columns, row);
}
