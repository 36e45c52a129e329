/* SPDX-License-Identifier: Apache-2.0
 *
 * Units along the last axis: softmax, layer normalisation, sum, mean and largest of each row of (A, M, N).
 *
 * A unit of 1..NND_ALONG_VECTORS vectors holds its row in registers: one pass. The long one goes up to three times over a
 * row that stays in the first cache. A row that is not contiguous is packed first.
 */
#ifndef NND_UNITS_ALONG_H
#define NND_UNITS_ALONG_H

#include "places.h"
#include "some.h"
#include "table.h"

#define NND_ALONG_VECTORS 8
#define NND_SUMS 4 /* vectors of a long row that add up side by side */

enum nnd_along_unit {
  NND_SOFTMAX = 80,
  NND_LAYER_NORM = 81,
  NND_SUM = 82,
  NND_MEAN = 83,
  NND_LARGEST = 84,
  NND_END_OF_ALONG = 85
};

/* One row. */
struct nnd_along_call {
  const float *in, *scale, *shift; /* the last two may be null */
  float *out;
  nnd_size n, in_step, out_step; /* steps: floats to the next row */
  float epsilon;
};

typedef void nnd_along_row(const struct nnd_along_call *call);

NND_INLINE float nnd_least_of(int unit) { return unit == NND_SOFTMAX || unit == NND_LARGEST ? -__builtin_inff() : 0.0f; }

/* Of `vectors` vectors, of which the last has 1..NND_LANES floats. */
NND_INLINE void nnd_short_row(int unit, int vectors, const struct nnd_along_call *call) {
  const int last = vectors - 1;
  const nnd_size tail = call->n - last * NND_LANES;
  const float rest = nnd_least_of(unit), part = 1.0f / (float)call->n;
  vf x[NND_ALONG_VECTORS];
  NND_UNROLL for (int v = 0; v < last; v++) x[v] = nnd_load_any(call->in + v * NND_LANES);
  x[last] = nnd_load_first(call->in + last * NND_LANES, tail, rest);
  vf most = x[0], sum = x[0];
  NND_UNROLL for (int v = 1; v < vectors; v++) {
    most = unit == NND_SOFTMAX ? nnd_at_least(most, x[v]) : nnd_op_max(x[v], most);
    sum += x[v];
  }
  if (unit == NND_LARGEST) *call->out = nnd_max_everywhere(most)[0];
  if (unit == NND_SUM) *call->out = nnd_sum_everywhere(sum)[0];
  if (unit == NND_MEAN) *call->out = nnd_sum_everywhere(sum)[0] * part;
  if (unit == NND_SOFTMAX) {
    most = nnd_number_max_everywhere(most); /* a NaN comes through exp */
    sum = nnd_splat(0.0f);
    NND_UNROLL for (int v = 0; v < vectors; v++) sum += x[v] = nnd_exp_of_negative(x[v] - most);
    const vf factor = 1.0f / nnd_sum_everywhere(sum);
    NND_UNROLL for (int v = 0; v < vectors; v++) x[v] *= factor;
  }
  if (unit == NND_LAYER_NORM) {
    const vf mean = nnd_sum_everywhere(sum) * part;
    NND_UNROLL for (int v = 0; v < vectors; v++) x[v] -= mean;
    const vf kept = nnd_load_first((const float *)&x[last], tail, 0.0f); /* lanes beyond are not of the row */
    vf squares = kept * kept;
    NND_UNROLL for (int v = 0; v < last; v++) squares += x[v] * x[v];
    const vf factor = 1.0f / nnd_op_sqrt(nnd_sum_everywhere(squares) * part + call->epsilon);
    NND_UNROLL for (int v = 0; v < vectors; v++) {
      const nnd_size at = v * NND_LANES;
      x[v] *= factor;
      if (call->scale) x[v] *= v < last ? nnd_load_any(call->scale + at) : nnd_load_first(call->scale + at, tail, 0.0f);
      if (call->shift) x[v] += v < last ? nnd_load_any(call->shift + at) : nnd_load_first(call->shift + at, tail, 0.0f);
    }
  }
  if (unit != NND_SOFTMAX && unit != NND_LAYER_NORM) return;
  NND_UNROLL for (int v = 0; v < last; v++) nnd_store_any(call->out + v * NND_LANES, x[v]);
  nnd_store_first(call->out + last * NND_LANES, x[last], tail);
}

