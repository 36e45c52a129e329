/* SPDX-License-Identifier: Apache-2.0
 *
 * exp and erf by pieces, where a register is a table of 16 floats and two are one of 32 (AVX-512).
 *
 * A short polynomial on each piece takes fewer instructions than a long one on all of them.
 */
#ifndef NND_PIECES_H
#define NND_PIECES_H

#include "base/vector.h"

/* exp from -87 to 87: 2^(whole part), 2^(i / 32) of a table, and a polynomial on [-ln2/64, ln2/64] (error 2^-24). */
NND_INLINE vf nnd_exp_by_pieces(vf x) {
  static const float roots[2 * NND_LANES] __attribute__((aligned(64))) = {
      1.0f,       1.0218972f, 1.0442737f, 1.0671405f, 1.0905077f, 1.1143868f, 1.1387886f, 1.1637249f,
      1.1892071f, 1.2152474f, 1.2418578f, 1.269051f,  1.2968396f, 1.3252367f, 1.3542556f, 1.38391f,
      1.4142135f, 1.4451808f, 1.4768262f, 1.5091645f, 1.5422108f, 1.5759809f, 1.6104903f, 1.6457555f,
      1.6817929f, 1.7186193f, 1.7562522f, 1.7947091f, 1.8340081f, 1.8741677f, 1.9152066f, 1.9571441f};
  const vf shifted = x * 46.1662413f + 12582912.0f; /* 3 * 2^22: the low bits are the nearest whole number */
  const vf r = x - (shifted - 12582912.0f) * 0.0216608494f;
  const vf root = __builtin_ia32_vpermi2varps512(nnd_load(roots), (vi)shifted, nnd_load(roots + NND_LANES));
  const vf power = (vf)((vi)root + (((vi)shifted & ~31) << 18));
  return power + power * (r * (r * 0.50000367f + 1.00001466f));
}

/* x * p(|x|) = erf(x), p interpolated on pieces around the multiples of 1/4 (error 2^-23); at the end it is one or a last
 * digit more. */
NND_INLINE vf nnd_erf_by_pieces(vf a) {
  static const float p[5][NND_LANES] __attribute__((aligned(64))) = {
      {1.1283792f, 1.1053056f, 1.0409998f, 0.9482075f, 0.8427008f, 0.7383201f, 0.6440701f, 0.5638124f, 0.49766114f,
       0.44379434f, 0.39983723f, 0.36359978f, 0.33332598f, 0.30769098f, 0.28571406f, 0.26666668f},
      {0.0f, -0.181163f, -0.32443056f, -0.40703237f, -0.42759234f, -0.40143985f, -0.3500945f, -0.2920225f, -0.23849775f,
       -0.19406784f, -0.15906361f, -0.13200486f, -0.11106217f, -0.09466511f, -0.08163101f, -0.071110845f},
      {-0.37612435f, -0.33534983f, -0.22991388f, -0.100218505f, 0.012484497f, 0.08462945f, 0.114465065f, 0.114094615f,
       0.09858187f, 0.07911015f, 0.061447244f, 0.047415532f, 0.03688149f, 0.029098544f, 0.023317749f, 0.01896201f},
      {0.0f, 0.10402267f, 0.16592552f, 0.16860434f, 0.12563892f, 0.066491716f, 0.01652407f, -0.013385307f,
       -0.025006102f, -0.02543658f, -0.021230234f, -0.016252065f, -0.0120479865f, -0.008907178f, -0.0066601746f,
       -0.0050613238f},
      {0.112314776f, 0.08867796f, 0.032359745f, -0.024588697f, -0.056365702f, -0.057789452f, -0.04049746f, -0.01973807f,
       -0.0047147092f, 0.0027985668f, 0.005021312f, 0.0047132927f, 0.0036630442f, 0.0026509038f, 0.0018831223f,
       0.001345894f},
  };
  const vf x = nnd_at_most(nnd_splat(3.87f), nnd_at_least(nnd_splat(-3.87f), a)), size = (vf)((vi)x & 0x7fffffff);
  const vf shifted = size * 4.0f + 12582912.0f; /* as above: the number of the piece */
  const vf t = size - (shifted - 12582912.0f) * 0.25f;
  vf q = __builtin_ia32_permvarsf512(nnd_load(p[4]), (vi)shifted);
  NND_UNROLL
  for (int i = 3; i >= 0; i--) q = q * t + __builtin_ia32_permvarsf512(nnd_load(p[i]), (vi)shifted);
  return x * q;
}

#endif
