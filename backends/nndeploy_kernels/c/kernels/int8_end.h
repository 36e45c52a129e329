/* SPDX-License-Identifier: Apache-2.0
 *
 * How exact sums of bytes end:
 *
 *   x = (sums[r][c] - zeros[c] * row_sums[r]) * factors[c] + bias[c]
 *   out = end(x), or of bytes  saturate(round(end(x)) + zero)      to the nearest, ties to even; a NaN is the least
 */
#ifndef NND_INT8_END_H
#define NND_INT8_END_H

#include "base/step.h"
#include "kernels/int8_tile.h"

struct nnd_int8_end {
  struct nnd_end end;
  int element; /* of the output: NND_FLOAT32, NND_UINT8, NND_INT8, or NND_INT32, sums as they are but for the zeros */
  float zero;  /* of bytes: a whole number that they hold */
  /* Sums become bytes by finite factors, a bias and bounds alone; low and high: these, within what the bytes hold. */
  int is_quick;
  float low, high;
};

#define NND_NEAREST 12582912.0f /* 3 * 2^22: numbers added to it are rounded to whole ones, ties to even */

/* The whole number that is nearest to x within its bounds, and what `nearest` says is added to it. */
NND_INLINE vi nnd_int8_nearest(vf x, vf low, vf high, vi nearest) {
  return (vi)(nnd_at_most(high, nnd_select(x > low, x, low)) + NND_NEAREST) - nearest;
}
NND_INLINE vi nnd_int8_nearest_less(float zero) { return (vi)nnd_splat(NND_NEAREST) - (int32_t)zero; }

/* Some sums; what is read by columns holds whole vectors, but for the residual and the output. */
struct nnd_int8_ended {
  const int32_t *sums;
  nnd_size sums_row;                     /* from row to row */
  nnd_size rows, columns;                /* at most those of a tile */
  const int32_t *row_sums, *zeros;       /* null: none */
  const float *factors, *bias, *numbers; /* null: ones, zeros, zeros */
  const float *residual;                 /* null: zeros; lies as the output does */
  void *out;
  nnd_size out_row; /* elements from row to row */
};

void nnd_int8_finish(const struct nnd_int8_end *e, const struct nnd_int8_ended *t);

/* Says whether an end is quick, of finite factors and bias. */
void nnd_int8_find_quick(struct nnd_int8_end *e, int is_finite);

#endif
