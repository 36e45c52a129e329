/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of any rank, broadcast, at any strides -> places of at most three axes that a row unit walks.
 */
#ifndef NND_UNITS_PLACES_H
#define NND_UNITS_PLACES_H

#include "../vector.h"

#define NND_PLACES 17 /* the output and 16 operands */
#define NND_PLACE_RANK 8

enum nnd_placing {
  NND_PLACED = 0,
  NND_NOT_BROADCAST = 1,
  NND_TOO_MANY_AXES = 2,
  NND_OVERLAPS = 3,
  NND_MISALIGNED = 4,
  NND_NO_MEMORY = 5,
  NND_OUT_IS_STRIDED = 6,
  NND_NOT_FLOATS = 7,
  NND_READ_ONLY = 8
};

struct nnd_place {
  float *data;
  nnd_size stride[3]; /* floats; 0 is broadcast */
};

/* at[0] is the output. */
struct nnd_places {
  nnd_size size[3];
  int count, in_place;
  struct nnd_place at[NND_PLACES];
};

/* Binds an axis: `stride` floats from one element to the next, beginning with element `offset`. */
NND_INLINE void nnd_bind_axis(struct nnd_place *to, int axis, nnd_size stride, nnd_size offset) {
  to->stride[axis] = stride;
  to->data += offset * stride;
}

/* The lowest byte of a place, and the one behind the highest. */
NND_INLINE void nnd_extent(const struct nnd_places *all, const struct nnd_place *one, uintptr_t *low, uintptr_t *high) {
  nnd_size below = 0, above = 1;
  for (int axis = 0; axis < 3; axis++) {
    const nnd_size reach = one->stride[axis] * (all->size[axis] - 1);
    below += nnd_min(reach, 0);
    above += nnd_max(reach, 0);
  }
  *low = (uintptr_t)(one->data + below);
  *high = (uintptr_t)(one->data + above);
}

/* An operand is the output itself, or apart from it. */
static int nnd_find_overlaps(struct nnd_places *all) {
  uintptr_t low, high, begin, end;
  nnd_extent(all, &all->at[0], &low, &high);
  all->in_place = 0;
  for (int i = 1; i < all->count; i++) {
    nnd_extent(all, &all->at[i], &begin, &end);
    if (end <= low || high <= begin) continue;
    if (memcmp(&all->at[i], &all->at[0], sizeof(struct nnd_place))) return NND_OVERLAPS;
    all->in_place = 1;
  }
  return NND_PLACED;
}

/* Reads `count` tensors of {address, rank, sizes, strides in bytes}, the output first; tensor `base` has the whole
 * shape. Axes that every tensor walks as one become one, but the last where `keep_last`. */
static int nnd_read_places(const int64_t *from, int count, int base, int keep_last, struct nnd_places *to) {
  const int64_t *tensor[NND_PLACES];
  for (int i = 0; i < count; i++, from += 2 + 2 * from[1]) tensor[i] = from;
  const int rank = (int)tensor[base][1];
  const int64_t *size = tensor[base] + 2;
  nnd_size merged[3] = {1, 1, 1}, stride[NND_PLACES][3];
  memset(stride, 0, sizeof stride);
  int axes = 0;
  to->count = count;
  for (int axis = rank - 1; axis >= 0; axis--) {
    const int is_last = axis == rank - 1;
    nnd_size step[NND_PLACES];
    int as_one = axes > 0 && !(keep_last && axes == 1);
    for (int i = 0; i < count; i++) {
      const int mine = axis - rank + (int)tensor[i][1];
      const nnd_size length = mine < 0 ? 1 : tensor[i][2 + mine];
      if (length != 1 && length != size[axis]) return NND_NOT_BROADCAST;
      const nnd_size bytes = length == 1 ? 0 : tensor[i][2 + tensor[i][1] + mine];
      if (bytes % (nnd_size)sizeof(float)) return NND_MISALIGNED;
      step[i] = bytes / (nnd_size)sizeof(float);
      if (axes && step[i] != stride[i][axes - 1] * merged[axes - 1]) as_one = 0;
    }
    if (size[axis] == 1 && !(keep_last && is_last)) continue;
    if (as_one) {
      merged[axes - 1] *= size[axis];
      continue;
    }
    if (axes == 3) return NND_TOO_MANY_AXES;
    merged[axes] = size[axis];
    for (int i = 0; i < count; i++) stride[i][axes] = step[i];
    axes++;
  }
  for (int axis = 0; axis < 3; axis++) to->size[axis] = merged[2 - axis];
  for (int i = 0; i < count; i++) {
    to->at[i].data = (float *)(intptr_t)tensor[i][0];
    if (tensor[i][0] % (nnd_size)sizeof(float)) return NND_MISALIGNED;
    for (int axis = 0; axis < 3; axis++) to->at[i].stride[axis] = stride[i][2 - axis];
  }
  for (int axis = 0; axis < 3; axis++)
    if (to->size[axis] == 0) return NND_PLACED;
  if (axes && merged[0] > 1 && stride[0][0] != (base == 0 || tensor[0][1 + tensor[0][1]] > 1)) return NND_OUT_IS_STRIDED;
  return nnd_find_overlaps(to);
}

#endif
