/* SPDX-License-Identifier: Apache-2.0
 *
 * Places that come as data: whole numbers, of which any may be wrong.
 */
#ifndef NND_INDICES_H
#define NND_INDICES_H

#include "model/model.h"

/* Number `i` of a tensor of int32, or of int64. */
NND_INLINE int64_t nnd_whole_at(const void *numbers, int is_wide, nnd_size i) {
  return is_wide ? ((const int64_t *)numbers)[i] : ((const int32_t *)numbers)[i];
}

/* Place `i` of a tensor of int32, or of int64, in an axis of `size`: negative numbers count from its end. Returns -1
 * where it is out of range, which nnd_told_place_at() also tells. */
NND_INLINE nnd_size nnd_place_at(const void *numbers, int is_wide, nnd_size i, nnd_size size) {
  const int64_t number = nnd_whole_at(numbers, is_wide, i);
  const int64_t place = number + (number >> 63 & size);
  return (uint64_t)place < (uint64_t)size ? (nnd_size)place : -1;
}

NND_INLINE nnd_size nnd_told_place_at(const struct nnd_part *part, const void *numbers, int is_wide, nnd_size i,
                                      nnd_size size) {
  const nnd_size place = nnd_place_at(numbers, is_wide, i, size);
  if (__builtin_expect(place < 0, 0)) nnd_out_of_range(part, i, nnd_whole_at(numbers, is_wide, i), size);
  return place;
}

/* The number of the slice at a tuple of `depth` places along axes of these sizes, -1 where one of them is out of range,
 * which is told. */
NND_INLINE nnd_size nnd_tuple_at(const struct nnd_part *part, const void *numbers, int is_wide, nnd_size tuple,
                                 int depth, const nnd_size *sizes) {
  nnd_size number = 0;
  for (int axis = 0; axis < depth; axis++) {
    const nnd_size place = nnd_told_place_at(part, numbers, is_wide, tuple * depth + axis, sizes[axis]);
    if (place < 0) return -1;
    number = number * sizes[axis] + place;
  }
  return number;
}

/* Whether a tensor may hold places. */
NND_INLINE int nnd_has_places(const struct nnd_opener *o, int tensor) {
  const int element = o->model->tensors[tensor].element;
  return !o->message->failed && !o->model->tensors[tensor].is_blocked && (element == NND_INT32 || element == NND_INT64);
}

/* The product of a tensor's sizes from an axis on, before another. */
NND_INLINE nnd_size nnd_extent(const struct nnd_shape *shape, int axis, int end) {
  nnd_size count = 1;
  for (; axis < end; axis++) count *= shape->sizes[axis];
  return count;
}

/* Whether a * b elements, b at least 1, are `count`. */
NND_INLINE int nnd_is_product(nnd_size count, nnd_size a, nnd_size b) {
  return a ? count % a == 0 && count / a == b : count == 0;
}

/* Runs a function for elements of `width` bytes, a compile-time constant where it is usual, and for numbers of either
 * type. */
#define NND_BY_WIDTH(function, width, is_wide, ...)                                                                    \
  switch ((width) * 2 + ((is_wide) != 0)) {                                                                            \
    case 2: function(__VA_ARGS__, 1, 0); return;                                                                       \
    case 3: function(__VA_ARGS__, 1, 1); return;                                                                       \
    case 8: function(__VA_ARGS__, 4, 0); return;                                                                       \
    case 9: function(__VA_ARGS__, 4, 1); return;                                                                       \
    case 16: function(__VA_ARGS__, 8, 0); return;                                                                      \
    case 17: function(__VA_ARGS__, 8, 1); return;                                                                      \
    case 32: function(__VA_ARGS__, 16, 0); return;                                                                     \
    case 33: function(__VA_ARGS__, 16, 1); return;                                                                     \
    default: function(__VA_ARGS__, width, is_wide);                                                                    \
  }

#endif
