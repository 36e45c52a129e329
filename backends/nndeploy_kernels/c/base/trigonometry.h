/* SPDX-License-Identifier: Apache-2.0
 *
 * Sines, hyperbolic sines and what undoes them, within some four units of the last place at any argument.
 *
 * Source of the polynomials: Cephes (Moshier), single precision.
 */
#ifndef NND_TRIGONOMETRY_H
#define NND_TRIGONOMETRY_H

#include "base/operators.h"

NND_INLINE vf nnd_with_sign_of(vf size, vf a) { return (vf)(((vi)size & INT32_MAX) | ((vi)a & INT32_MIN)); }

/* An angle is quadrant * pi/2 + rest; the rest is in [-pi/4, pi/4]. */
struct nnd_angle {
  vf rest;
  vi quadrant;
};

/* The same of one large angle, m * 2^e with a whole m of 24 bits, times 2/pi (Payne and Hanek): what the bits of 2/pi
 * beyond the 96 that are taken add is a multiple of four quadrants, or too little. */
static float nnd_large_angle(float a, int *quadrant) {
  static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                         0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  uint32_t bits;
  memcpy(&bits, &a, sizeof bits);
  const int exponent = (int)(bits >> 23 & 255) - 150;
  *quadrant = 0;
  if (exponent == 255 - 150) return __builtin_nanf("");
  const uint64_t m = (bits & 0x7fffff) | 0x800000;
  const int first = exponent + 30, word = first / 32, shift = first % 32; /* of the table's bits */
  uint64_t window[3]; /* the first of its bits, times 2^e, is worth two */
  for (int k = 0; k < 3; k++)
    window[k] = (((uint64_t)two_over_pi[word + k] << 32 | two_over_pi[word + k + 1]) << shift) >> 32;
  const uint64_t product = (m * window[0] << 32) + m * window[1] + (m * window[2] >> 32); /* in units of 2^-62 */
  const uint64_t nearest = (product + ((uint64_t)1 << 61)) >> 62;
  const double rest = (double)(int64_t)(product - (nearest << 62)) * 0x1.921fb54442d18p-62;
  *quadrant = (int)(bits >> 31 ? -nearest : nearest);
  return (float)(bits >> 31 ? -rest : rest);
}

NND_INLINE struct nnd_angle nnd_angle_of(vf a) {
  const vi large = ~(nnd_op_abs(a) < 1e6f);
  const vd wide = __builtin_convertvector(nnd_select(large, nnd_splat(0.0f), a), vd);
  const vd n = __builtin_elementwise_floor(wide * 0.6366197723675814 + 0.5);
  const vd rest = (wide - n * 1.57079631090164184570) - n * 1.58932547735281966916e-8;
  struct nnd_angle angle = {__builtin_convertvector(rest, vf), __builtin_convertvector(n, vi)};
  if (nnd_any_lane(large)) NND_NO_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++)
    if (large[lane]) {
      int quadrant;
      angle.rest[lane] = nnd_large_angle(a[lane], &quadrant);
      angle.quadrant[lane] = quadrant;
    }
  return angle;
}

/* Of -pi/4 to pi/4: with the sign of the angle, also of a zero. */
NND_INLINE vf nnd_short_sin(vf r) {
  const vf z = r * r;
  return nnd_with_sign_of(r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f)), r);
}

NND_INLINE vf nnd_short_cos(vf r) {
  const vf z = r * r;
  return 1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
}

/* The sine of an angle that is `turns` quadrants further. */
NND_INLINE vf nnd_turned_sin(vf a, int turns) {
  const struct nnd_angle angle = nnd_angle_of(a);
  const vi quadrant = angle.quadrant + turns, is_cos = -(quadrant & 1), sign = (quadrant & 2) << 30;
  const vf found = nnd_select(is_cos, nnd_short_cos(angle.rest), nnd_short_sin(angle.rest));
  return (vf)((vi)found ^ sign);
}

NND_INLINE vf nnd_op_sin(vf a) { return nnd_turned_sin(a, 0); }
NND_INLINE vf nnd_op_cos(vf a) { return nnd_turned_sin(a, 1); }
NND_INLINE vf nnd_op_tan(vf a) {
  const struct nnd_angle angle = nnd_angle_of(a);
  const vf s = nnd_short_sin(angle.rest), c = nnd_short_cos(angle.rest);
  const vi is_odd = -(angle.quadrant & 1);
  return nnd_select(is_odd, -c, s) / nnd_select(is_odd, s, c);
}

