/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of which only the first lanes are in memory, and what all lanes of a vector give together.
 */
#ifndef NND_UNITS_SOME_H
#define NND_UNITS_SOME_H

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "../operators.h"

typedef _Bool nnd_lane_mask __attribute__((ext_vector_type(NND_LANES)));
typedef float nnd_ext_vf __attribute__((ext_vector_type(NND_LANES)));

NND_INLINE nnd_lane_mask nnd_first_lanes(nnd_size count) {
  vi lane;
  NND_UNROLL for (int i = 0; i < NND_LANES; i++) lane[i] = i;
  return __builtin_convertvector(lane < (int32_t)count, nnd_lane_mask);
}

/* Lanes from `count` on hold `rest`; nothing there is read. */
NND_INLINE vf nnd_load_first(const float *from, nnd_size count, float rest) {
  return (vf)__builtin_masked_load(nnd_first_lanes(count), from, (nnd_ext_vf)nnd_splat(rest));
}
NND_INLINE void nnd_store_first(float *to, vf value, nnd_size count) {
  __builtin_masked_store(nnd_first_lanes(count), (nnd_ext_vf)value, to);
}

/* x[lane ^ with] in every lane. */
#if NND_LANES == 16
#define NND_CROSS(x, with)                                                                                             \
  __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with, 4 ^ with, 5 ^ with, 6 ^ with, 7 ^ with,        \
                          8 ^ with, 9 ^ with, 10 ^ with, 11 ^ with, 12 ^ with, 13 ^ with, 14 ^ with, 15 ^ with)
#elif NND_LANES == 8
#define NND_CROSS(x, with)                                                                                             \
  __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with, 4 ^ with, 5 ^ with, 6 ^ with, 7 ^ with)
#else
#define NND_CROSS(x, with) __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with)
#endif

/* The sum, the largest of all lanes, in every lane. */
NND_INLINE vf nnd_sum_everywhere(vf x) {
#if NND_LANES == 16
  x += NND_CROSS(x, 8);
#endif
#if NND_LANES >= 8
  x += NND_CROSS(x, 4);
#endif
  x += NND_CROSS(x, 2);
  return x + NND_CROSS(x, 1);
}
NND_INLINE vf nnd_max_everywhere(vf x) {
#if NND_LANES == 16
  x = nnd_op_max(NND_CROSS(x, 8), x);
#endif
#if NND_LANES >= 8
  x = nnd_op_max(NND_CROSS(x, 4), x);
#endif
  x = nnd_op_max(NND_CROSS(x, 2), x);
  return nnd_op_max(NND_CROSS(x, 1), x);
}

/* The largest of all lanes that are numbers, in every lane; NaNs may be passed over. */
NND_INLINE vf nnd_number_max_everywhere(vf x) {
#if NND_LANES == 16
  x = nnd_at_least(x, NND_CROSS(x, 8));
#endif
#if NND_LANES >= 8
  x = nnd_at_least(x, NND_CROSS(x, 4));
#endif
  x = nnd_at_least(x, NND_CROSS(x, 2));
  return nnd_at_least(x, NND_CROSS(x, 1));
}

/* x * 2^n of a whole n from -151 to 0; `bits` holds n in its lowest bits. */
NND_INLINE vf nnd_times_power(vf x, vf n, vf bits) {
#if defined(__AVX512F__)
  (void)bits;
  return (vf)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
  const vi whole = ((vi)bits << 9) >> 9, half = whole >> 1; /* in two factors: 2^-150 is no normal float */
  (void)n;
  return x * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
#endif
}

/* exp of x <= 0 to 1.2e-7 of its value and 1e-8 of 1, for what is a share of a sum; of a NaN a NaN. Polynomial fitted on
 * [-ln2/2, ln2/2]; adding 1.5 * 2^23 rounds to a whole number and leaves it in the lowest bits. */
NND_INLINE vf nnd_exp_of_negative(vf x) {
  const vf rounder = nnd_splat(12582912.0f), c = nnd_at_least(nnd_splat(-104.0f), x);
  const vf rounded = c * 1.44269504088896341f + rounder, n = rounded - rounder;
  const vf r = c - n * 0.693147181f;
  vf p = nnd_splat(0.00833383668f);
  p = p * r + 0.0418988094f;
  p = p * r + 0.166668862f;
  p = p * r + 0.499991417f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return nnd_times_power(p, n, rounded);
}

#endif
