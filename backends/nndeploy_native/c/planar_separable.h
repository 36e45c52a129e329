/* SPDX-License-Identifier: Apache-2.0
 *
 * The separable pair with NCHW before it, behind it or both: the layout is changed window by window.
 *
 * What a window reads is kept as NCHWc in a ring of rows, so that rows that windows share are changed once; what it
 * writes is changed while it lies in the cache. Windows are whole rows of all channels.
 */
#ifndef NND_PLANAR_SEPARABLE_H
#define NND_PLANAR_SEPARABLE_H

#include "layout.h"
#include "separable.h"

/* A worker's scratch: the first result, the ring where `planar_in`, the second result where `planar_out`. */
struct nnd_planar_separable_step {
  struct nnd_axis y, x;
  nnd_size channels, out_channels, images, window_rows;
  int planar_in, planar_out, stream, prefetch_weights, prefetch_input;
  struct nnd_end first_end, end; /* no residual */
};

struct nnd_planar_data {
  const void *in; /* floats where `planar_in`, else nnd_elem */
  void *out;
  struct nnd_separable_data pair;
};

NND_INLINE nnd_size nnd_planar_ring_rows(const struct nnd_planar_separable_step *t) {
  return nnd_min(t->y.size, (t->window_rows - 1) * t->y.stride + (t->y.kernel - 1) * t->y.dilation + 1);
}

/* Rows [from, to) of an image into the ring. */
NND_INLINE void nnd_planar_rows(const struct nnd_planar_separable_step *t, nnd_size image, nnd_size from, nnd_size to,
                                const float *in, nnd_elem *ring) {
  const nnd_size plane = t->y.size * t->x.size, rows = nnd_planar_ring_rows(t);
  for (nnd_size block = 0; block < nnd_blocks(t->channels); block++) {
    const nnd_size channel = block * NND_LANES, held = nnd_min(NND_LANES, t->channels - channel);
    const nnd_size at_once = rows == t->y.size ? to - from : 1;
    for (nnd_size y = from; y < to; y += at_once)
      nnd_blocked_run(held, at_once * t->x.size, plane, in + (image * t->channels + channel) * plane + y * t->x.size,
                      ring + (block * rows + y % rows) * t->x.size * NND_LANES);
  }
}

/* `rows` output rows from `row` on. `next`: the input row at which the next window goes on. */
NND_INLINE void nnd_planar_window(const struct nnd_planar_separable_step *t, nnd_size rows, nnd_size row,
                                  nnd_size image, nnd_size next, struct nnd_planar_data d, nnd_elem *buffer,
                                  nnd_elem *ring, nnd_elem *second) {
  const nnd_size width = t->x.out_size, out_pixels = t->y.out_size * width, in_pixels = t->y.size * t->x.size;
  struct nnd_separable s = {
      .depthwise = {t->y, t->x, t->first_end, t->planar_in ? nnd_planar_ring_rows(t) : 0},
      .pointwise = {.in_channels = t->channels, .out_channels = t->out_channels, .panel_channels = t->channels,
                    .out_plane = (t->planar_out ? rows * width : out_pixels) * NND_LANES, .end = t->end,
                    .stream = t->stream && !t->planar_out, .prefetch_weights = t->prefetch_weights},
      .channels = t->channels};
  const nnd_size in_image = nnd_blocks(t->channels) * in_pixels * NND_LANES;
  const nnd_size out_image = nnd_blocks(t->out_channels) * out_pixels * NND_LANES;
  const nnd_elem *from = t->planar_in ? ring : (const nnd_elem *)d.in + image * in_image;
  nnd_separable_first(s, rows, width, row, 0, 0, nnd_blocks(t->channels), &d.pair, from, buffer);
  struct nnd_pointwise_data p = d.pair.pointwise;
  p.in = buffer;
  p.out = t->planar_out ? second : (nnd_elem *)d.out + image * out_image + row * width * NND_LANES;
  struct nnd_prefetch ahead = nnd_no_prefetch;
  if (t->prefetch_input && t->planar_in) {
    const nnd_size lines = nnd_ceil_div(t->window_rows * t->y.stride * t->x.size * 4, NND_LINE_BYTES);
    const nnd_size tiles = nnd_pointwise_tiles(s.pointwise, rows * width);
    const float *in = (const float *)d.in + image * t->channels * in_pixels + next * t->x.size;
    ahead = (struct nnd_prefetch){(const char *)in, NND_LANES * in_pixels * 4, in_pixels * 4,
                                  (int)nnd_ceil_div(lines, tiles)};
  }
  nnd_separable_second(s.pointwise, NND_WHOLE, rows, width, width, p, ahead);
  for (nnd_size block = 0; t->planar_out && block < nnd_blocks(t->out_channels); block++) {
    const nnd_size channel = block * NND_LANES, held = nnd_min(NND_LANES, t->out_channels - channel);
    nnd_plain_run(held, rows * width, out_pixels, t->stream, second + channel * rows * width,
                  (float *)d.out + (image * t->out_channels + channel) * out_pixels + row * width);
  }
}

NND_INLINE void nnd_planar_separable_step(const struct nnd_planar_separable_step *t, void *out, const void *in,
                                          const float *first_weights, const float *first_bias,
                                          const float *first_numbers, const nnd_weight *weights, const float *bias,
                                          const float *numbers, struct nnd_part part) {
  const struct nnd_axis y = t->y;
  const struct nnd_planar_data d = {
      in, out, {0, first_weights, first_bias, first_numbers, {.weights = weights, .bias = bias, .numbers = numbers}}};
  const nnd_size blocks = nnd_blocks(t->channels), vectors = t->window_rows * t->x.out_size;
  nnd_elem *buffer = (nnd_elem *)part.scratch, *ring = buffer + blocks * vectors * NND_LANES;
  nnd_elem *second = ring + t->planar_in * blocks * nnd_planar_ring_rows(t) * t->x.size * NND_LANES;
  const nnd_size down = nnd_ceil_div(y.out_size, t->window_rows), rest = y.out_size - (down - 1) * t->window_rows;
  nnd_size done = 0, first, last;
  nnd_share(t->images * down, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window_rows;
    const nnd_size rows = unit % down + 1 < down ? t->window_rows : rest;
    const nnd_size end = (row + rows - 1) * y.stride - y.pad + (y.kernel - 1) * y.dilation + 1;
    const nnd_size from = nnd_max(row == 0 ? 0 : done, nnd_max(0, row * y.stride - y.pad));
    done = nnd_min(y.size, nnd_max(0, end));
    if (t->planar_in) nnd_planar_rows(t, image, from, done, (const float *)in, ring);
    if (rows == t->window_rows)
      nnd_planar_window(t, t->window_rows, row, image, done, d, buffer, ring, second);
    else
      nnd_planar_window(t, rest, row, image, done, d, buffer, ring, second);
  }
}

#endif
