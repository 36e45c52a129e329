/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions along the middle of three axes of plain tensors: reduce_mean, reduce_sum, reduce_max, reduce_min,
 * reduce_prod, reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_sum_square.
 *
 *   input, output (tensors), outer, size, inner (rules)
 */
#include "kernels/reduce.h"

#include "ops/along_axis.h"

NND_INLINE void nnd_reduce_row(struct nnd_reduction r, const struct nnd_along *t, nnd_size row, void *const *at) {
  const float *in = (const float *)at[1] + row * t->size;
  vf shift = nnd_splat(0.0f);
  if (r.taken == NND_TAKEN_EXP) shift = nnd_shift_of(nnd_splat(nnd_reduced_row(nnd_largest, in, t->size, shift)));
  const vf all = nnd_splat(nnd_reduced_row(r, in, t->size, shift));
  ((float *)at[0])[row] = nnd_at_last(r, all, shift, t->size)[0];
}

NND_INLINE void nnd_reduce_columns(struct nnd_reduction r, const struct nnd_along *t, int vectors, struct nnd_columns c,
                                   void *const *at) {
  vf shift[vectors], total[vectors];
  NND_UNROLL
  for (int v = 0; v < vectors; v++) shift[v] = nnd_splat(0.0f);
  if (r.taken == NND_TAKEN_EXP) {
    nnd_reduced_columns(nnd_largest, t, vectors, c, at[1], shift, total);
    NND_UNROLL
    for (int v = 0; v < vectors; v++) shift[v] = nnd_shift_of(total[v]);
  }
  nnd_reduced_columns(r, t, vectors, c, at[1], shift, total);
  NND_UNROLL
  for (int v = 0; v < vectors; v++) nnd_give_numbers(at[0], c, v, nnd_at_last(r, total[v], shift[v], t->size));
}

#define NND_REDUCTION(name, ...)                                                                                       \
  static const struct nnd_reduction nnd_##name = {__VA_ARGS__};                                                        \
  NND_INLINE void nnd_##name##_row(const void *fields, nnd_size row, void *const *at) {                                \
    nnd_reduce_row(nnd_##name, fields, row, at);                                                                       \
  }                                                                                                                    \
  NND_INLINE void nnd_##name##_columns(const void *fields, int vectors, struct nnd_columns c, void *const *at) {       \
    nnd_reduce_columns(nnd_##name, fields, vectors, c, at);                                                            \
  }                                                                                                                    \
  static void nnd_run_##name(const void *fields, void *const *at, struct nnd_part part) {                              \
    nnd_along_axis(fields, fields, at, part, nnd_##name##_row, nnd_##name##_columns);                                  \
  }                                                                                                                    \
  static int nnd_make_##name(struct nnd_maker *m) { return nnd_make_along(m, 1, nnd_run_##name); }                     \
  const struct nnd_op nnd_op_##name = {#name, nnd_open_along, nnd_make_##name};
NND_REDUCTION(reduce_sum, NND_TAKEN_SO, NND_SUM, NND_LAST_NOTHING)
NND_REDUCTION(reduce_mean, NND_TAKEN_SO, NND_SUM, NND_LAST_MEAN)
NND_REDUCTION(reduce_max, NND_TAKEN_SO, NND_MAX, NND_LAST_NOTHING)
NND_REDUCTION(reduce_min, NND_TAKEN_SO, NND_MIN, NND_LAST_NOTHING)
NND_REDUCTION(reduce_prod, NND_TAKEN_SO, NND_PRODUCT, NND_LAST_NOTHING)
NND_REDUCTION(reduce_l1, NND_TAKEN_ABS, NND_SUM, NND_LAST_NOTHING)
NND_REDUCTION(reduce_l2, NND_TAKEN_SQUARE, NND_SUM, NND_LAST_ROOT)
NND_REDUCTION(reduce_log_sum, NND_TAKEN_SO, NND_SUM, NND_LAST_LOG)
NND_REDUCTION(reduce_log_sum_exp, NND_TAKEN_EXP, NND_SUM, NND_LAST_LOG)
NND_REDUCTION(reduce_sum_square, NND_TAKEN_SQUARE, NND_SUM, NND_LAST_NOTHING)
