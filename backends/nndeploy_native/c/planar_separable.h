/* SPDX-License-Identifier: Apache-2.0
 *
 * The separable pair with NCHW before it, behind it or both, window by window.
 *
 * NCHW before it is never made NCHWc: the depthwise part works on planes, and the pointwise part takes its pixels from
 * planes as it takes them from blocks. NCHW behind it: what a window writes is changed while it lies in the cache.
 * Windows are whole rows of all channels.
 */
#ifndef NND_PLANAR_SEPARABLE_H
#define NND_PLANAR_SEPARABLE_H

#include "layout.h"
#include "planar_depthwise.h"
#include "separable.h"

/* A worker's scratch: where `planar_in` the rows that a window reads of 2 * NND_GROUP channels at `rows_at`,
 * `group_floats` for each NND_GROUP of them, which lie as planar_depthwise.h says; the first result at `first_at`; where `planar_out` the second
 * one at `second_at`. */
struct nnd_planar_separable_step {
  struct nnd_axis y, x;
  nnd_size channels, out_channels, images, window_rows, row_left, row_phase, group_floats;
  nnd_size rows_at, first_at, second_at;
  int planar_in, planar_out, stream, prefetch_weights, prefetch_input;
  struct nnd_end first_end, end; /* no residual */
};

struct nnd_planar_data {
  const void *in; /* floats where `planar_in`, else nnd_elem */
  void *out;
  struct nnd_separable_data pair;
  float *rows;
  nnd_elem *buffer, *second;
};

/* The first result of `rows` output rows from `row` on, in the buffer. */
NND_INLINE void nnd_planar_first(const struct nnd_planar_separable_step *t, nnd_size rows, nnd_size row,
                                 nnd_size image, const struct nnd_planar_data *d) {
  if (t->planar_in) {
    const struct nnd_planar_depthwise s = {
        t->y, {t->x, t->row_left, t->row_phase}, t->first_end, t->channels, t->group_floats};
    const nnd_size of_image = t->channels * t->y.size * t->x.size;
    const float *in = (const float *)d->in + image * of_image, *behind = (const float *)d->in + t->images * of_image;
    nnd_planar_depthwise(s, rows, row, in, behind, d->pair.depthwise_weights, d->pair.depthwise_bias,
                         d->pair.depthwise_numbers, d->rows, d->buffer);
  } else {
    const struct nnd_separable s = {.depthwise = {t->y, t->x, t->first_end, 0}, .channels = t->channels};
    const nnd_size in_image = nnd_blocks(t->channels) * t->y.size * t->x.size * NND_LANES;
    nnd_separable_first(s, rows, t->x.out_size, row, 0, 0, nnd_blocks(t->channels), &d->pair,
                        (const nnd_elem *)d->in + image * in_image, d->buffer);
  }
}

/* `rows` output rows from `row` on. */
NND_INLINE void nnd_planar_window(const struct nnd_planar_separable_step *t, nnd_size rows, nnd_size row,
                                  nnd_size image, const struct nnd_planar_data *d) {
  const nnd_size width = t->x.out_size, out_pixels = t->y.out_size * width, in_pixels = t->y.size * t->x.size;
  const struct nnd_pointwise s = {
      .in_channels = t->channels, .out_channels = t->out_channels, .panel_channels = t->channels,
      .out_plane = (t->planar_out ? rows * width : out_pixels) * NND_LANES, .end = t->end,
      .stream = t->stream && !t->planar_out, .prefetch_weights = t->prefetch_weights, .planar_in = t->planar_in};
  nnd_planar_first(t, rows, row, image, d);
  struct nnd_pointwise_data p = d->pair.pointwise;
  p.in = d->buffer;
  const nnd_size out_image = nnd_blocks(t->out_channels) * out_pixels * NND_LANES;
  p.out = t->planar_out ? d->second : (nnd_elem *)d->out + image * out_image + row * width * NND_LANES;
  struct nnd_prefetch ahead = nnd_no_prefetch;
  if (t->prefetch_input && t->planar_in) {
    const nnd_size lines = nnd_ceil_div(t->window_rows * t->y.stride * t->x.size * 4, NND_LINE_BYTES);
    const nnd_size tiles = nnd_pointwise_tiles(s, rows * width), next = nnd_end_row(t->y, row + rows);
    const float *in = (const float *)d->in + image * t->channels * in_pixels + next * t->x.size;
    ahead = (struct nnd_prefetch){(const char *)in, NND_LANES * in_pixels * 4, in_pixels * 4,
                                  (int)nnd_ceil_div(lines, tiles)};
  }
  nnd_separable_second(s, NND_WHOLE, rows, width, width, p, ahead);
  for (nnd_size block = 0; t->planar_out && block < nnd_blocks(t->out_channels); block++) {
    const nnd_size channel = block * NND_LANES, held = nnd_min(NND_LANES, t->out_channels - channel);
    nnd_plain_run(held, rows * width, out_pixels, t->stream, d->second + channel * rows * width,
                  (float *)d->out + (image * t->out_channels + channel) * out_pixels + row * width);
  }
}

NND_INLINE void nnd_planar_separable_step(const struct nnd_planar_separable_step *t, void *out, const void *in,
                                          const float *first_weights, const float *first_bias,
                                          const float *first_numbers, const nnd_weight *weights, const float *bias,
                                          const float *numbers, struct nnd_part part) {
  float *rows = (float *)(part.scratch + t->rows_at);
  const struct nnd_planar_data d = {
      in, out, {0, first_weights, first_bias, first_numbers, {.weights = weights, .bias = bias, .numbers = numbers}},
      rows, (nnd_elem *)(part.scratch + t->first_at), (nnd_elem *)(part.scratch + t->second_at)};
  memset(rows, 0, 2 * t->group_floats * sizeof *rows);
  const nnd_size down = nnd_ceil_div(t->y.out_size, t->window_rows);
  const nnd_size rest = t->y.out_size - (down - 1) * t->window_rows;
  nnd_size first, last;
  nnd_share(t->images * down, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window_rows;
    if (unit % down + 1 < down || rest == t->window_rows) nnd_planar_window(t, t->window_rows, row, image, &d);
    else nnd_planar_window(t, rest, row, image, &d);
  }
}

#endif
