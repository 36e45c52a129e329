/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of expressions.py on vectors, one function each: `nnd_op_<operator>`.
 *
 * They keep NaNs as ONNX does: relu, max and min of a NaN are NaN. No libc: exp, log, tanh and erf are computed here.
 */
#ifndef NND_OPERATORS_H
#define NND_OPERATORS_H

#include "base/vector.h"
#if NND_LANES == 16
#include "base/pieces.h"
#endif

NND_INLINE vf nnd_op_neg(vf a) { return -a; }
NND_INLINE vf nnd_op_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
NND_INLINE vf nnd_op_reciprocal(vf a) { return 1.0f / a; }
NND_INLINE vf nnd_op_sqrt(vf a) { return __builtin_elementwise_sqrt(a); }
NND_INLINE vf nnd_op_floor(vf a) { return __builtin_elementwise_floor(a); }
NND_INLINE vf nnd_op_ceil(vf a) { return __builtin_elementwise_ceil(a); }
/* To the nearest, ties to even. */
NND_INLINE vf nnd_op_round(vf a) { return __builtin_elementwise_roundeven(a); }
NND_INLINE vf nnd_op_add(vf a, vf b) { return a + b; }
NND_INLINE vf nnd_op_sub(vf a, vf b) { return a - b; }
NND_INLINE vf nnd_op_mul(vf a, vf b) { return a * b; }
NND_INLINE vf nnd_op_div(vf a, vf b) { return a / b; }
NND_INLINE vf nnd_truth(vi mask) { return nnd_select(mask, nnd_splat(1.0f), nnd_splat(0.0f)); }
NND_INLINE vf nnd_op_less(vf a, vf b) { return nnd_truth(a < b); }
NND_INLINE vf nnd_op_less_equal(vf a, vf b) { return nnd_truth(a <= b); }
NND_INLINE vf nnd_op_equal(vf a, vf b) { return nnd_truth(a == b); }
NND_INLINE vf nnd_op_not(vf a) { return nnd_truth(a == 0.0f); }
NND_INLINE vf nnd_op_and(vf a, vf b) { return nnd_truth((a != 0.0f) & (b != 0.0f)); }
NND_INLINE vf nnd_op_or(vf a, vf b) { return nnd_truth((a != 0.0f) | (b != 0.0f)); }
NND_INLINE vf nnd_op_xor(vf a, vf b) { return nnd_truth((a != 0.0f) ^ (b != 0.0f)); }
/* A NaN stays one. */
NND_INLINE vf nnd_op_sign(vf a) { return nnd_select(a != a, a, nnd_truth(a > 0.0f) - nnd_truth(a < 0.0f)); }
NND_INLINE vf nnd_op_where(vf c, vf a, vf b) { return nnd_select(c != 0.0f, a, b); }
/* A NaN of either operand is the result. */
NND_INLINE vf nnd_op_max(vf a, vf b) { return nnd_select((a > b) | (a != a), a, b); }
NND_INLINE vf nnd_op_min(vf a, vf b) { return nnd_select((a < b) | (a != a), a, b); }
NND_INLINE vf nnd_op_relu(vf a) { return nnd_at_least(nnd_splat(0.0f), a); }

/* The nearest number of a range; a NaN is the least. */
NND_INLINE vf nnd_saturated(float low, float high, vf a) {
  return nnd_at_most(nnd_splat(high), nnd_select(a > low, a, nnd_splat(low)));
}
NND_INLINE vf nnd_op_saturated_uint8(vf a) { return nnd_saturated(0.0f, 255.0f, a); }
NND_INLINE vf nnd_op_saturated_int8(vf a) { return nnd_saturated(-128.0f, 127.0f, a); }

