/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of expressions.py on vectors, one function each: `nndx_<operator>`.
 *
 * They keep NaNs as ONNX does: relu, max and min of a NaN are NaN. No libc: exp, log, tanh and erf are computed here.
 */
#ifndef NND_EXPRESSION_H
#define NND_EXPRESSION_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float vx __attribute__((vector_size(4 * NND_LANES)));
typedef int32_t vxi __attribute__((vector_size(4 * NND_LANES)));
typedef float vx_any __attribute__((vector_size(4 * NND_LANES), aligned(4)));

#define NNDX static inline __attribute__((always_inline))

NNDX vx nndx_all(float value) { return value - (vx){0}; }
NNDX vx nndx_load(const float *from) { return *(const vx_any *)from; }
NNDX void nndx_store(float *to, vx value) { *(vx_any *)to = value; }

NNDX vx nndx_choose(vxi mask, vx yes, vx no) { return (vx)((mask & (vxi)yes) | (~mask & (vxi)no)); }

NNDX vx nndx_neg(vx a) { return -a; }
NNDX vx nndx_abs(vx a) { return (vx)((vxi)a & 0x7fffffff); }
NNDX vx nndx_reciprocal(vx a) { return 1.0f / a; }
NNDX vx nndx_sqrt(vx a) { return __builtin_elementwise_sqrt(a); }
NNDX vx nndx_floor(vx a) { return __builtin_elementwise_floor(a); }
NNDX vx nndx_ceil(vx a) { return __builtin_elementwise_ceil(a); }
NNDX vx nndx_add(vx a, vx b) { return a + b; }
NNDX vx nndx_sub(vx a, vx b) { return a - b; }
NNDX vx nndx_mul(vx a, vx b) { return a * b; }
NNDX vx nndx_div(vx a, vx b) { return a / b; }
NNDX vx nndx_less(vx a, vx b) { return nndx_choose(a < b, nndx_all(1.0f), nndx_all(0.0f)); }
NNDX vx nndx_where(vx c, vx a, vx b) { return nndx_choose(c != 0.0f, a, b); }
/* A NaN of either operand is the result. */
NNDX vx nndx_max(vx a, vx b) { return nndx_choose((a > b) | (a != a), a, b); }
NNDX vx nndx_min(vx a, vx b) { return nndx_choose((a < b) | (a != a), a, b); }
NNDX vx nndx_relu(vx a) { return nndx_choose(a < 0.0f, nndx_all(0.0f), a); }

/* exp: reduced by ln 2 in two parts (Cody and Waite), Taylor polynomial of degree 7 on [-ln2/2, ln2/2]. */
NNDX vx nndx_exp(vx x) {
  const vx low = nndx_all(-104.0f), high = nndx_all(89.0f);
  const vx c = nndx_min(nndx_max(x, low), high);
  const vx n = nndx_floor(c * 1.44269504088896341f + 0.5f);
  const vx r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  vx p = nndx_all(1.98412698e-4f);
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const vx whole = nndx_choose(n == n, n, nndx_all(0.0f));
  const vxi number = __builtin_convertvector(whole, vxi);
  const vxi half = number >> 1, rest = number - half; /* in two factors: 2^128 and 2^-150 are no floats */
  const vx result = p * (vx)((half + 127) << 23) * (vx)((rest + 127) << 23);
  return nndx_choose(x == x, result, x);
}

/* log: mantissa in [sqrt(1/2), sqrt(2)), log(m) = 2 artanh((m - 1) / (m + 1)). */
NNDX vx nndx_log(vx x) {
  const vxi tiny = x < 1.17549435e-38f;
  const vx scaled = nndx_choose(tiny, x * 8388608.0f, x);
  const vxi bits = (vxi)scaled;
  vxi exponent = ((bits >> 23) & 0xff) - 126;
  vx m = (vx)((bits & 0x007fffff) | 0x3f000000);
  const vxi low = m < 0.707106781f;
  m = nndx_choose(low, m + m, m);
  exponent += low; /* a mask is -1 */
  exponent -= tiny & 23;
  const vx e = __builtin_convertvector(exponent, vx);
  const vx s = (m - 1.0f) / (m + 1.0f), z = s * s;
  vx p = nndx_all(0.1111111f);
  p = p * z + 0.14285714f;
  p = p * z + 0.2f;
  p = p * z + 0.33333333f;
  const vx series = 2.0f * s + 2.0f * s * z * p;
  vx result = e * 0.693359375f + (e * -2.12194440e-4f + series);
  const vx zero = nndx_all(0.0f), infinity = nndx_all(__builtin_inff());
  result = nndx_choose(x == zero, -infinity, result);
  result = nndx_choose(x == infinity, infinity, result);
  result = nndx_choose(x < zero, nndx_all(__builtin_nanf("")), result);
  return nndx_choose(x == x, result, x);
}

NNDX vx nndx_sigmoid(vx a) {
  const vx e = nndx_exp(-nndx_abs(a)); /* at most 1: no overflow */
  const vx s = 1.0f / (1.0f + e);
  return nndx_choose(a < 0.0f, e * s, s);
}

/* tanh: odd polynomial near 0, where the quotient would lose digits. Taylor to x^9, error below 2e-8 for |x| < 0.3. */
NNDX vx nndx_tanh(vx a) {
  const vx x = nndx_abs(a), z = a * a;
  const vx near = a * (1.0f + z * (-0.333333333f + z * (0.133333333f + z * (-0.0539682540f + z * 0.0218694885f))));
  const vx e = nndx_exp(-2.0f * x), far = (1.0f - e) / (1.0f + e);
  const vx result = nndx_choose(x < 0.3f, near, nndx_choose(a < 0.0f, -far, far));
  return nndx_choose(a == a, result, a);
}

NNDX vx nndx_silu(vx a) { return a * nndx_sigmoid(a); }
NNDX vx nndx_hardswish(vx a) {
  return a * nndx_min(nndx_max(a * (1.0f / 6.0f) + 0.5f, nndx_all(0.0f)), nndx_all(1.0f));
}
/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) */
NNDX vx nndx_softplus(vx a) {
  const vx e = nndx_exp(-nndx_abs(a)), one = nndx_all(1.0f), u = one + e;
  const vx tail = nndx_choose(u == one, e, nndx_log(u) * e / (u - one)); /* Kahan's log1p */
  return nndx_relu(a) + tail;
}

/* erf: series near 0; 1 - t * p(t) * exp(-x^2) beyond (Numerical Recipes' erfc, 1.2e-7 relative). */
NNDX vx nndx_erf(vx a) {
  const vx x = nndx_abs(a), z = a * a;
  const vx near = a * (1.128379167f + z * (-0.3761263890f + z * (0.1128379167f + z * (-0.02686617064f + z * 0.005223977625f))));
  const vx t = 1.0f / (1.0f + 0.5f * x);
  vx p = nndx_all(0.17087277f);
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  const vx far = 1.0f - t * nndx_exp(p - z);
  return nndx_choose(x < 0.4f, near, nndx_choose(a < 0.0f, -far, far));
}

#endif
