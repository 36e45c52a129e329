/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of a batch that lie anywhere in a tensor, by steps along each axis.
 */
#ifndef NND_BATCHES_H
#define NND_BATCHES_H

#include "model/model.h"

#define NND_MOST_BATCH_AXES (NND_MOST_RANK - 2)

NND_INLINE int nnd_is_plain_floats(const struct nnd_opener *o, int tensor) {
  const struct nnd_tensor *one = &o->model->tensors[tensor];
  return !one->is_blocked && one->element == NND_FLOAT32;
}

/* Adds to `last`, the place of the last element, what one more axis adds to it; 0 where that is not below `count`. */
NND_INLINE int nnd_reach(nnd_size *last, nnd_size size, nnd_size step, nnd_size least, nnd_size count) {
  nnd_size more;
  if (size < 1 || step < 0 || (size > 1 && step < least) || __builtin_mul_overflow(size - 1, step, &more)) return 0;
  return !__builtin_add_overflow(*last, more, last) && *last >= 0 && *last < count;
}

/* One axis of what is written. */
struct nnd_written_axis {
  nnd_size size, step;
};

/* Whether axes, and `columns` side by side, reach each of `count` elements once. The axes are changed. */
NND_INLINE int nnd_fills(struct nnd_written_axis *axes, int num_axes, nnd_size columns, nnd_size count) {
  nnd_size filled = columns;
  while (num_axes) { /* what goes on where the axes before end is next */
    int next = 0;
    for (; next < num_axes; next++) {
      const nnd_size size = axes[next].size;
      if (size > 1 && axes[next].step != filled) continue;
      if (size > count / filled) return 0;
      filled *= size;
      break;
    }
    if (next == num_axes) return 0;
    axes[next] = axes[--num_axes];
  }
  return filled == count;
}

#endif