/* For each vector of a row: `from` it `do(x, j)` in turn for j < NND_SUMS; lanes beyond the row hold `rest`. */
#define NND_ALONG_ROW(count, vector, tail)                                                                             \
  nnd_size i = 0;                                                                                                      \
  for (; i + NND_SUMS * NND_LANES <= (count); i += NND_SUMS * NND_LANES)                                               \
    NND_UNROLL for (int j = 0; j < NND_SUMS; j++) {                                                                    \
      const nnd_size at = i + j * NND_LANES;                                                                           \
      vector                                                                                                           \
    }                                                                                                                  \
  for (; i + NND_LANES <= (count); i += NND_LANES) {                                                                   \
    const nnd_size at = i;                                                                                             \
    const int j = 0;                                                                                                   \
    vector                                                                                                             \
  }                                                                                                                    \
  if (i < (count)) {                                                                                                   \
    const nnd_size at = i, left = (count)-i;                                                                           \
    tail                                                                                                               \
  }

NND_INLINE vf nnd_row_max(const float *in, nnd_size n) {
  const float low = -__builtin_inff();
  vf most[NND_SUMS];
  NND_UNROLL for (int j = 0; j < NND_SUMS; j++) most[j] = nnd_splat(low);
  NND_ALONG_ROW(n, most[j] = nnd_op_max(nnd_load_any(in + at), most[j]);
                , most[0] = nnd_op_max(nnd_load_first(in + at, left, low), most[0]);)
  return nnd_max_everywhere(nnd_op_max(nnd_op_max(most[0], most[1]), nnd_op_max(most[2], most[3])));
}

