/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of expressions.py on lanes of float64, one function each: `nnd_double_<operator>`.
 *
 * They keep NaNs as those of float32 do. exp and log are within two units of the last digit.
 */
#ifndef NND_DOUBLE_OPERATORS_H
#define NND_DOUBLE_OPERATORS_H

#include "base/vector.h"

NND_INLINE vd nnd_truth_of_doubles(vl mask) { return (vd)(mask & (vl)nnd_splat_double(1.0)); }

NND_INLINE vd nnd_double_neg(vd a) { return -a; }
NND_INLINE vd nnd_double_abs(vd a) { return (vd)((vl)a & INT64_MAX); }
NND_INLINE vd nnd_double_reciprocal(vd a) { return 1.0 / a; }
NND_INLINE vd nnd_double_sqrt(vd a) { return __builtin_elementwise_sqrt(a); }
NND_INLINE vd nnd_double_floor(vd a) { return __builtin_elementwise_floor(a); }
NND_INLINE vd nnd_double_ceil(vd a) { return __builtin_elementwise_ceil(a); }
NND_INLINE vd nnd_double_round(vd a) { return __builtin_elementwise_roundeven(a); }
NND_INLINE vd nnd_double_add(vd a, vd b) { return a + b; }
NND_INLINE vd nnd_double_sub(vd a, vd b) { return a - b; }
NND_INLINE vd nnd_double_mul(vd a, vd b) { return a * b; }
NND_INLINE vd nnd_double_div(vd a, vd b) { return a / b; }
NND_INLINE vd nnd_double_less(vd a, vd b) { return nnd_truth_of_doubles(a < b); }
NND_INLINE vd nnd_double_less_equal(vd a, vd b) { return nnd_truth_of_doubles(a <= b); }
NND_INLINE vd nnd_double_equal(vd a, vd b) { return nnd_truth_of_doubles(a == b); }
NND_INLINE vd nnd_double_not(vd a) { return nnd_truth_of_doubles(a == 0.0); }
NND_INLINE vd nnd_double_and(vd a, vd b) { return nnd_truth_of_doubles((a != 0.0) & (b != 0.0)); }
NND_INLINE vd nnd_double_or(vd a, vd b) { return nnd_truth_of_doubles((a != 0.0) | (b != 0.0)); }
NND_INLINE vd nnd_double_xor(vd a, vd b) { return nnd_truth_of_doubles((a != 0.0) ^ (b != 0.0)); }
NND_INLINE vd nnd_double_where(vd c, vd a, vd b) { return nnd_select_double(c != 0.0, a, b); }
NND_INLINE vd nnd_double_max(vd a, vd b) { return nnd_select_double((a > b) | (a != a), a, b); }
NND_INLINE vd nnd_double_min(vd a, vd b) { return nnd_select_double((a < b) | (a != a), a, b); }
NND_INLINE vd nnd_double_relu(vd a) { return nnd_select_double(0.0 > a, nnd_splat_double(0.0), a); }
NND_INLINE vd nnd_double_sign(vd a) {
  return nnd_select_double(a != a, a, nnd_truth_of_doubles(a > 0.0) - nnd_truth_of_doubles(a < 0.0));
}

/* The least number that float32 has and that is not below: x <= t is the same of it, whatever number t of float32 is. */
NND_INLINE vd nnd_double_float_above(vd x) {
  const vf near = __builtin_convertvector(x, vf);
  const vi is_below = __builtin_convertvector((vl)(__builtin_convertvector(near, vd) < x), vi);
  const vi next = (vi)near - is_below, next_below_zero = (vi)near + is_below; /* a mask is -1 */
  const vi is_negative = (vi)near < 0;
  return __builtin_convertvector((vf)((is_negative & next_below_zero) | (~is_negative & next)), vd);
}

/* Of the two nearest floats the one whose last bit is set, where x is none: what is rounded further comes out as if x had
 * been rounded at once. */
