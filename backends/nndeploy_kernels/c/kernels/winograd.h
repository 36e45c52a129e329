/* SPDX-License-Identifier: Apache-2.0
 *
 * 3 x 3 convolution of stride 1 on NCHWc by Winograd's F(4 x 4, 3 x 3): 4 x 4 pixels of the output by 36 products of a
 * channel pair instead of 144.
 *
 *   out = A^T [ sum over channels of (G g G^T) * (B^T d B) ] A      d: 6 x 6 pixels of the input, g: the kernel
 *
 * Tiles are taken some at a time: their transformed inputs and products stay in the second cache, and the products are
 * 36 pointwise convolutions over the tiles. The points of the interpolation are 0, +-1/sqrt(2), +-sqrt(2) and infinity:
 * the error is then about that of the direct sum, a fifth of that of the usual 0, +-1, +-2. Source: Lavin and Gray,
 * "Fast Algorithms for Convolutional Neural Networks", 2015; Barabasz et al., "Error Analysis and Improving the Accuracy
 * of Winograd Convolution for Deep Neural Networks", 2020.
 */
#ifndef NND_WINOGRAD_H
#define NND_WINOGRAD_H

#include "kernels/pointwise.h"

#define NND_WINOGRAD_TILE 4 /* pixels of the output, each way */
#define NND_WINOGRAD_SIDE 6 /* of the input */
#define NND_WINOGRAD_PRODUCTS 36
#define NND_ROOT_HALF 0.70710678118654752f
#define NND_ROOT_TWO 1.41421356237309505f

struct nnd_winograd {
  nnd_size rows, columns, out_rows, out_columns; /* of an image and of what is made of it */
  nnd_size top, left;                            /* zeros before it */
  nnd_size tiles_down, tiles_across;             /* of an image */
  nnd_size in_channels, out_channels;
  nnd_size at_once; /* tiles */
  struct nnd_end end;
};

struct nnd_winograd_data {
  const nnd_elem *in;
  const nnd_weight *weights; /* [product][panels of a pointwise convolution] */
  const float *bias, *zeros, *numbers;
  const nnd_elem *residual;
  nnd_elem *out;
};

/* Bytes of scratch: transformed inputs and products of the tiles that are taken at once. */
NND_INLINE nnd_size nnd_winograd_tile_bytes(nnd_size in_channels, nnd_size out_channels) {
  return NND_WINOGRAD_PRODUCTS * (nnd_blocks(in_channels) + nnd_blocks(out_channels)) * NND_LANES *
         (nnd_size)sizeof(nnd_elem);
}

/* B^T of six vectors. */
NND_INLINE void nnd_winograd_in(const vf *d, vf *to, int step) {
  const vf even_near = d[4] - 2.0f * d[2], odd_near = NND_ROOT_HALF * (d[3] - 2.0f * d[1]);
  const vf even_far = d[4] - 0.5f * d[2], odd_far = NND_ROOT_TWO * (d[3] - 0.5f * d[1]);
  to[0] = d[0] - 2.5f * d[2] + d[4];
  to[step] = even_near + odd_near;
  to[2 * step] = even_near - odd_near;
  to[3 * step] = even_far + odd_far;
  to[4 * step] = even_far - odd_far;
  to[5 * step] = d[1] - 2.5f * d[3] + d[5];
}

/* A^T of six vectors. */
NND_INLINE void nnd_winograd_out(const vf *m, vf *to, int step) {
  const vf near = m[1] + m[2], near_odd = NND_ROOT_HALF * (m[1] - m[2]);
  const vf far = m[3] + m[4], far_odd = NND_ROOT_TWO * (m[3] - m[4]);
  to[0] = m[0] + near + far;
  to[step] = near_odd + far_odd;
  to[2 * step] = 0.5f * near + 2.0f * far;
  to[3 * step] = 0.5f * near_odd + 2.0f * far_odd + m[5];
}

