/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions along the middle of three axes of plain tensors: reduce_mean, reduce_sum, reduce_max, reduce_min,
 * reduce_prod, reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_sum_square.
 *
 * Sums, means, products, sizes and squares of int32 and int64 too, which wrap around, and of float64; the largest and
 * smallest of any type. An axis may have no elements: their sum is 0, their product 1, the largest of them the least of its type.
 */
#include "kernels/reduce.h"

#include "ops/along_axis.h"

NND_INLINE void nnd_reduce_row(struct nnd_reduction r, const struct nnd_along *t, nnd_size row, void *const *at) {
  const float *in = (const float *)at[1] + row * t->size;
  vf shift = nnd_splat(0.0f);
  if (r.taken == NND_TAKEN_EXP) shift = nnd_shift_of(nnd_reduced_row(nnd_largest, in, t->size, shift));
  const vf all = nnd_reduced_row(r, in, t->size, shift);
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

static int nnd_open_reduction(struct nnd_opener *o) {
  struct nnd_along_axis *own = nnd_own(o, sizeof *own);
  o->step->takes_empty = 1;
  return own && nnd_read_along_axis(o, own) && nnd_check_along(o, own, -1);
}

static int nnd_make_reduction(struct nnd_maker *m, const nnd_along_run *runs) {
  struct nnd_along *t = nnd_fields(m, sizeof *t);
  return t && nnd_size_along(m, m->step->own, 1, t) && nnd_run_along(m, m->step->own, runs);
}

/* Other types than float32: `first`, then `joined` of what there is, a, and of each x; `last` of what all come to. */
#define NND_WHOLE(name, type, kept, first, taken, joined, last)                                                        \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_along *t = fields;                                                                                \
    nnd_size unit, end;                                                                                                \
    nnd_share(nnd_num_tiles(t), part, &unit, &end);                                                                    \
    for (; unit < end; unit++) {                                                                                       \
      const struct nnd_tile tile = nnd_tile_at(t, unit);                                                               \
      const type *in = (const type *)at[1] + tile.at;                                                                  \
      type *out = (type *)at[0] + tile.number;                                                                         \
      kept all[NND_TILE];                                                                                              \
      for (nnd_size j = 0; j < tile.count; j++) all[j] = first;                                                        \
      if (t->inner == 1) {                                                                                             \
        kept a = first;                                                                                                \
        for (nnd_size k = 0; k < t->size; k++) {                                                                       \
          const kept x = (kept)(in[k] taken);                                                                          \
          a = joined;                                                                                                  \
        }                                                                                                              \
        all[0] = a;                                                                                                    \
      } else                                                                                                           \
        for (nnd_size k = 0; k < t->size; k++)                                                                         \
          for (nnd_size j = 0; j < tile.count; j++) {                                                                  \
            const kept x = (kept)(in[k * t->inner + j] taken), a = all[j];                                             \
            all[j] = joined;                                                                                           \
          }                                                                                                            \
      for (nnd_size j = 0; j < tile.count; j++) {                                                                      \
        const kept a = all[j];                                                                                         \
        out[j] = (type)(last);                                                                                         \
      }                                                                                                                \
    }                                                                                                                  \
  }
