/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution and the pointwise convolution that follows it, as one operator on NCHWc.
 *
 * A window of the input (rows x columns x channels) slides over the image. Its depthwise result (the first result)
 * lives in a small buffer, the pointwise result of the buffer (the second result) goes to the output. The window is
 * chosen at compile time so that the first result fits the buffer; where not all channels fit, the pointwise sums are
 * taken in parts. The pointwise part prefetches the rows that the next window adds.
 * Windows are independent of each other: threads share them in any way.
 */
#ifndef NND_SEPARABLE_H
#define NND_SEPARABLE_H

#include "depthwise.h"
#include "pointwise.h"

struct nnd_separable {
  struct nnd_depthwise depthwise;
  struct nnd_pointwise pointwise; /* in_plane is set here */
  nnd_size channels, images;
  nnd_size window_rows, window_columns, window_channels; /* channels: all, or a multiple of NND_LANES */
  int prefetch_input;                                    /* the input does not fit the second cache */
};

struct nnd_separable_data {
  const nnd_elem *in;
  const float *depthwise_weights; /* [blocks of channels][kernel rows][kernel columns][c] */
  const float *depthwise_bias, *depthwise_numbers;
  struct nnd_pointwise_data pointwise; /* `in` is set here */
};

/* Channel blocks [begin, end) of a window, into the buffer. */
NND_INLINE void nnd_separable_first(struct nnd_separable s, nnd_size rows, nnd_size columns, nnd_size row,
                                    nnd_size column, nnd_size begin, nnd_size end, const struct nnd_separable_data *d,
                                    const nnd_elem *in, nnd_elem *buffer) {
  const nnd_size in_rows = s.depthwise.ring ? s.depthwise.ring : s.depthwise.y.size;
  const nnd_size in_plane = in_rows * s.depthwise.x.size * NND_LANES;
  const nnd_size taps = s.depthwise.y.kernel * s.depthwise.x.kernel;
  for (nnd_size block = begin; block < end; block++) {
    const float *weights = d->depthwise_weights + block * taps * NND_LANES;
    const vf bias = nnd_load(d->depthwise_bias + block * NND_LANES);
    const vf number = nnd_end_number(&s.depthwise.end, d->depthwise_numbers, block);
    for (nnd_size r = 0; r < rows; r++, buffer += columns * NND_LANES) {
      if (columns == s.depthwise.x.out_size)
        nnd_depthwise_row(s.depthwise, row + r, in + block * in_plane, weights, bias, number, buffer);
      else
        nnd_depthwise_columns(s.depthwise, row + r, column, column + columns, in + block * in_plane, weights, bias,
                              number, buffer);
    }
  }
}

NND_INLINE void nnd_separable_second(struct nnd_pointwise s, int sum, nnd_size rows, nnd_size columns,
                                     nnd_size out_columns, struct nnd_pointwise_data d, struct nnd_prefetch next) {
  s.in_plane = rows * columns * NND_LANES;
  if (columns == out_columns) {
    nnd_pointwise_row(s, sum, rows * columns, d, next);
    return;
  }
  for (nnd_size r = 0; r < rows; r++) {
    nnd_pointwise_row(s, sum, columns, d, nnd_no_prefetch);
    d.in += columns * NND_LANES;
    d.out += out_columns * NND_LANES;
    if (s.end.residual) d.residual += out_columns * NND_LANES;
  }
}

/* `in`, `d->pointwise.out` and `.residual` are those of the image; `next` is what the window after this one reads. */
NND_INLINE void nnd_separable_window(struct nnd_separable s, nnd_size rows, nnd_size columns, nnd_size row,
                                     nnd_size column, const struct nnd_separable_data *d, const nnd_elem *in,
                                     struct nnd_pointwise_data p, struct nnd_prefetch next,
                                     nnd_elem *buffer) {
  const nnd_size out_columns = s.depthwise.x.out_size;
  const nnd_size at = (row * out_columns + column) * NND_LANES;
  p.in = buffer;
  p.out += at;
  if (s.pointwise.end.residual) p.residual += at;
  struct nnd_pointwise second = s.pointwise;
  if (s.window_channels >= s.channels) {
    nnd_separable_first(s, rows, columns, row, column, 0, nnd_blocks(s.channels), d, in, buffer);
    nnd_separable_second(second, NND_WHOLE, rows, columns, out_columns, p, next);
    return;
  }
  for (nnd_size begin = 0; begin < s.channels; begin += s.window_channels) {
    const nnd_size end = nnd_min(begin + s.window_channels, s.channels);
    const int sum = (begin == 0 ? NND_FIRST : 0) | (end == s.channels ? NND_LAST : 0);
    nnd_separable_first(s, rows, columns, row, column, begin / NND_LANES, nnd_blocks(end), d, in, buffer);
    second.in_channels = end - begin;
    second.channel = begin;
    nnd_separable_second(second, sum, rows, columns, out_columns, p, nnd_no_prefetch);
  }
}

