/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of depthwise convolutions on NCHWc: each lane is a channel, so that a vector is one pixel of one channel block.
 *
 * A tile is some neighbouring pixels of one output row; the rows of the kernel are a loop whose bounds leave out what
 * lies above and below the image, its columns are compiled in for the usual kernels and strides. Tiles that touch the
 * left or the right edge leave out what lies beside it pixel by pixel. Nothing is padded or copied.
 */
#ifndef NND_DEPTHWISE_H
#define NND_DEPTHWISE_H

#include "base/step.h"

struct nnd_depthwise;

/* Output columns [begin, end) of `rows` rows from `row` on of one channel block, to rows of `pitch` pixels. `in` is the
 * block's plane, `weights` those of the block, [kernel rows][kernel columns][c]. */
typedef void (*nnd_depthwise_kernel)(const struct nnd_depthwise *s, nnd_size row, nnd_size rows, nnd_size begin,
                                     nnd_size end, const nnd_elem *in, const float *weights, const float *bias,
                                     vf number, nnd_size pitch, nnd_elem *out);

struct nnd_depthwise {
  struct nnd_axis y, x;
  struct nnd_end end; /* no residual */
  nnd_size ring;      /* rows that the input is kept in, row y at y % ring; 0: the whole input lies there */
  nnd_depthwise_kernel columns;
};

/* Returns the kernel for an axis. */
nnd_depthwise_kernel nnd_depthwise_for(const struct nnd_axis *x);

#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
#define NND_MOST_COLUMNS 14
#else
#define NND_MOST_COLUMNS 8
#endif

/* Of how many pixels the tiles of `width` columns are: all of them as many, the last overlaps the one before. */
NND_INLINE int nnd_depthwise_pixels(nnd_size width) {
  const int is_one = width <= NND_MOST_COLUMNS; /* divisions take as long as a quarter of a tile */
  const int even = is_one ? (int)width : (int)nnd_ceil_div(width, nnd_ceil_div(width, NND_MOST_COLUMNS));
  return even > 8 && even % 2 ? (even < width ? even + 1 : even - 1) : even;
}

#endif
