/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions with groups of more than one channel, and transposed ones, on NCHWc.
 *
 * Workers share output rows of all channel blocks of all images.
 */
#ifndef NND_GROUPED_H
#define NND_GROUPED_H

#include "pointwise.h"

struct nnd_grouped_step {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images, groups;
  struct nnd_end end;
};

/* The place of channel `channel` of pixel 0 of an image in NCHWc. */
NND_INLINE nnd_size nnd_place(nnd_size image, nnd_size channel, nnd_size channels, nnd_size pixels) {
  return (image * nnd_blocks(channels) + channel / NND_LANES) * pixels * NND_LANES + channel % NND_LANES;
}

/* Weights: [O][kernel rows][kernel columns][in_channels / groups] of O padded to whole blocks. */
NND_INLINE void nnd_grouped_step(const struct nnd_grouped_step *t, nnd_elem *out, const nnd_elem *in,
                                 const float *weights, const float *bias, const nnd_elem *residual,
                                 const float *numbers, struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->out_channels), pixels = t->y.size * t->x.size;
  const nnd_size group_in = t->in_channels / t->groups, group_out = t->out_channels / t->groups;
  nnd_size begin, finish;
  nnd_share(t->images * blocks * t->y.out_size, part, &begin, &finish);
  for (nnd_size unit = begin; unit < finish; unit++) {
    const nnd_size plane = unit / t->y.out_size, y = unit % t->y.out_size, image = plane / blocks;
    const nnd_size block = plane % blocks;
    for (nnd_size x = 0; x < t->x.out_size; x++) {
      vf sum = nnd_load(bias + block * NND_LANES);
      for (nnd_size lane = 0; lane < NND_LANES; lane++) {
        const nnd_size o = block * NND_LANES + lane;
        if (o >= t->out_channels) break;
        const nnd_size first = o / group_out * group_in;
        for (nnd_size ky = 0; ky < t->y.kernel; ky++)
          for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
            const nnd_size row = y * t->y.stride - t->y.pad + ky * t->y.dilation;
            const nnd_size column = x * t->x.stride - t->x.pad + kx * t->x.dilation;
            if (row < 0 || row >= t->y.size || column < 0 || column >= t->x.size) continue;
            const float *w = weights + ((o * t->y.kernel + ky) * t->x.kernel + kx) * group_in;
            for (nnd_size c = 0; c < group_in; c++)
              sum[lane] += w[c] * nnd_to_float(in[nnd_place(image, first + c, t->in_channels, pixels) +
                                                  (row * t->x.size + column) * NND_LANES]);
          }
      }
      const nnd_size at = (unit * t->x.out_size + x) * NND_LANES;
      nnd_write(out + at, nnd_end_sum(&t->end, sum, residual + at, nnd_end_number(&t->end, numbers, block)));
    }
  }
}

/* Transposed: each output pixel gathers the input pixels whose windows cover it. `y` and `x` are axes of the output's
 * window: size of the input, out_size of the output. Weights: [blocks of O][kernel rows][kernel columns][I][c]. */
NND_INLINE void nnd_transposed_step(const struct nnd_grouped_step *t, nnd_elem *out, const nnd_elem *in,
                                    const float *weights, const float *bias, const nnd_elem *residual,
                                    const float *numbers, struct nnd_part part) {
  const nnd_size blocks = nnd_blocks(t->out_channels), pixels = t->y.size * t->x.size;
  nnd_size begin, finish;
  nnd_share(t->images * blocks * t->y.out_size, part, &begin, &finish);
  for (nnd_size unit = begin; unit < finish; unit++) {
    const nnd_size plane = unit / t->y.out_size, y = unit % t->y.out_size, image = plane / blocks;
    const nnd_size block = plane % blocks;
    for (nnd_size x = 0; x < t->x.out_size; x++) {
      vf sum = nnd_load(bias + block * NND_LANES);
      for (nnd_size ky = 0; ky < t->y.kernel; ky++)
        for (nnd_size kx = 0; kx < t->x.kernel; kx++) {
          const nnd_size down = y + t->y.pad - ky * t->y.dilation, right = x + t->x.pad - kx * t->x.dilation;
          if (down < 0 || right < 0 || down % t->y.stride || right % t->x.stride) continue;
          const nnd_size row = down / t->y.stride, column = right / t->x.stride;
          if (row >= t->y.size || column >= t->x.size) continue;
          const float *w = weights + ((block * t->y.kernel + ky) * t->x.kernel + kx) * t->in_channels * NND_LANES;
          for (nnd_size c = 0; c < t->in_channels; c++)
            sum += nnd_to_float(in[nnd_place(image, c, t->in_channels, pixels) +
                                   (row * t->x.size + column) * NND_LANES]) * nnd_load(w + c * NND_LANES);
        }
      const nnd_size at = (unit * t->x.out_size + x) * NND_LANES;
      nnd_write(out + at, nnd_end_sum(&t->end, sum, residual + at, nnd_end_number(&t->end, numbers, block)));
    }
  }
}

#endif
