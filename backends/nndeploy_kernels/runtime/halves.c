/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: IEEE 754-2019, binary16.
 */
#include <math.h>

#include "runtime/inside.h"

double nnd_from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

uint16_t nnd_to_half(double number) {
  const uint16_t sign = signbit(number) ? 0x8000 : 0;
  const double size = fabs(number);
  int exponent;
  if (isnan(number)) return 0x7e00;
  if (isinf(number)) return sign | 0x7c00;
  if (size == 0) return sign;
  frexp(size, &exponent);
  const int least = exponent - 11 < -24 ? -24 : exponent - 11; /* of the last bit */
  const double bits = nearbyint(ldexp(size, -least));          /* 2048 where it rounds up to the next power */
  const int found = (least + 24) * 1024 + (int)bits;
  return (uint16_t)(sign | (found < 0x7c00 ? found : 0x7c00));
}
