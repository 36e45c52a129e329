/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax, log_softmax: along the middle of three axes of plain tensors. Where all is -inf, or something is NaN or inf,
 * all is NaN.
 */
#include "ops/along_axis.h"

#define NND_CHAINS 4 /* vectors of a row at a time, none of which waits for another */

NND_JOINED(nnd_joined_most, nnd_at_least)

/* The largest of a row; a NaN may be left out: it comes back with the sum. */
NND_INLINE vf nnd_most_of_row(const float *in, nnd_size size) {
  vf most[NND_CHAINS];
  NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) most[i] = nnd_load_any(in + size - NND_LANES);
  nnd_size k = 0;
  for (; k + NND_CHAINS * NND_LANES <= size; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) most[i] = nnd_at_least(most[i], nnd_load_any(in + k + i * NND_LANES));
  for (; k + NND_LANES <= size; k += NND_LANES) most[0] = nnd_at_least(most[0], nnd_load_any(in + k));
  const vf all = nnd_at_least(nnd_at_least(most[0], most[1]), nnd_at_least(most[2], most[3]));
  return nnd_joined_most(all);
}

NND_INLINE void nnd_softmax_row(int is_log, nnd_size size, const float *in, float *out) {
  const vf most = nnd_most_of_row(in, size);
  const nnd_size whole = size / NND_LANES * NND_LANES, end = size - NND_LANES;
  vf sums[NND_CHAINS] = {0}, rest = {0};
  nnd_size k = 0;
  for (; k + NND_CHAINS * NND_LANES <= size; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) {
    const vf value = nnd_exp_below(nnd_load_any(in + k + i * NND_LANES) - most);
    if (!is_log) nnd_store_any(out + k + i * NND_LANES, value);
    sums[i] += value;
  }
  for (; k < whole; k += NND_LANES) {
    const vf value = nnd_exp_below(nnd_load_any(in + k) - most);
    if (!is_log) nnd_store_any(out + k, value);
    sums[0] += value;
  }
  if (whole < size) { /* the last vector begins within the one before */
    rest = nnd_exp_below(nnd_load_any(in + end) - most);
    sums[0] += nnd_last_lanes(rest, size - whole, 0.0f);
  }
  const vf sum = nnd_joined_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  const vf by = 1.0f / sum, log_sum = is_log ? nnd_op_log(sum) : by;
  NND_NO_UNROLL
  for (k = 0; k < whole; k += NND_LANES)
    nnd_store_any(out + k, is_log ? nnd_load_any(in + k) - most - log_sum : nnd_load_any(out + k) * by);
  if (whole < size) nnd_store_any(out + end, is_log ? nnd_load_any(in + end) - most - log_sum : rest * by);
}

NND_INLINE void nnd_softmax_columns(int is_log, const struct nnd_along *t, int vectors, struct nnd_columns c,
                                    const float *in, float *out) {
  vf most[vectors], sum[vectors];
  in += c.at, out += c.at;
  NND_UNROLL
  for (int v = 0; v < vectors; v++) most[v] = nnd_take_columns(in, c, v), sum[v] = nnd_splat(0.0f);
  for (nnd_size k = 1; k < t->size; k++) NND_UNROLL
  for (int v = 0; v < vectors; v++) most[v] = nnd_at_least(most[v], nnd_take_columns(in + k * t->inner, c, v));
  for (nnd_size k = 0; k < t->size; k++) NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const vf value = nnd_exp_below(nnd_take_columns(in + k * t->inner, c, v) - most[v]);
    if (!is_log) nnd_give_columns(out + k * t->inner, c, v, value);
    sum[v] += value;
  }
  NND_UNROLL
  for (int v = 0; v < vectors; v++) sum[v] = is_log ? nnd_op_log(sum[v]) : 1.0f / sum[v];
  for (nnd_size k = 0; k < t->size; k++) NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const vf x = nnd_take_columns((is_log ? in : out) + k * t->inner, c, v);
    nnd_give_columns(out + k * t->inner, c, v, is_log ? x - most[v] - sum[v] : x * sum[v]);
  }
}

static int nnd_open_shares(struct nnd_opener *o) {
  struct nnd_along_axis *own = nnd_own(o, sizeof *own);
  return own && nnd_read_along_axis(o, own) && nnd_check_along(o, own, NND_FLOAT32);
}

static int nnd_make_shares(struct nnd_maker *m, nnd_along_run run) {
  struct nnd_along *t = nnd_fields(m, sizeof *t);
  const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = run};
  const struct nnd_along_axis *own = m->step->own;
  return t && nnd_size_along(m, own, nnd_size_of(m, own->size), t) && nnd_run_along(m, own, runs);
}

#define NND_SOFTMAX(name, is_log)                                                                                      \
  NND_INLINE void nnd_##name##_of_row(const void *fields, nnd_size row, void *const *at) {                             \
    const struct nnd_along *t = fields;                                                                                \
    nnd_softmax_row(is_log, t->size, (const float *)at[1] + row * t->size, (float *)at[0] + row * t->size);            \
  }                                                                                                                    \
  NND_INLINE void nnd_##name##_of_columns(const void *fields, int vectors, struct nnd_columns c, void *const *at) {    \
    nnd_softmax_columns(is_log, fields, vectors, c, at[1], at[0]);                                                     \
  }                                                                                                                    \
  static void nnd_run_##name(const void *fields, void *const *at, struct nnd_part part) {                              \
    nnd_along_axis(fields, fields, at, part, nnd_##name##_of_row, nnd_##name##_of_columns);                            \
  }                                                                                                                    \
  static int nnd_make_##name(struct nnd_maker *m) { return nnd_make_shares(m, nnd_run_##name); }                       \
  const struct nnd_op nnd_op_##name = {#name, nnd_open_shares, nnd_make_##name};
NND_SOFTMAX(softmax, 0)
NND_SOFTMAX(log_softmax, 1)
