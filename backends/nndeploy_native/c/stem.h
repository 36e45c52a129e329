/* SPDX-License-Identifier: Apache-2.0
 *
 * What light networks begin with, as one operator: a dense convolution from NCHW, then a separable pair.
 *
 * The rows that the convolution makes are kept as NCHWc in a ring, so that those that windows share are made once; the
 * widest tensor of the network is never written. Windows are whole rows of all channels.
 */
#ifndef NND_STEM_H
#define NND_STEM_H

#include "convolution.h"
#include "separable.h"

/* `wide_y`, `wide_x` and `wide_end` are the convolution's, `channels` what it makes. A worker's scratch: a ring of
 * `ring_rows` rows at `ring_at`, the first result at `first_at`. Workers share windows. */
struct nnd_stem_step {
  struct nnd_axis wide_y, wide_x, y, x;
  nnd_size in_channels, channels, out_channels, images, window_rows, ring_rows, ring_at, first_at;
  int stream, prefetch_weights;
  struct nnd_end wide_end, first_end, end;
};

/* Row `y` of the convolution of image `image`, into the ring. */
NND_INLINE void nnd_stem_row(const struct nnd_stem_step *t, nnd_size image, nnd_size y, const float *in,
                             const float *weights, const float *bias, const float *numbers, nnd_elem *ring) {
  const nnd_size rows = t->ring_rows;
  const nnd_size blocks = nnd_blocks(t->channels), full = nnd_full_panels(blocks);
  const struct nnd_convolution_step wide = {.y = t->wide_y, .x = t->wide_x, .in_channels = t->in_channels,
                                            .out_channels = t->channels, .out_plane = rows * t->x.size * NND_LANES,
                                            .end = t->wide_end};
  const nnd_size taps = t->wide_y.kernel * t->wide_x.kernel * t->in_channels;
  for (nnd_size panel = 0; panel <= full; panel++) {
    const nnd_size block = panel * NND_PANEL;
    const struct nnd_convolution_data d = {
        .in = in + image * t->in_channels * t->wide_y.size * t->wide_x.size,
        .weights = weights + block * NND_LANES * taps, .bias = bias + block * NND_LANES,
        .numbers = t->wide_end.number ? numbers + block * NND_LANES : 0,
        .out = ring + block * wide.out_plane + y % rows * t->x.size * NND_LANES};
    const nnd_size top = y * t->wide_y.stride - t->wide_y.pad;
    if (panel < full) nnd_convolution_row(&wide, 1, NND_PANEL, 0, top, d);
    else nnd_convolution_row(&wide, 1, nnd_last_panel(blocks), 0, top, d);
  }
}

NND_INLINE void nnd_stem_step(const struct nnd_stem_step *t, nnd_elem *out, const float *in, const float *wide_weights,
                              const float *wide_bias, const float *wide_numbers, const float *first_weights,
                              const float *first_bias, const float *first_numbers, const nnd_weight *weights,
                              const float *bias, const nnd_elem *residual, const float *numbers,
                              struct nnd_part part) {
  const struct nnd_axis y = t->y;
  const nnd_size width = t->x.out_size, out_plane = y.out_size * width * NND_LANES;
  const struct nnd_separable s = {
      .depthwise = {y, t->x, t->first_end, t->ring_rows},
      .pointwise = {.in_channels = t->channels, .out_channels = t->out_channels, .panel_channels = t->channels,
                    .out_plane = out_plane, .end = t->end, .stream = t->stream,
                    .prefetch_weights = t->prefetch_weights},
      .channels = t->channels};
  const struct nnd_separable_data pair = {
      0, first_weights, first_bias, first_numbers,
      {.weights = weights, .bias = bias, .numbers = numbers, .residual = residual, .out = out}};
  nnd_elem *ring = (nnd_elem *)(part.scratch + t->ring_at), *buffer = (nnd_elem *)(part.scratch + t->first_at);
  const nnd_size down = nnd_ceil_div(y.out_size, t->window_rows), rest = y.out_size - (down - 1) * t->window_rows;
  nnd_size done = 0, unit, last;
  nnd_share(t->images * down, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window_rows;
    const nnd_size rows = unit % down + 1 < down ? t->window_rows : rest;
    const nnd_size from = nnd_max(row == 0 ? 0 : done, nnd_first_row(y, row));
    const nnd_size at = image * nnd_blocks(t->out_channels) * out_plane + row * width * NND_LANES;
    struct nnd_pointwise_data p = pair.pointwise;
    p.in = buffer;
    p.out += at;
    if (t->end.residual) p.residual += at;
    done = nnd_end_row(y, row + rows);
    for (nnd_size line = from; line < done; line++)
      nnd_stem_row(t, image, line, in, wide_weights, wide_bias, wide_numbers, ring);
    if (rows == t->window_rows) {
      nnd_separable_first(s, t->window_rows, width, row, 0, 0, nnd_blocks(t->channels), &pair, ring, buffer);
      nnd_separable_second(s.pointwise, NND_WHOLE, t->window_rows, width, width, p, nnd_no_prefetch);
    } else {
      nnd_separable_first(s, rest, width, row, 0, 0, nnd_blocks(t->channels), &pair, ring, buffer);
      nnd_separable_second(s.pointwise, NND_WHOLE, rest, width, width, p, nnd_no_prefetch);
    }
  }
}

#endif
