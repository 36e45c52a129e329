/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats as whole numbers in the same order: comparing these takes a cycle, where floats take six and more. Both zeros
 * are one number, and all NaN are the largest.
 */
#ifndef NND_KERNELS_ORDERED_H
#define NND_KERNELS_ORDERED_H

#include "base/vector.h"

#define NND_ORDERED_NAN INT32_MAX

NND_INLINE int32_t nnd_ordered(float x) {
  const float canonical = x + 0.0f;
  int32_t bits;
  memcpy(&bits, &canonical, sizeof bits);
  return x != x ? NND_ORDERED_NAN : bits < 0 ? bits ^ INT32_MAX : bits;
}

NND_INLINE int64_t nnd_ordered_double(double x) {
  const double canonical = x + 0.0;
  int64_t bits;
  memcpy(&bits, &canonical, sizeof bits);
  return x != x ? INT64_MAX : bits < 0 ? bits ^ INT64_MAX : bits;
}

#endif