/* exp: reduced by ln 2 in two parts (Cody and Waite), Taylor polynomial of degree 7 on [-ln2/2, ln2/2]. */
NND_INLINE vf nnd_op_exp(vf x) {
  const vf low = nnd_splat(-104.0f), high = nnd_splat(89.0f);
  const vf c = nnd_op_min(nnd_op_max(x, low), high);
  const vf n = nnd_op_floor(c * 1.44269504088896341f + 0.5f);
  const vf r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  vf p = nnd_splat(1.98412698e-4f);
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const vf whole = nnd_select(n == n, n, nnd_splat(0.0f));
  const vi number = __builtin_convertvector(whole, vi);
  const vi half = number >> 1, rest = number - half; /* in two factors: 2^128 and 2^-150 are no floats */
  const vf result = p * (vf)((half + 127) << 23) * (vf)((rest + 127) << 23);
  return nnd_select(x == x, result, x);
}

/* log: mantissa in [sqrt(1/2), sqrt(2)), log(m) = 2 artanh((m - 1) / (m + 1)). */
NND_INLINE vf nnd_op_log(vf x) {
  const vi tiny = x < 1.17549435e-38f;
  const vf scaled = nnd_select(tiny, x * 8388608.0f, x);
  const vi bits = (vi)scaled;
  vi exponent = ((bits >> 23) & 0xff) - 126;
  vf m = (vf)((bits & 0x007fffff) | 0x3f000000);
  const vi low = m < 0.707106781f;
  m = nnd_select(low, m + m, m);
  exponent += low; /* a mask is -1 */
  exponent -= tiny & 23;
  const vf e = __builtin_convertvector(exponent, vf);
  const vf s = (m - 1.0f) / (m + 1.0f), z = s * s;
  vf p = nnd_splat(0.1111111f);
  p = p * z + 0.14285714f;
  p = p * z + 0.2f;
  p = p * z + 0.33333333f;
  const vf series = 2.0f * s + 2.0f * s * z * p;
  vf result = e * 0.693359375f + (e * -2.12194440e-4f + series);
  const vf zero = nnd_splat(0.0f), infinity = nnd_splat(__builtin_inff());
  result = nnd_select(x == zero, -infinity, result);
  result = nnd_select(x == infinity, infinity, result);
  result = nnd_select(x < zero, nnd_splat(__builtin_nanf("")), result);
  return nnd_select(x == x, result, x);
}

/* exp on [-ln2/2, ln2/2]: minimax polynomial of degree 6 (error 2^-28). */
NND_INLINE vf nnd_exp_series(vf r) {
  vf p = nnd_splat(1.38367935e-3f);
  p = p * r + 8.37485707e-3f;
  p = p * r + 4.16682287e-2f;
  p = p * r + 0.166664197f;
  p = p * r + 0.499999921f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}

/* exp, which beyond 87 on either side stays what it is there: neither infinite nor denormal. Reduced as above. */
NND_INLINE vf nnd_exp_bounded(vf x) {
  const vf c = nnd_at_most(nnd_splat(87.0f), nnd_at_least(nnd_splat(-87.0f), x));
#if NND_LANES == 16
  return nnd_exp_by_pieces(c);
#else
  const vf shifted = c * 1.44269504088896341f + 12582912.0f; /* 3 * 2^22: the low bits are the nearest whole number */
  const vf n = shifted - 12582912.0f;
  const vf p = nnd_exp_series((c - n * 0.693359375f) - n * -2.12194440e-4f);
  return p * (vf)(((vi)shifted + 127) << 23);
#endif
}

/* exp of what is not above zero; zero from where floats become denormal. As nnd_exp_bounded computes it, but
 * that ln 2 need not be in two parts where products are not rounded before they are added. */
NND_INLINE vf nnd_exp_below(vf x) {
#if NND_LANES == 16
  return nnd_select(x < -87.0f, nnd_splat(0.0f), nnd_exp_by_pieces(x));
#else
  const vf shifted = x * 1.44269504088896341f + 12582912.0f, n = shifted - 12582912.0f;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const vf p = nnd_exp_series(x - n * 0.693147181f);
#else
  const vf p = nnd_exp_series((x - n * 0.693359375f) - n * -2.12194440e-4f);
#endif
  return nnd_select(x < -87.0f, nnd_splat(0.0f), p * (vf)(((vi)shifted + 127) << 23));
#endif
}