NND_INLINE vf nnd_row_sum(const float *in, nnd_size n) {
  vf sum[NND_SUMS] = {{0}};
  NND_ALONG_ROW(n, sum[j] += nnd_load_any(in + at);, sum[0] += nnd_load_first(in + at, left, 0.0f);)
  return nnd_sum_everywhere((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* NaNs may be passed over: they come through exp. */
NND_INLINE vf nnd_row_number_max(const float *in, nnd_size n) {
  const float low = -__builtin_inff();
  vf most[NND_SUMS];
  NND_UNROLL for (int j = 0; j < NND_SUMS; j++) most[j] = nnd_splat(low);
  NND_ALONG_ROW(n, most[j] = nnd_at_least(most[j], nnd_load_any(in + at));
                , most[0] = nnd_at_least(most[0], nnd_load_first(in + at, left, low));)
  return nnd_number_max_everywhere(nnd_at_least(nnd_at_least(most[0], most[1]), nnd_at_least(most[2], most[3])));
}

/* The next row comes while this one is computed: 12% less time where rows come from the third cache (Xeon with AMX, L2
 * of 2 MiB, 2026-11-22). */
NND_INLINE void nnd_fetch_next(const struct nnd_along_call *call, nnd_size at) {
  __builtin_prefetch(call->in + call->in_step + at, 0, 3);
  __builtin_prefetch(call->out + call->out_step + at, 1, 3);
}

NND_INLINE void nnd_long_softmax(const struct nnd_along_call *call) {
  const vf most = nnd_row_number_max(call->in, call->n);
  vf sum[NND_SUMS] = {{0}}, last = {0}; /* what is no whole vector */
  {
    NND_ALONG_ROW(call->n,
                  const vf x = nnd_exp_of_negative(nnd_load_any(call->in + at) - most);
                  nnd_fetch_next(call, at);
                  nnd_store_any(call->out + at, x); sum[j] += x;
                  ,
                  last = nnd_exp_of_negative(nnd_load_first(call->in + at, left, -__builtin_inff()) - most);
                  sum[0] += last;)
  }
  const vf factor = 1.0f / nnd_sum_everywhere((sum[0] + sum[1]) + (sum[2] + sum[3]));
  NND_ALONG_ROW(call->n, nnd_store_any(call->out + at, nnd_load_any(call->out + at) * factor); (void)j;
                , nnd_store_first(call->out + at, last * factor, left);)
}

NND_INLINE void nnd_long_layer_norm(const struct nnd_along_call *call) {
  const float part = 1.0f / (float)call->n;
  const vf mean = nnd_row_sum(call->in, call->n) * part;
  vf square[NND_SUMS] = {{0}};
  {
    NND_ALONG_ROW(call->n, const vf x = nnd_load_any(call->in + at) - mean; square[j] += x * x;
                  , const vf x = nnd_load_first(call->in + at, left, mean[0]) - mean; square[0] += x * x;)
  }
  const vf squares = nnd_sum_everywhere((square[0] + square[1]) + (square[2] + square[3]));
  const vf factor = 1.0f / nnd_op_sqrt(squares * part + call->epsilon);
  NND_ALONG_ROW(call->n,
                vf x = (nnd_load_any(call->in + at) - mean) * factor;
                nnd_fetch_next(call, at);
                if (call->scale) x *= nnd_load_any(call->scale + at);
                if (call->shift) x += nnd_load_any(call->shift + at);
                nnd_store_any(call->out + at, x); (void)j;
                ,
                vf x = (nnd_load_first(call->in + at, left, 0.0f) - mean) * factor;
                if (call->scale) x *= nnd_load_first(call->scale + at, left, 0.0f);
                if (call->shift) x += nnd_load_first(call->shift + at, left, 0.0f);
                nnd_store_first(call->out + at, x, left);)
}

NND_INLINE void nnd_long_row(int unit, const struct nnd_along_call *call) {
  if (unit == NND_SOFTMAX) nnd_long_softmax(call);
  if (unit == NND_LAYER_NORM) nnd_long_layer_norm(call);
  if (unit == NND_LARGEST) *call->out = nnd_row_max(call->in, call->n)[0];
  if (unit == NND_SUM) *call->out = nnd_row_sum(call->in, call->n)[0];
  if (unit == NND_MEAN) *call->out = nnd_row_sum(call->in, call->n)[0] / (float)call->n;
}

/* Rows of one axis: out, in, scale and shift step on together. */
struct nnd_along_rows {
  struct nnd_along_call call;
  nnd_size count, scale_step, shift_step;
};

typedef void nnd_along_unit_rows(const struct nnd_along_rows *rows);

#define NND_DEFINE_ALONG(name, ...)                                                                                    \
  static void name(const struct nnd_along_rows *rows) {                                                                \
    struct nnd_along_call call = rows->call;                                                                           \
    for (nnd_size i = 0; i < rows->count; i++) {                                                                       \
      __VA_ARGS__;                                                                                                     \
      call.in += call.in_step;                                                                                         \
      call.out += call.out_step;                                                                                       \
      if (call.scale) call.scale += rows->scale_step;                                                                  \
      if (call.shift) call.shift += rows->shift_step;                                                                  \
    }                                                                                                                  \
  }
#define NND_EACH_ALONG_SIZE(X, name, unit)                                                                             \
  X(1, name, unit) X(2, name, unit) X(3, name, unit) X(4, name, unit) X(5, name, unit) X(6, name, unit)                \
  X(7, name, unit) X(8, name, unit)
#define NND_DEFINE_SHORT(vectors, name, unit)                                                                          \
  NND_DEFINE_ALONG(nnd_##name##_##vectors, nnd_short_row(unit, vectors, &call))
#define NND_ALONG_UNITS(X)                                                                                             \
  X(softmax, NND_SOFTMAX) X(layer_norm, NND_LAYER_NORM) X(sum, NND_SUM) X(mean, NND_MEAN) X(largest, NND_LARGEST)
#define NND_DEFINE_UNIT(name, unit)                                                                                    \
  NND_EACH_ALONG_SIZE(NND_DEFINE_SHORT, name, unit) NND_DEFINE_ALONG(nnd_##name##_long, nnd_long_row(unit, &call))
NND_ALONG_UNITS(NND_DEFINE_UNIT)

/* By number and vectors of a row; the last is the long one. */
#define NND_LISTED_SHORT(vectors, name, unit) nnd_##name##_##vectors,
#define NND_LISTED_ALONG(name, unit)                                                                                   \
  [unit - NND_SOFTMAX] = {0, NND_EACH_ALONG_SIZE(NND_LISTED_SHORT, name, unit) nnd_##name##_long},
static nnd_along_unit_rows *const nnd_along_units[NND_END_OF_ALONG - NND_SOFTMAX][NND_ALONG_VECTORS + 2] = {
    NND_ALONG_UNITS(NND_LISTED_ALONG)};

NND_INLINE nnd_size nnd_along_stride(const struct nnd_places *p, int place, int axis) {
  return place < p->count ? p->at[place].stride[axis] : 0;
}

/* Operands that do not lie side by side along the last axis are copied row by row. */
static __attribute__((noinline)) void nnd_along_strided(nnd_along_unit_rows *unit, const struct nnd_places *p,
                                                        struct nnd_along_rows rows, float *memory) {
  const float **operand[] = {&rows.call.in, &rows.call.scale, &rows.call.shift};
  nnd_size *const step[] = {&rows.call.in_step, &rows.scale_step, &rows.shift_step};
  const nnd_size n = p->size[2], count = rows.count;
  struct nnd_along_rows one = rows;
  one.count = 1;
  for (nnd_size r = 0; r < count; r++) {
    one.call.out = rows.call.out + r * rows.call.out_step;
    const float **to[] = {&one.call.in, &one.call.scale, &one.call.shift};
    for (int k = 0; k < 3 && k + 1 < p->count; k++) {
      const float *from = *operand[k] + r * *step[k];
      const nnd_size stride = p->at[k + 1].stride[2];
      *to[k] = from;
      if (stride == 1) continue;
      *to[k] = memory + k * n;
      for (nnd_size i = 0; i < n; i++) memory[k * n + i] = from[i * stride];
    }
    unit(&one);
  }
}

/* places: out, in, scale, shift; `memory` holds three rows where one of the last three is strided. */
static void nnd_along_run(const struct nnd_table *table, const struct nnd_places *p, float epsilon, float *memory) {
  const struct nnd_table_row *row = &table->row[0];
  const nnd_size vectors = row->flags & NND_GROWS ? NND_ALONG_VECTORS + 1 : row->length[2] / NND_LANES;
  nnd_along_unit_rows *unit = nnd_along_units[row->unit - NND_SOFTMAX][vectors];
  struct nnd_along_rows rows = {
      .call = {.n = p->size[2], .in_step = p->at[1].stride[1], .out_step = p->at[0].stride[1], .epsilon = epsilon},
      .count = p->size[1],
      .scale_step = nnd_along_stride(p, 2, 1),
      .shift_step = nnd_along_stride(p, 3, 1),
  };
  for (nnd_size a = 0; a < p->size[0]; a++) {
    rows.call.out = p->at[0].data + a * p->at[0].stride[0];
    rows.call.in = p->at[1].data + a * p->at[1].stride[0];
    rows.call.scale = p->count > 2 ? p->at[2].data + a * p->at[2].stride[0] : 0;
    rows.call.shift = p->count > 3 ? p->at[3].data + a * p->at[3].stride[0] : 0;
    if (memory) nnd_along_strided(unit, p, rows, memory);
    else unit(&rows);
  }
}

#endif
