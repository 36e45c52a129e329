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

/* Sums or maxima that are kept apart where the window is wide: an addition waits for the one before. */
#define NND_POOL_SUMS 4

/* The vectors that a window adds to or compares with `found`: `count` of a row, `apart` pixels from one to the next.
 * `unordered` is set where one is no number: the comparison alone would lose it. */
NND_INLINE void nnd_pool_row(int is_max, nnd_size count, nnd_size apart, const nnd_elem *row, vf *found,
                             vi *unordered) {
  for (nnd_size i = 0; i < count; i++) {
    const vf value = nnd_read(row + i * apart * NND_LANES);
    vf *to = found + (count > NND_POOL_SUMS ? i % NND_POOL_SUMS : 0);
    *to = is_max ? nnd_at_least(value, *to) : *to + value;
    if (is_max) *unordered |= value != value;
  }
}

/* How many taps of a window at `at` count for a mean. */
NND_INLINE nnd_size nnd_pool_taps(struct nnd_axis axis, nnd_size at, int counts_padding, nnd_size pad_after) {
  if (!counts_padding) return nnd_tap_end(axis, at) - nnd_tap_begin(axis, at);
  return nnd_min(axis.kernel, nnd_ceil_div(axis.size + pad_after - at, axis.dilation));
}

/* One output pixel; without `edge` its window lies between the left and the right edge. */
NND_INLINE vf nnd_pool_pixel(const struct nnd_pool_step *t, int is_max, int edge, nnd_size top, nnd_size left,
                             const nnd_elem *plane) {
  const nnd_size begin = edge ? nnd_tap_begin(t->x, left) : 0, end = edge ? nnd_tap_end(t->x, left) : t->x.kernel;
  const nnd_size last = nnd_tap_end(t->y, top);
  vf found[NND_POOL_SUMS];
  vi unordered = {0};
  NND_UNROLL for (int i = 0; i < NND_POOL_SUMS; i++) found[i] = nnd_splat(is_max ? -__builtin_inff() : 0.0f);
  for (nnd_size ky = nnd_tap_begin(t->y, top); ky < last; ky++) {
    const nnd_size at = (top + ky * t->y.dilation) * t->x.size + left + begin * t->x.dilation;
    nnd_pool_row(is_max, end - begin, t->x.dilation, plane + at * NND_LANES, found, &unordered);
  }
  if (is_max) {
    const vf most = nnd_at_least(nnd_at_least(found[0], found[1]), nnd_at_least(found[2], found[3]));
    return nnd_select(unordered, nnd_splat(__builtin_nanf("")), most);
  }
  const nnd_size count = nnd_pool_taps(t->y, top, t->counts_padding, t->pad_bottom) *
                         nnd_pool_taps(t->x, left, t->counts_padding, t->pad_right);
  return ((found[0] + found[1]) + (found[2] + found[3])) / nnd_splat((float)count);
}

NND_INLINE void nnd_pool_any(const struct nnd_pool_step *t, int is_max, nnd_elem *out, const nnd_elem *in,
                             struct nnd_part part) {
  /* output columns whose windows lie inside */
  const nnd_size reach = (t->x.kernel - 1) * t->x.dilation, begin = nnd_ceil_div(t->x.pad, t->x.stride);
  const nnd_size end = nnd_min(t->x.out_size, (t->x.size - 1 - reach + t->x.pad + t->x.stride) / t->x.stride);
  nnd_size unit, finish;
  nnd_share(t->images * nnd_blocks(t->channels) * t->y.out_size, part, &unit, &finish);
  for (; unit < finish; unit++) {
    const nnd_elem *plane = in + unit / t->y.out_size * t->y.size * t->x.size * NND_LANES;
    const nnd_size top = unit % t->y.out_size * t->y.stride - t->y.pad;
    nnd_elem *row = out + unit * t->x.out_size * NND_LANES;
    for (nnd_size x = 0; x < t->x.out_size; x++) {
      const nnd_size left = x * t->x.stride - t->x.pad;
      const int edge = x < begin || x >= end;
      nnd_write(row + x * NND_LANES, edge ? nnd_pool_pixel(t, is_max, 1, top, left, plane)
                                          : nnd_pool_pixel(t, is_max, 0, top, left, plane));
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
