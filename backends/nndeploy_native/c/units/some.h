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

/* Lanes [begin, end) alone. */
NND_INLINE void nnd_store_lanes(float *to, vf value, nnd_size begin, nnd_size end) {
  vi lane;
  NND_UNROLL for (int i = 0; i < NND_LANES; i++) lane[i] = i;
  const vi inside = (lane >= (int32_t)begin) & (lane < (int32_t)end);
  __builtin_masked_store(__builtin_convertvector(inside, nnd_lane_mask), (nnd_ext_vf)value, to);
}

/* Whether a lane is not 0. */
NND_INLINE int nnd_is_any(vi mask) {
  const nnd_lane_mask set = __builtin_convertvector(mask != 0, nnd_lane_mask);
  return __builtin_reduce_or(set);
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

#define nnd_vectors_of(floats) (((floats) + NND_LANES - 1) / NND_LANES)

#define NND_FOLD_ALL(with)                                                                                             \
  NND_UNROLL for (int i = 0; i < NND_LANES / (2 * with); i++) at[i] = nnd_fold_##with(at[2 * i], at[2 * i + 1]);
NND_INLINE vi nnd_lanes_with(int bit) {
  vi mask;
  NND_UNROLL for (int i = 0; i < NND_LANES; i++) mask[i] = i & bit ? -1 : 0;
  return mask;
}

/* Lanes whose number has the bit `with` hold sums of pairs of y's lanes, the others of x's. */
#define NND_DEFINE_FOLD(with)                                                                                          \
  NND_INLINE vf nnd_fold_##with(vf x, vf y) {                                                                          \
    const vi has = nnd_lanes_with(with);                                                                               \
    const vf other = nnd_select(has, x, y);                                                                            \
    return nnd_select(has, y, x) + NND_CROSS(other, with);                                                             \
  }
NND_DEFINE_FOLD(1)
NND_DEFINE_FOLD(2)
#if NND_LANES >= 8
NND_DEFINE_FOLD(4)
#endif
#if NND_LANES == 16
NND_DEFINE_FOLD(8)
#endif

/* The sums of all lanes of `count` vectors, one after the other. Vectors are folded in pairs: two give one, lane by lane
 * half of each, until one vector holds a sum in each lane. */
NND_INLINE void nnd_sums_of_lanes(const vf *x, int count, float *to) {
  NND_UNROLL for (int first = 0; first < count; first += NND_LANES) {
    vf at[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES; i++) at[i] = first + i < count ? x[first + i] : nnd_splat(0.0f);
    NND_FOLD_ALL(1)
    NND_FOLD_ALL(2)
#if NND_LANES >= 8
    NND_FOLD_ALL(4)
#endif
#if NND_LANES == 16
    NND_FOLD_ALL(8)
#endif
    nnd_store_any(to + first, at[0]);
  }
}

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

/* x * 2^n of a whole n from -126 to 0, else 0 where lanes of `keep` are 0; `bits` holds n in its lowest bits. */
NND_INLINE vf nnd_kept_times_power(vi keep, vf x, vf n, vf bits) {
#if defined(__AVX512F__)
  (void)bits;
  const nnd_lane_mask kept = __builtin_convertvector(keep, nnd_lane_mask);
  unsigned short mask;
  memcpy(&mask, &kept, sizeof mask);
  return (vf)_mm512_maskz_scalef_ps(mask, (__m512)x, (__m512)n);
#else
  (void)n;
  return (vf)(keep & (vi)(x * (vf)(((vi)bits + 127) << 23)));
#endif
}

/* exp of x <= 0 to 1.2e-7 of its value and 1e-8 of 1, for what is a share of a sum; of a NaN a NaN. Below -87 it is 0:
 * a float that is not normal costs an Intel CPU 150 cycles. Polynomial fitted on [-ln2/2, ln2/2]; adding 1.5 * 2^23
 * rounds to a whole number and leaves it in the lowest bits. */
NND_INLINE vf nnd_exp_of_negative(vf x) {
  const vf rounder = nnd_splat(12582912.0f);
  const vi keep = ~(x < -87.0f);
  const vf rounded = x * 1.44269504088896341f + rounder, n = rounded - rounder;
  const vf r = x - n * 0.693147181f;
  vf p = nnd_splat(0.00833383668f);
  p = p * r + 0.0418988094f;
  p = p * r + 0.166668862f;
  p = p * r + 0.499991417f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return nnd_kept_times_power(keep, p, n, rounded);
}

#endif