/* What the window beginning at `row` adds to the rows that its predecessor has read, spread over the tiles of the
 * pointwise part: in bursts, or in the depthwise part, fetching stalls. */
NND_INLINE struct nnd_prefetch nnd_separable_ahead(struct nnd_separable s, const nnd_elem *in, nnd_size row) {
  const struct nnd_axis y = s.depthwise.y;
  const nnd_size row_bytes = s.depthwise.x.size * NND_LANES * sizeof(nnd_elem);
  const nnd_size reach = row == 0 ? 0 : (row - 1) * y.stride - y.pad + (y.kernel - 1) * y.dilation + 1;
  const nnd_size lines = nnd_ceil_div(s.window_rows * y.stride * row_bytes, NND_LINE_BYTES);
  const nnd_size tiles = nnd_pointwise_tiles(s.pointwise, s.window_rows * s.window_columns);
  return (struct nnd_prefetch){(const char *)in + reach * row_bytes, y.size * row_bytes, 0,
                               s.prefetch_input ? (int)nnd_ceil_div(lines, tiles) : 0};
}

/* A step: windows of all images. Workers share windows; the buffer lies in a worker's scratch. */
struct nnd_separable_step {
  struct nnd_axis y, x;
  nnd_size channels, out_channels, images, window_rows, window_columns, window_channels;
  int stream, prefetch_weights, prefetch_input;
  struct nnd_end first_end, end;
};

NND_INLINE void nnd_separable_step(const struct nnd_separable_step *t, nnd_elem *out, const nnd_elem *in,
                                   const float *first_weights, const float *first_bias, const float *first_numbers,
                                   const nnd_weight *weights, const float *bias, const nnd_elem *residual,
                                   const float *numbers, struct nnd_part part) {
  const struct nnd_axis y = t->y, x = t->x;
  const struct nnd_separable s = {
      .depthwise = {y, x, t->first_end, 0},
      .pointwise = {.in_channels = t->channels, .out_channels = t->out_channels, .panel_channels = t->channels,
                    .out_plane = y.out_size * x.out_size * NND_LANES, .end = t->end, .stream = t->stream,
                    .prefetch_weights = t->prefetch_weights},
      .channels = t->channels, .images = t->images, .window_rows = t->window_rows,
      .window_columns = t->window_columns, .window_channels = t->window_channels,
      .prefetch_input = t->prefetch_input};
  const struct nnd_separable_data d = {in, first_weights, first_bias, first_numbers,
                                       {.weights = weights, .bias = bias, .numbers = numbers, .residual = residual,
                                        .out = out}};
  nnd_elem *buffer = (nnd_elem *)part.scratch;
  const nnd_size down = nnd_ceil_div(y.out_size, s.window_rows), across = nnd_ceil_div(x.out_size, s.window_columns);
  const nnd_size rest_rows = y.out_size - (down - 1) * s.window_rows;
  const nnd_size rest_columns = x.out_size - (across - 1) * s.window_columns;
  const nnd_size in_image = nnd_blocks(s.channels) * y.size * x.size * NND_LANES;
  const nnd_size out_image = nnd_blocks(s.pointwise.out_channels) * s.pointwise.out_plane;
  nnd_size first, last;
  nnd_share(s.images * down * across, part, &first, &last);
  for (nnd_size window = first; window < last; window++) {
    const nnd_size image = window / (down * across), row = window / across % down, column = window % across;
    const nnd_elem *from = in + image * in_image;
    struct nnd_pointwise_data p = d.pointwise;
    p.out += image * out_image;
    if (s.pointwise.end.residual) p.residual += image * out_image;
    const struct nnd_prefetch next = row + 1 < down ? nnd_separable_ahead(s, from, (row + 1) * s.window_rows)
                                                    : nnd_separable_ahead(s, from + in_image, 0);
    const nnd_size top = row * s.window_rows, left = column * s.window_columns;
#ifdef NND_ANY_SHAPE
    const nnd_size rows = row + 1 < down ? s.window_rows : rest_rows;
    const nnd_size columns = column + 1 < across ? s.window_columns : rest_columns;
    nnd_separable_window(s, rows, columns, top, left, &d, from, p, next, buffer);
#else
    const int whole_rows = row + 1 < down || rest_rows == s.window_rows;
    const int whole_columns = column + 1 < across || rest_columns == s.window_columns;
    if (whole_rows && whole_columns)
      nnd_separable_window(s, s.window_rows, s.window_columns, top, left, &d, from, p, next, buffer);
    else if (whole_columns)
      nnd_separable_window(s, rest_rows, s.window_columns, top, left, &d, from, p, next, buffer);
    else if (whole_rows)
      nnd_separable_window(s, s.window_rows, rest_columns, top, left, &d, from, p, next, buffer);
    else
      nnd_separable_window(s, rest_rows, rest_columns, top, left, &d, from, p, next, buffer);
#endif
  }
}

#endif