NND_INLINE vf nnd_odd_floats_of(vd x) {
  const vf near = __builtin_convertvector(x, vf);
  const vd back = __builtin_convertvector(near, vd);
  const vl is_larger = ((vl)back & INT64_MAX) > ((vl)x & INT64_MAX), is_other = (vl)(back != x);
  return (vf)(((vi)near + __builtin_convertvector(is_larger, vi)) | (__builtin_convertvector(is_other, vi) & 1));
}
NND_INLINE vd nnd_double_float_odd(vd x) { return __builtin_convertvector(nnd_odd_floats_of(x), vd); }

/* Reduced by ln 2 in two parts (Cody and Waite), Taylor polynomial of degree 13 on [-ln2/2, ln2/2]. */
NND_INLINE vd nnd_double_exp(vd x) {
  const vd c = nnd_double_min(nnd_double_max(x, nnd_splat_double(-746.0)), nnd_splat_double(710.0));
  const vd n = nnd_double_round(c * 0x1.71547652b82fep0);
  const vd r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  static const double parts[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  vd p = nnd_splat_double(1.0 / 6227020800);
  NND_UNROLL
  for (int i = 0; i < 13; i++) p = p * r + parts[i];
  const vl number = __builtin_convertvector(nnd_select_double(n == n, n, nnd_splat_double(0.0)), vl);
  const vl half = number >> 1, rest = number - half; /* in two factors: 2^1024 and 2^-1075 are no float64 */
  return nnd_select_double(x == x, p * (vd)((half + 1023) << 52) * (vd)((rest + 1023) << 52), x);
}

/* Mantissa in [sqrt(1/2), sqrt(2)), log(m) = 2 artanh((m - 1) / (m + 1)). */
NND_INLINE vd nnd_double_log(vd x) {
  const vl tiny = x < 0x1p-1022;
  const vl bits = (vl)nnd_select_double(tiny, x * 0x1p54, x);
  const vd raw = (vd)((bits & 0x000fffffffffffffLL) | 0x3fe0000000000000LL);
  const vl low = raw < 0x1.6a09e667f3bcdp-1;
  const vd m = nnd_select_double(low, raw + raw, raw);
  const vl exponent = ((bits >> 52) & 0x7ff) - 1022 + low - (tiny & 54); /* a mask is -1 */
  const vd e = __builtin_convertvector(exponent, vd), s = (m - 1.0) / (m + 1.0), z = s * s;
  vd p = nnd_splat_double(1.0 / 23);
  NND_UNROLL
  for (int i = 21; i >= 3; i -= 2) p = p * z + 1.0 / i;
  const vd result = e * 0x1.62e42feep-1 + (e * 0x1.a39ef35793c76p-33 + (2.0 * s + 2.0 * s * z * p));
  const vd infinity = nnd_splat_double(__builtin_inf());
  const vd beyond = nnd_select_double(x == 0.0, -infinity, nnd_select_double(x == infinity, infinity, result));
  return nnd_select_double(x != x, x, nnd_select_double(x < 0.0, nnd_splat_double(__builtin_nan("")), beyond));
}

/* e / (e + 2), where e = exp(2 |x|) - 1: by the Taylor polynomial of degree 19 where it is small. */
NND_INLINE vd nnd_double_tanh(vd x) {
  const vd y = 2.0 * nnd_double_min(nnd_double_abs(x), nnd_splat_double(20.0));
  vd p = nnd_splat_double(1.0);
  NND_UNROLL
  for (int i = 19; i >= 2; i--) p = 1.0 + y * p * (1.0 / i);
  const vd e = nnd_select_double(y < 1.0, y * p, nnd_double_exp(y) - 1.0), size = e / (e + 2.0);
  return nnd_select_double(x != x, x, (vd)((vl)size | ((vl)x & INT64_MIN)));
}

NND_INLINE vd nnd_double_sigmoid(vd a) { return 1.0 / (1.0 + nnd_double_exp(-a)); }

#endif