NND_INLINE vf nnd_op_sigmoid(vf a) {
  return nnd_select(a < -87.0f, nnd_splat(0.0f), 1.0f / (1.0f + nnd_exp_bounded(-a)));
}

/* tanh = over / under: minimax rational function of degree 9 over 8 on [-9, 9] (error 2^-25), beyond which it is 1. */
struct nnd_quotient {
  vf over, under;
};

NND_INLINE struct nnd_quotient nnd_tanh_quotient(vf a) {
  const vf x = nnd_at_most(nnd_splat(9.0f), nnd_at_least(nnd_splat(-9.0f), a)), z = x * x;
  vf p = nnd_splat(1.33547578e-8f), q = nnd_splat(7.77659961e-7f);
  p = p * z + 2.06091582e-5f;
  q = q * z + 3.28564262e-4f;
  p = p * z + 3.49559301e-3f;
  q = q * z + 2.58770011e-2f;
  p = p * z + 0.133810298f;
  q = q * z + 0.467143454f;
  p = p * z + 0.999999979f;
  q = q * z + 1.0f;
  return (struct nnd_quotient){x * p, q};
}

NND_INLINE vf nnd_op_tanh(vf a) {
  const struct nnd_quotient t = nnd_tanh_quotient(a);
  const vf one = nnd_splat(1.0f);
  return nnd_at_most(one, nnd_at_least(-one, t.over / t.under));
}

NND_INLINE vf nnd_op_silu(vf a) { return a * nnd_op_sigmoid(a); }
NND_INLINE vf nnd_op_hardswish(vf a) {
  return a * nnd_op_min(nnd_op_max(a * (1.0f / 6.0f) + 0.5f, nnd_splat(0.0f)), nnd_splat(1.0f));
}
/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) */
NND_INLINE vf nnd_op_softplus(vf a) {
  const vf e = nnd_op_exp(-nnd_op_abs(a)), one = nnd_splat(1.0f), u = one + e;
  const vf tail = nnd_select(u == one, e, nnd_op_log(u) * e / (u - one)); /* Kahan's log1p */
  return nnd_op_relu(a) + tail;
}

/* erf, to 2.6e-7 of it: a * p(a^2), minimax where |a| <= 3.9, where it becomes one, or a last digit more. No branch and
 * no division. */
NND_INLINE vf nnd_erf_unbounded(vf a) {
#if NND_LANES == 16
  return nnd_erf_by_pieces(a);
#else
  const vf x = nnd_at_most(nnd_splat(3.9f), nnd_at_least(nnd_splat(-3.9f), a)), w = x * x * 0.13149244f - 1.0f;
  static const float c[] = {0.36258397f,   -0.18101108f,   0.13469107f,   -0.10953288f,   0.09067002f,  -0.0737965f,
                            0.057905823f,  -0.042818815f,  0.02913499f,   -0.019435897f,  0.013580778f, -0.007285601f,
                            0.0019058276f, -0.0013370957f, 0.0019222393f, -0.00076655186f};
  vf p = nnd_splat(c[15]);
  NND_UNROLL
  for (int i = 14; i >= 0; i--) p = p * w + c[i];
  return x * p;
#endif
}

NND_INLINE vf nnd_op_erf(vf a) {
  return nnd_at_most(nnd_splat(1.0f), nnd_at_least(nnd_splat(-1.0f), nnd_erf_unbounded(a)));
}

/* a / 2 * (1 + erf(a / sqrt(2))): what erf is above one adds a last digit, below minus one it would change the sign. */
NND_INLINE vf nnd_op_gelu(vf a) {
  const vf half = a * 0.5f;
  return half * nnd_at_least(nnd_splat(-1.0f), nnd_erf_unbounded(a * 0.707106781f)) + half;
}
/* a / 2 * (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))), as (1 + tanh(u)) / 2 = sigmoid(2 u). */
NND_INLINE vf nnd_op_gelu_tanh(vf a) { return a * nnd_op_sigmoid(a * (1.59576912f + a * a * 0.0713548163f)); }

#endif