/* G of three numbers; what divides them is the product of a point's differences from the others. */
NND_INLINE void nnd_winograd_weights(const double *g, int from_step, double *to, int step) {
  static const double root_half = 0.70710678118654752440, root_two = 1.41421356237309504880;
  const double g0 = g[0], g1 = g[from_step], g2 = g[2 * from_step];
  const double near = -2.0 / 3.0, far = 1.0 / 6.0; /* 1 / (2 a^2 (a^2 - b^2)) of a = 1/sqrt(2), b = sqrt(2), and back */
  to[0] = g0;                                      /* a^2 b^2 is one */
  to[step] = near * (g0 + root_half * g1 + 0.5 * g2);
  to[2 * step] = near * (g0 - root_half * g1 + 0.5 * g2);
  to[3 * step] = far * (g0 + root_two * g1 + 2.0 * g2);
  to[4 * step] = far * (g0 - root_two * g1 + 2.0 * g2);
  to[5 * step] = g2;
}

/* Transforms the 6 x 6 pixels from (y, x) on, which may lie outside, of one channel block; product k goes to
 * to[k * apart]. */
NND_INLINE void nnd_winograd_take(const struct nnd_winograd *s, const nnd_elem *plane, nnd_size y, nnd_size x,
                                  nnd_elem *to, nnd_size apart) {
  vf half[NND_WINOGRAD_PRODUCTS];
  const int is_inside = y >= 0 && x >= 0 && y + NND_WINOGRAD_SIDE <= s->rows && x + NND_WINOGRAD_SIDE <= s->columns;
  for (int column = 0; column < NND_WINOGRAD_SIDE; column++) {
    vf d[NND_WINOGRAD_SIDE];
    const nnd_elem *from = plane + (y * s->columns + x + column) * NND_LANES;
    if (is_inside) {
      NND_UNROLL
      for (int row = 0; row < NND_WINOGRAD_SIDE; row++) d[row] = nnd_read(from + row * s->columns * NND_LANES);
    } else {
      const int is_column = x + column >= 0 && x + column < s->columns;
      for (int row = 0; row < NND_WINOGRAD_SIDE; row++)
        d[row] = is_column && y + row >= 0 && y + row < s->rows ? nnd_read(from + row * s->columns * NND_LANES)
                                                                : nnd_splat(0.0f);
    }
    nnd_winograd_in(d, half + column, NND_WINOGRAD_SIDE);
  }
  for (int row = 0; row < NND_WINOGRAD_SIDE; row++) {
    vf v[NND_WINOGRAD_SIDE];
    nnd_winograd_in(half + row * NND_WINOGRAD_SIDE, v, 1);
    NND_UNROLL
    for (int k = 0; k < NND_WINOGRAD_SIDE; k++) nnd_write(to + (row * NND_WINOGRAD_SIDE + k) * apart, v[k]);
  }
}

/* Makes the 4 x 4 pixels from (y, x) on of one channel block, as many as there are, of the products at m[k * apart]. */
NND_INLINE void nnd_winograd_give(const struct nnd_winograd *s, const nnd_elem *m, nnd_size apart, vf bias, vf number,
                                  nnd_size y, nnd_size x, const nnd_elem *residual, nnd_elem *plane) {
  enum { TILE = NND_WINOGRAD_TILE, SIDE = NND_WINOGRAD_SIDE };
  vf half[TILE * SIDE];
  for (int column = 0; column < SIDE; column++) {
    vf v[SIDE];
    NND_UNROLL
    for (int row = 0; row < SIDE; row++) v[row] = nnd_read(m + (row * SIDE + column) * apart);
    nnd_winograd_out(v, half + column, SIDE);
  }
  const nnd_size rows = nnd_min(TILE, s->out_rows - y), columns = nnd_min(TILE, s->out_columns - x);
  for (nnd_size row = 0; row < rows; row++) {
    const nnd_size at = ((y + row) * s->out_columns + x) * NND_LANES;
    vf sums[TILE];
    nnd_winograd_out(half + row * SIDE, sums, 1);
    NND_UNROLL
    for (int i = 0; i < TILE; i++) sums[i] += bias;
    nnd_elem kept[TILE * NND_LANES] __attribute__((aligned(64)));
    const nnd_elem *added = residual ? residual + at : NULL;
    if (columns < TILE && added) {
      memset(kept, 0, sizeof kept);
      memcpy(kept, added, (size_t)(columns * NND_LANES) * sizeof *kept);
      added = kept;
    }
    nnd_end_sums(&s->end, sums, TILE, added, number);
    if (columns == TILE) {
      NND_UNROLL
      for (int i = 0; i < TILE; i++) nnd_write(plane + at + i * NND_LANES, sums[i]);
    } else
      for (nnd_size i = 0; i < columns; i++) nnd_write(plane + at + i * NND_LANES, sums[i]);
  }
}

