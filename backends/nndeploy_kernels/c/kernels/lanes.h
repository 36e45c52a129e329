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

#define NND_JOINED(name, operator)                                                                                     \
  NND_INLINE float name(vf x) {                                                                                        \
    float lanes[NND_LANES];                                                                                            \
    nnd_store_any(lanes, x);                                                                                           \
    NND_UNROLL                                                                                                         \
    for (int half = NND_LANES / 2; half > 0; half /= 2) NND_UNROLL                                                     \
    for (int i = 0; i < half; i++) lanes[i] = operator(lanes[i], lanes[i + half]);                                     \
    return lanes[0];                                                                                                   \
  }
NND_INLINE float nnd_larger(float a, float b) { return a > b || a != a ? a : b; }
NND_INLINE float nnd_smaller(float a, float b) { return a < b || a != a ? a : b; }
NND_INLINE float nnd_added(float a, float b) { return a + b; }
NND_INLINE float nnd_multiplied(float a, float b) { return a * b; }
NND_JOINED(nnd_joined_max, nnd_larger)
NND_JOINED(nnd_joined_min, nnd_smaller)
NND_JOINED(nnd_joined_sum, nnd_added)
NND_JOINED(nnd_joined_product, nnd_multiplied)

#endif
