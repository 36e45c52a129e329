/* SPDX-License-Identifier: Apache-2.0
 *
 * The first lanes of a vector, loaded and stored by masks.
 */
#ifndef NND_MASKED_H
#define NND_MASKED_H

#include "base/vector.h"

typedef _Bool nnd_lane_mask __attribute__((ext_vector_type(NND_LANES)));
typedef float nnd_ext_vf __attribute__((ext_vector_type(NND_LANES)));

NND_INLINE nnd_lane_mask nnd_first_lanes(nnd_size count) {
  vi lane;
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i++) lane[i] = i;
  return __builtin_convertvector(lane < (int32_t)count, nnd_lane_mask);
}

/* Lanes from `count` on hold zeros; nothing there is read. */
NND_INLINE vf nnd_load_first(const float *from, nnd_size count) {
  return (vf)__builtin_masked_load(nnd_first_lanes(count), from, (nnd_ext_vf)nnd_splat(0.0f));
}

NND_INLINE void nnd_store_first(float *to, vf value, nnd_size count) {
  if (count >= NND_LANES)
    nnd_store_any(to, value);
  else
    __builtin_masked_store(nnd_first_lanes(count), (nnd_ext_vf)value, to);
}

#endif