/* Of int32 and int64: counted in 64 bits without a sign, so that nothing is undefined. */
#define NND_WHOLE_SUMS(name, first, joined, last)                                                                      \
  NND_WHOLE(name##_int32, int32_t, uint64_t, first, , joined, last)                                                    \
  NND_WHOLE(name##_int64, int64_t, uint64_t, first, , joined, last)
#define NND_DOUBLE(name, first, joined, last) NND_WHOLE(name##_double, double, double, first, , joined, last)
#define NND_WHOLE_EXTREMES(name, least32, least64, least8, least_u8, joined)                                           \
  NND_WHOLE(name##_int32, int32_t, int32_t, least32, , joined, a)                                                      \
  NND_WHOLE(name##_int64, int64_t, int64_t, least64, , joined, a)                                                      \
  NND_WHOLE(name##_bool, uint8_t, uint8_t, least_u8 != 0, != 0, joined, a)                                             \
  NND_WHOLE(name##_uint8, uint8_t, uint8_t, least_u8, , joined, a)                                                     \
  NND_WHOLE(name##_int8, int8_t, int8_t, least8, , joined, a)
NND_WHOLE_SUMS(nnd_whole_sum, 0, a + x, a)
NND_WHOLE_SUMS(nnd_whole_mean, 0, a + x, t->size ? (int64_t)a / t->size : 0)
NND_WHOLE_SUMS(nnd_whole_product, 1, a *x, a)
NND_WHOLE_SUMS(nnd_whole_l1, 0, a + (x >> 63 ? 0 - x : x), a)
NND_WHOLE_SUMS(nnd_whole_squares, 0, a + x * x, a)
NND_DOUBLE(nnd_whole_sum, 0, a + x, a)
NND_DOUBLE(nnd_whole_mean, 0, a + x, a / (double)t->size)
NND_DOUBLE(nnd_whole_product, 1, a *x, a)
NND_DOUBLE(nnd_whole_l1, 0, a + __builtin_fabs(x), a)
NND_DOUBLE(nnd_whole_squares, 0, a + x * x, a)
NND_DOUBLE(nnd_whole_max, -__builtin_inf(), x > a || x != x ? x : a, a)
NND_DOUBLE(nnd_whole_min, __builtin_inf(), x < a || x != x ? x : a, a)
NND_WHOLE_EXTREMES(nnd_whole_max, INT32_MIN, INT64_MIN, INT8_MIN, 0, x > a ? x : a)
NND_WHOLE_EXTREMES(nnd_whole_min, INT32_MAX, INT64_MAX, INT8_MAX, UINT8_MAX, x < a ? x : a)

#define NND_NO_WHOLE
#define NND_SUMS_OF(name) , [NND_INT32] = name##_int32, [NND_INT64] = name##_int64, [NND_FLOAT64] = name##_double
#define NND_EXTREMES_OF(name)                                                                                          \
  NND_SUMS_OF(name), [NND_BOOL] = name##_bool, [NND_UINT8] = name##_uint8, [NND_INT8] = name##_int8
#define NND_REDUCTION(name, whole, ...)                                                                                \
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
  static int nnd_make_##name(struct nnd_maker *m) {                                                                    \
    static const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = nnd_run_##name whole};                        \
    return nnd_make_reduction(m, runs);                                                                                \
  }                                                                                                                    \
  const struct nnd_op nnd_op_##name = {#name, nnd_open_reduction, nnd_make_##name};
NND_REDUCTION(reduce_sum, NND_SUMS_OF(nnd_whole_sum), NND_TAKEN_SO, NND_SUM, NND_LAST_NOTHING)
NND_REDUCTION(reduce_mean, NND_SUMS_OF(nnd_whole_mean), NND_TAKEN_SO, NND_SUM, NND_LAST_MEAN)
NND_REDUCTION(reduce_max, NND_EXTREMES_OF(nnd_whole_max), NND_TAKEN_SO, NND_MAX, NND_LAST_NOTHING)
NND_REDUCTION(reduce_min, NND_EXTREMES_OF(nnd_whole_min), NND_TAKEN_SO, NND_MIN, NND_LAST_NOTHING)
NND_REDUCTION(reduce_prod, NND_SUMS_OF(nnd_whole_product), NND_TAKEN_SO, NND_PRODUCT, NND_LAST_NOTHING)
NND_REDUCTION(reduce_l1, NND_SUMS_OF(nnd_whole_l1), NND_TAKEN_ABS, NND_SUM, NND_LAST_NOTHING)
NND_REDUCTION(reduce_sum_square, NND_SUMS_OF(nnd_whole_squares), NND_TAKEN_SQUARE, NND_SUM, NND_LAST_NOTHING)
NND_REDUCTION(reduce_l2, NND_NO_WHOLE, NND_TAKEN_SQUARE, NND_SUM, NND_LAST_ROOT)
NND_REDUCTION(reduce_log_sum, NND_NO_WHOLE, NND_TAKEN_SO, NND_SUM, NND_LAST_LOG)
NND_REDUCTION(reduce_log_sum_exp, NND_NO_WHOLE, NND_TAKEN_EXP, NND_SUM, NND_LAST_LOG)