/* Makes tiles [first, last) of all images, at most `at_once`. */
NND_INLINE void nnd_winograd_tiles(const struct nnd_winograd *s, const struct nnd_winograd_data *d, nnd_size first,
                                   nnd_size last, char *scratch) {
  const nnd_size in_blocks = nnd_blocks(s->in_channels), out_blocks = nnd_blocks(s->out_channels);
  const nnd_size plane = s->at_once * NND_LANES, of_image = s->tiles_down * s->tiles_across;
  const nnd_size in_plane = s->rows * s->columns * NND_LANES, out_plane = s->out_rows * s->out_columns * NND_LANES;
  nnd_elem *taken = (nnd_elem *)scratch, *made = taken + NND_WINOGRAD_PRODUCTS * in_blocks * plane;
  for (nnd_size tile = first; tile < last; tile++) {
    const nnd_size image = tile / of_image, place = tile % of_image;
    const nnd_size y = place / s->tiles_across * NND_WINOGRAD_TILE - s->top,
                   x = place % s->tiles_across * NND_WINOGRAD_TILE - s->left;
    for (nnd_size block = 0; block < in_blocks; block++)
      nnd_winograd_take(s, d->in + (image * in_blocks + block) * in_plane, y, x,
                        taken + block * plane + (tile - first) * NND_LANES, in_blocks * plane);
  }
  const struct nnd_pointwise product = {.in_channels = s->in_channels,
                                        .out_channels = s->out_channels,
                                        .panel_channels = s->in_channels,
                                        .in_plane = plane,
                                        .out_plane = plane,
                                        .prefetch_weights = 1};
  const nnd_size of_product = out_blocks * NND_LANES * nnd_grouped_channels(s->in_channels);
  for (nnd_size k = 0; k < NND_WINOGRAD_PRODUCTS; k++) {
    const struct nnd_pointwise_data of_tiles = {.in = taken + k * in_blocks * plane,
                                                .weights = d->weights + k * of_product,
                                                .bias = d->zeros,
                                                .numbers = d->zeros,
                                                .out = made + k * out_blocks * plane};
    nnd_pointwise_row(&product, NND_WHOLE, last - first, of_tiles, nnd_no_prefetch);
  }
  for (nnd_size tile = first; tile < last; tile++) {
    const nnd_size image = tile / of_image, place = tile % of_image;
    const nnd_size y = place / s->tiles_across * NND_WINOGRAD_TILE, x = place % s->tiles_across * NND_WINOGRAD_TILE;
    for (nnd_size block = 0; block < out_blocks; block++) {
      const nnd_size at = (image * out_blocks + block) * out_plane;
      nnd_winograd_give(s, made + block * plane + (tile - first) * NND_LANES, out_blocks * plane,
                        nnd_load(d->bias + block * NND_LANES), nnd_end_number(&s->end, d->numbers, block), y, x,
                        s->end.residual ? d->residual + at : NULL, d->out + at);
    }
  }
}

#endif
