/* SPDX-License-Identifier: Apache-2.0
 *
 * Powers and remainders of floats, in lanes of doubles: within one unit of the last place.
 */
#ifndef NND_POWERS_H
#define NND_POWERS_H

#include "base/operators.h"

/* log2 of doubles that are neither zero, infinite, denormal nor NaN: mantissa in [sqrt(1/2), sqrt(2)), the series of
 * artanh. */
NND_INLINE vd nnd_log2_double(vd x) {
  vl exponent = ((vl)x >> 52) - 1023;
  vd m = (vd)(((vl)x & 0xfffffffffffff) | 0x3ff0000000000000);
  const vl high = m > 1.4142135623730951;
  m = nnd_select_double(high, m * 0.5, m);
  exponent -= high; /* a mask is -1 */
  const vd s = (m - 1.0) / (m + 1.0), z = s * s;
  vd p = nnd_splat_double(1.0 / 17);
  NND_UNROLL
  for (int k = 15; k > 0; k -= 2) p = p * z + 1.0 / k;
  const vi whole = __builtin_convertvector(exponent, vi);
  return __builtin_convertvector(whole, vd) + 2.8853900817779268 * s * p;
}

/* 2^t in [-160, 160]: Taylor polynomial of degree 10 on [-1/2, 1/2]. */
NND_INLINE vd nnd_exp2_double(vd t) {
  const vd n = __builtin_elementwise_floor(t + 0.5), r = (t - n) * 0.6931471805599453;
  vd p = nnd_splat_double(1.0 / 10);
  NND_UNROLL
  for (int k = 9; k > 0; k--) p = (p * r + 1.0) * (1.0 / k);
  p = p * r + 1.0;
  const vi whole = __builtin_convertvector(n, vi);
  return p * (vd)((__builtin_convertvector(whole, vl) + 1023) << 52);
}

/* As pow of C: anything to the power of zero, and one to any, are one. */
NND_INLINE vf nnd_op_pow(vf a, vf b) {
  const vf size = nnd_op_abs(a), one = nnd_splat(1.0f), infinity = nnd_splat(__builtin_inff());
  const vf half = b * 0.5f;
  const vi is_whole = nnd_op_floor(b) == b, is_odd = is_whole & (nnd_op_floor(half) != half);
  const vi is_usual = (size > 0.0f) & (size < infinity) & (nnd_op_abs(b) < infinity);
  const vd log = nnd_log2_double(__builtin_convertvector(nnd_select(is_usual, size, one), vd));
  vd t = __builtin_convertvector(nnd_select(is_usual, b, one), vd) * log;
  t = nnd_select_double(t < -160.0, nnd_splat_double(-160.0), t);
  t = nnd_select_double(t > 160.0, nnd_splat_double(160.0), t);
  vf result = __builtin_convertvector(nnd_exp2_double(t), vf);
  const vi grows = (size > 1.0f) ^ (b < 0.0f); /* of zeros and infinities */
  result = nnd_select(is_usual, result, nnd_select(grows, infinity, nnd_splat(0.0f)));
  result = nnd_select((a < 0.0f) & (size < infinity) & ~is_whole, nnd_splat(__builtin_nanf("")), result);
  result = (vf)((vi)result | (is_odd & (vi)a & INT32_MIN));
  result = nnd_select((a != a) | (b != b), a + b, result);
  return nnd_select((b == 0.0f) | (a == 1.0f) | ((size == 1.0f) & (nnd_op_abs(b) == infinity)), one, result);
}

/* What is left of a when b is taken from it as often as it fits, exactly: 26 bits of the quotient at a time. */
static float nnd_fmod_of(float a, float b) {
  double rest = __builtin_fabs((double)a);
  const double by = __builtin_fabs((double)b);
  if (!(rest < __builtin_inf()) || !(by > 0.0)) return __builtin_nanf("");
  while (rest >= by) {
    uint64_t bits[2];
    memcpy(&bits[0], &rest, 8), memcpy(&bits[1], &by, 8);
    const int64_t more = (int64_t)(bits[0] >> 52) - (int64_t)(bits[1] >> 52) - 26;
    if (more > 0) bits[1] += (uint64_t)more << 52;
    double step;
    memcpy(&step, &bits[1], 8);
    rest -= (double)(int64_t)(rest / step) * step;
    if (rest < 0.0) rest += step; /* the quotient was rounded up */
  }
  return __builtin_copysignf((float)rest, a);
}

NND_INLINE vf nnd_op_fmod(vf a, vf b) {
  vf result;
  NND_NO_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++) result[lane] = nnd_fmod_of(a[lane], b[lane]);
  return result;
}

/* The same with the sign of the divisor. */
NND_INLINE vf nnd_op_mod(vf a, vf b) {
  const vf rest = nnd_op_fmod(a, b);
  const vf made = nnd_select((rest < 0.0f) != (b < 0.0f), rest + b, rest);
  return nnd_select(rest == 0.0f, (vf)((vi)b & INT32_MIN), made);
}

#endif
