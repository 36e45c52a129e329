/* SPDX-License-Identifier: Apache-2.0
 *
 * Which elements of a tensor a view reads, whatever its offset, sizes and steps are.
 */
#ifndef NND_REACH_H
#define NND_REACH_H

#include "base/vector.h"

/* Elements from `low` to `high`. */
struct nnd_reach {
  nnd_size low, high;
};

/* Adds places from the first to the last, `step` elements apart; 0 where they are too far off to be counted. */
NND_INLINE int nnd_reaches(struct nnd_reach *reach, nnd_size first, nnd_size last, nnd_size step) {
  nnd_size a, b;
  if (__builtin_mul_overflow(first, step, &a) || __builtin_mul_overflow(last, step, &b)) return 0;
  return !__builtin_add_overflow(reach->low, nnd_min(a, b), &reach->low) &&
         !__builtin_add_overflow(reach->high, nnd_max(a, b), &reach->high);
}

/* Whether all of it lies within a tensor of `count` elements. */
NND_INLINE int nnd_reach_is_within(struct nnd_reach reach, nnd_size count) {
  return reach.low >= 0 && reach.high < count;
}

#endif