/* asin(s) of s = sqrt(z) in [0, 1/2] */
NND_INLINE vf nnd_short_asin(vf s, vf z) {
  vf p = nnd_splat(4.2163199048e-2f);
  p = p * z + 2.4181311049e-2f;
  p = p * z + 4.5470025998e-2f;
  p = p * z + 7.4953002686e-2f;
  p = p * z + 1.6666752422e-1f;
  return p * z * s + s;
}

NND_INLINE vf nnd_op_asin(vf a) {
  const vf size = nnd_op_abs(a);
  const vi far = size > 0.5f;
  const vf z = nnd_select(far, 0.5f - 0.5f * size, size * size), s = nnd_select(far, nnd_op_sqrt(z), size);
  const vf p = nnd_short_asin(s, z);
  return nnd_with_sign_of(nnd_select(far, 1.57079632679489662f - (p + p), p), a);
}

NND_INLINE vf nnd_op_acos(vf a) {
  const vf size = nnd_op_abs(a);
  const vi far = size > 0.5f;
  const vf z = nnd_select(far, 0.5f - 0.5f * size, size * size), s = nnd_select(far, nnd_op_sqrt(z), size);
  const vf p = nnd_short_asin(s, z), two = p + p;
  const vf beyond = nnd_select(a < 0.0f, 3.14159265358979324f - two, two);
  return nnd_select(far, beyond, 1.57079632679489662f - nnd_with_sign_of(p, a));
}

NND_INLINE vf nnd_op_atan(vf a) {
  const vf size = nnd_op_abs(a), one = nnd_splat(1.0f);
  const vi far = size > 2.414213562f, middle = size > 0.4142135624f;
  const vf over = nnd_select(far, -one, nnd_select(middle, size - 1.0f, size));
  const vf x = over / nnd_select(far, size, nnd_select(middle, size + 1.0f, one)), z = x * x;
  const vf from = nnd_select(far, nnd_splat(1.57079632679489662f),
                             nnd_select(middle, nnd_splat(0.78539816339744831f), nnd_splat(0.0f)));
  vf p = nnd_splat(8.05374449538e-2f);
  p = p * z - 1.38776856032e-1f;
  p = p * z + 1.99777106478e-1f;
  p = p * z - 3.33329491539e-1f;
  return nnd_with_sign_of(from + (p * z * x + x), a);
}

/* e^x / 2 of x >= 0, infinite only where that is. */
struct nnd_halves {
  vf grown, shrunk; /* e^x / 2, e^-x / 2 */
};

NND_INLINE struct nnd_halves nnd_halves_of(vf x) {
  const vf root = nnd_op_exp(0.5f * x);
  return (struct nnd_halves){0.5f * root * root, 0.5f / root / root};
}

NND_INLINE vf nnd_op_sinh(vf a) {
  const vf size = nnd_op_abs(a), z = a * a;
  const struct nnd_halves e = nnd_halves_of(size);
  vf p = nnd_splat(2.03721912945e-4f);
  p = p * z + 8.33028376239e-3f;
  p = p * z + 1.66667160211e-1f;
  return nnd_select(size < 1.0f, p * z * a + a, nnd_with_sign_of(e.grown - e.shrunk, a));
}

NND_INLINE vf nnd_op_cosh(vf a) {
  const struct nnd_halves e = nnd_halves_of(nnd_op_abs(a));
  return e.grown + e.shrunk;
}

/* log(1 + x), Kahan's way. */
NND_INLINE vf nnd_log_behind_one(vf x) {
  const vf u = 1.0f + x, d = u - 1.0f;
  const vf found = nnd_select(u == 1.0f, x, nnd_op_log(u) * (x / d));
  return nnd_select(u == __builtin_inff(), u, found);
}

#define NND_MUCH 4096.0f /* log(2 x) is what asinh and acosh are from here on */

NND_INLINE vf nnd_op_asinh(vf a) {
  const vf size = nnd_op_abs(a), square = size * size;
  const vf near = nnd_log_behind_one(size + square / (1.0f + nnd_op_sqrt(1.0f + square)));
  return nnd_with_sign_of(nnd_select(size > NND_MUCH, nnd_op_log(size) + 0.693147181f, near), a);
}

NND_INLINE vf nnd_op_acosh(vf a) {
  const vf t = a - 1.0f, near = nnd_log_behind_one(t + nnd_op_sqrt(t * (t + 2.0f)));
  const vf found = nnd_select(a > NND_MUCH, nnd_op_log(a) + 0.693147181f, near);
  return nnd_select(a < 1.0f, nnd_splat(__builtin_nanf("")), found);
}

NND_INLINE vf nnd_op_atanh(vf a) {
  const vf size = nnd_op_abs(a);
  return nnd_with_sign_of(0.5f * nnd_log_behind_one((size + size) / (1.0f - size)), a);
}

#endif
