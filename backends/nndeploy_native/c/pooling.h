/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of NCHWc: the largest or the mean of a window. Workers share output rows of all channel blocks and images.
 */
#ifndef NND_POOLING_H
#define NND_POOLING_H

#include "step.h"

struct nnd_pool_step {
  struct nnd_axis y, x;
  nnd_size channels, images;
  nnd_size pad_bottom, pad_right; /* how far a window that counts its padding may reach */
  int counts_padding;
};

NND_INLINE void nnd_pool_any(const struct nnd_pool_step *t, int is_max, nnd_elem *out, const nnd_elem *in,
                             struct nnd_part part) {
  nnd_size begin, finish;
  nnd_share(t->images * nnd_blocks(t->channels) * t->y.out_size, part, &begin, &finish);
  for (nnd_size unit = begin; unit < finish; unit++) {
    const nnd_elem *plane = in + unit / t->y.out_size * t->y.size * t->x.size * NND_LANES;
    const nnd_size top = unit % t->y.out_size * t->y.stride - t->y.pad;
    for (nnd_size x = 0; x < t->x.out_size; x++) {
      const nnd_size left = x * t->x.stride - t->x.pad;
      vf found = nnd_splat(is_max ? -__builtin_inff() : 0.0f);
      nnd_size count = 0;
      for (nnd_size ky = 0; ky < t->y.kernel; ky++)
        for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
          const nnd_size row = top + ky * t->y.dilation, column = left + kx * t->x.dilation;
          if (row < t->y.size + t->pad_bottom && column < t->x.size + t->pad_right) count += t->counts_padding;
          if (row < 0 || row >= t->y.size || column < 0 || column >= t->x.size) continue;
          const vf value = nnd_read(plane + (row * t->x.size + column) * NND_LANES);
          found = is_max ? nnd_op_max(value, found) : found + value;
          count += !t->counts_padding;
        }
      if (!is_max) found = found / nnd_splat((float)count);
      nnd_write(out + (unit * t->x.out_size + x) * NND_LANES, found);
    }
  }
}

NND_INLINE void nnd_pool_max_step(const struct nnd_pool_step *t, nnd_elem *out, const nnd_elem *in,
                                  struct nnd_part part) {
  nnd_pool_any(t, 1, out, in, part);
}
NND_INLINE void nnd_pool_mean_step(const struct nnd_pool_step *t, nnd_elem *out, const nnd_elem *in,
                                   struct nnd_part part) {
  nnd_pool_any(t, 0, out, in, part);
}

#endif
