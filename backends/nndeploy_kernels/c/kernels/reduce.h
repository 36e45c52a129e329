/* SPDX-License-Identifier: Apache-2.0
 *
 * What rows and columns come to: each value is taken in some way, all are joined, and the result is ended.
 */
#ifndef NND_REDUCE_H
#define NND_REDUCE_H

#include "kernels/along_axis.h"

#define NND_RUN 64   /* values that are summed by themselves, so that rounding does not grow with the length */
#define NND_CHAINS 4 /* sums of a row at a time, none of which waits for another */

enum nnd_taken { NND_TAKEN_SO, NND_TAKEN_APART, NND_TAKEN_ABS, NND_TAKEN_SQUARE, NND_TAKEN_EXP };
enum nnd_joined { NND_SUM, NND_MAX, NND_MIN, NND_PRODUCT };
enum nnd_last { NND_LAST_NOTHING, NND_LAST_MEAN, NND_LAST_ROOT, NND_LAST_LOG };

/* Compile-time constants: how a value is taken, what joins two of them, and what becomes of the result. */
struct nnd_reduction {
  int taken, joined, last;
};

NND_INLINE float nnd_of_nothing(struct nnd_reduction r) {
  const float infinity = __builtin_inff();
  return r.joined == NND_SUM ? 0.0f : r.joined == NND_MAX ? -infinity : r.joined == NND_MIN ? infinity : 1.0f;
}

/* All but sizes and what is taken so are taken less `shift`. */
NND_INLINE vf nnd_taken(struct nnd_reduction r, vf x, vf shift) {
  switch (r.taken) {
    case NND_TAKEN_APART: return x - shift;
    case NND_TAKEN_ABS: return nnd_op_abs(x);
    case NND_TAKEN_SQUARE: return (x - shift) * (x - shift);
    case NND_TAKEN_EXP: return nnd_op_exp(x - shift);
    default: return x;
  }
}

NND_INLINE vf nnd_both(struct nnd_reduction r, vf a, vf b) {
  switch (r.joined) {
    case NND_SUM: return a + b;
    case NND_MAX: return nnd_op_max(a, b);
    case NND_MIN: return nnd_op_min(a, b);
    default: return a * b;
  }
}

NND_INLINE vf nnd_all_lanes(struct nnd_reduction r, vf x) {
  switch (r.joined) {
    case NND_SUM: return nnd_joined_sum(x);
    case NND_MAX: return nnd_joined_max(x);
    case NND_MIN: return nnd_joined_min(x);
    default: return nnd_joined_product(x);
  }
}

NND_INLINE vf nnd_at_last(struct nnd_reduction r, vf x, vf shift, nnd_size size) {
  switch (r.last) {
    case NND_LAST_MEAN: return x / (float)size;
    case NND_LAST_ROOT: return nnd_op_sqrt(x);
    case NND_LAST_LOG: return nnd_op_log(x) + shift;
    default: return x;
  }
}

/* The largest of all where it is finite, else zero: what exponents are shifted by. */
NND_INLINE vf nnd_shift_of(vf most) { return nnd_select(nnd_op_abs(most) < __builtin_inff(), most, nnd_splat(0.0f)); }

/* What a row's `size` floats, at least a vector, come to, in each lane. */
NND_INLINE vf nnd_reduced_row(struct nnd_reduction r, const float *in, nnd_size size, vf shift) {
  const nnd_size whole = size / NND_LANES;
  const vf nothing = nnd_splat(nnd_of_nothing(r));
  vf total = nothing;
  for (nnd_size k = 0; k < whole;) {
    const nnd_size end = nnd_min(whole, k + NND_RUN * NND_CHAINS);
    vf some[NND_CHAINS] = {nothing, nothing, nothing, nothing};
    for (; k + NND_CHAINS <= end; k += NND_CHAINS) NND_UNROLL
    for (int i = 0; i < NND_CHAINS; i++)
      some[i] = nnd_both(r, some[i], nnd_taken(r, nnd_load_any(in + (k + i) * NND_LANES), shift));
    for (; k < end; k++) some[0] = nnd_both(r, some[0], nnd_taken(r, nnd_load_any(in + k * NND_LANES), shift));
    total = nnd_both(r, total, nnd_both(r, nnd_both(r, some[0], some[1]), nnd_both(r, some[2], some[3])));
  }
  const nnd_size left = size - whole * NND_LANES;
  if (left) {
    const vf x = nnd_taken(r, nnd_load_any(in + size - NND_LANES), shift);
    total = nnd_both(r, total, nnd_last_lanes(x, left, nnd_of_nothing(r)));
  }
  return nnd_all_lanes(r, total);
}

NND_INLINE void nnd_reduced_columns(struct nnd_reduction r, const struct nnd_along *t, int vectors,
                                    struct nnd_columns c, const float *in, const vf *shift, vf *total) {
  const vf nothing = nnd_splat(nnd_of_nothing(r));
  NND_UNROLL
  for (int v = 0; v < vectors; v++) total[v] = nothing;
  for (nnd_size k = 0; k < t->size;) {
    const nnd_size end = nnd_min(t->size, k + NND_RUN);
    vf some[vectors];
    NND_UNROLL
    for (int v = 0; v < vectors; v++) some[v] = nothing;
    for (; k < end; k++) NND_UNROLL
    for (int v = 0; v < vectors; v++)
      some[v] = nnd_both(r, some[v], nnd_taken(r, nnd_take_columns(in + c.at + k * t->inner, c, v), shift[v]));
    NND_UNROLL
    for (int v = 0; v < vectors; v++) total[v] = nnd_both(r, total[v], some[v]);
  }
}

static const struct nnd_reduction nnd_largest = {NND_TAKEN_SO, NND_MAX, NND_LAST_NOTHING};
static const struct nnd_reduction nnd_sum_apart = {NND_TAKEN_APART, NND_SUM, NND_LAST_NOTHING};
static const struct nnd_reduction nnd_sum_of_sizes = {NND_TAKEN_ABS, NND_SUM, NND_LAST_NOTHING};
static const struct nnd_reduction nnd_sum_of_squares = {NND_TAKEN_SQUARE, NND_SUM, NND_LAST_NOTHING};

#endif
