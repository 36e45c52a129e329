/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats that do not fill a vector, or do not lie side by side; and the lanes of a vector joined to one number.
 */
#ifndef NND_LANES_H
#define NND_LANES_H

#include "base/operators.h"

/* `count` floats side by side, zeros from null; lanes beyond are the first one again. */
NND_INLINE vf nnd_load_some(const float *from, nnd_size count) {
  if (!from) return nnd_splat(0.0f);
  if (count == NND_LANES) return nnd_load_any(from);
  vf result = nnd_splat(*from);
  for (nnd_size lane = 1; lane < count; lane++) result[lane] = from[lane];
  return result;
}

NND_INLINE void nnd_store_some(float *to, vf value, nnd_size count) {
  if (count == NND_LANES)
    nnd_store_any(to, value);
  else
    for (nnd_size lane = 0; lane < count; lane++) to[lane] = value[lane];
}

/* The last `count` lanes of x, which is fewer than all; lanes before them hold `rest`. */
NND_INLINE vf nnd_last_lanes(vf x, nnd_size count, float rest) {
  vi number;
  NND_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++) number[lane] = lane;
  return nnd_select(number >= (int32_t)(NND_LANES - count), x, nnd_splat(rest));
}

/* Lane i of what is returned is lane i + n of x, the first behind the last. */
#if NND_LANES == 16
#define NND_ROTATED(x, n)                                                                                              \
  __builtin_shufflevector(x, x, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11,      \
                          n + 12, n + 13, n + 14, n + 15)
#elif NND_LANES == 8
#define NND_ROTATED(x, n) __builtin_shufflevector(x, x, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7)
#else
#define NND_ROTATED(x, n) __builtin_shufflevector(x, x, n, n + 1, n + 2, n + 3)
#endif

/* All lanes joined to one number, which each lane holds. */
#define NND_JOINED(name, operator)                                                                                     \
  NND_INLINE vf name(vf x) {                                                                                           \
    NND_JOINED_8(x, operator)                                                                                          \
    NND_JOINED_4(x, operator)                                                                                          \
    x = operator(x, NND_ROTATED(x, 2));                                                                                \
    return operator(x, NND_ROTATED(x, 1));                                                                             \
  }
#if NND_LANES > 8
#define NND_JOINED_8(x, operator) x = operator(x, NND_ROTATED(x, 8));
#else
#define NND_JOINED_8(x, operator)
#endif
#if NND_LANES > 4
#define NND_JOINED_4(x, operator) x = operator(x, NND_ROTATED(x, 4));
#else
#define NND_JOINED_4(x, operator)
#endif
NND_JOINED(nnd_joined_max, nnd_op_max)
NND_JOINED(nnd_joined_min, nnd_op_min)
NND_JOINED(nnd_joined_sum, nnd_op_add)
NND_JOINED(nnd_joined_product, nnd_op_mul)

#endif
