/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution and the pointwise convolution that follows it, as one operator on NCHWc.
 *
 * A window of the input (rows x columns x channels) slides over the image. Its depthwise result (the first result)
 * lives in a small buffer, the pointwise result of the buffer (the second result) goes to the output. Where not all
 * channels fit the buffer, the pointwise sums are taken in parts. The pointwise part prefetches the rows that the next
 * window adds. Windows are independent of each other: threads share them in any way.
 */
#ifndef NND_SEPARABLE_H
#define NND_SEPARABLE_H

#include "kernels/depthwise.h"
#include "kernels/pointwise.h"

struct nnd_separable {
  struct nnd_depthwise depthwise;
  struct nnd_pointwise pointwise; /* in_plane is set here */
  nnd_size channels;
  nnd_size window_rows, window_columns, window_channels; /* whole rows, or columns of one; channels: all, or a multiple
                                                            of NND_LANES */
  nnd_size piece;                                        /* pixels of the pointwise part */
};

struct nnd_separable_data {
  const float *depthwise_weights; /* [blocks of channels][kernel rows][kernel columns][c] */
  const float *depthwise_bias, *depthwise_numbers;
  struct nnd_pointwise_data pointwise; /* `in` is set here */
};

/* Channel blocks [begin, end) of a window, into the buffer. */
NND_INLINE void nnd_separable_first(const struct nnd_depthwise *s, nnd_size rows, nnd_size columns, nnd_size row,
                                    nnd_size column, nnd_size begin, nnd_size end, const struct nnd_separable_data *d,
                                    const nnd_elem *in, nnd_elem *buffer) {
  const nnd_size in_plane = (s->ring ? s->ring : s->y.size) * s->x.size * NND_LANES;
  const nnd_size taps = s->y.kernel * s->x.kernel;
  for (nnd_size block = begin; block < end; block++) {
    const vf number = nnd_end_number(&s->end, d->depthwise_numbers, block);
    s->columns(s, row, rows, column, column + columns, in + block * in_plane,
               d->depthwise_weights + block * taps * NND_LANES, d->depthwise_bias + block * NND_LANES, number, columns,
               buffer);
    buffer += rows * columns * NND_LANES;
  }
}

/* The pointwise part of `pixels` pixels in a row, `piece` of them at a time where it has several panels: each reads all
 * of them again. */
NND_INLINE void nnd_separable_second(struct nnd_pointwise *s, int sum, nnd_size pixels, nnd_size piece,
                                     struct nnd_pointwise_data d, struct nnd_prefetch next) {
  s->in_plane = pixels * NND_LANES;
  const int is_whole = pixels <= piece || nnd_full_panels(nnd_blocks(s->out_channels)) == 0;
  const nnd_size each = is_whole ? pixels : nnd_ceil_div(pixels, nnd_ceil_div(pixels, piece));
  for (nnd_size from = 0; from < pixels; from += each)
    nnd_pointwise_row(s, sum, nnd_min(each, pixels - from), nnd_pointwise_at(s, d, from),
                      is_whole ? next : nnd_no_prefetch);
}

/* `in`, `p.out` and `p.residual` are those of the image; `next` is what the window after this one reads. */
NND_INLINE void nnd_separable_window(const struct nnd_separable *s, nnd_size rows, nnd_size columns, nnd_size row,
                                     nnd_size column, const struct nnd_separable_data *d, const nnd_elem *in,
                                     struct nnd_pointwise_data p, struct nnd_prefetch next, nnd_elem *buffer) {
  const nnd_size out_columns = s->depthwise.x.out_size, at = (row * out_columns + column) * NND_LANES;
  struct nnd_pointwise second = s->pointwise;
  p.in = buffer;
  p.out += at;
  if (second.end.residual) p.residual += at;
  for (nnd_size begin = 0; begin < s->channels; begin += s->window_channels) {
    const nnd_size end = nnd_min(begin + s->window_channels, s->channels);
    const int sum = (begin == 0 ? NND_FIRST : 0) | (end == s->channels ? NND_LAST : 0);
    nnd_separable_first(&s->depthwise, rows, columns, row, column, begin / NND_LANES, nnd_blocks(end), d, in, buffer);
    second.in_channels = end - begin;
    second.channel = begin;
    nnd_separable_second(&second, sum, rows * columns, s->piece, p, sum == NND_WHOLE ? next : nnd_no_prefetch);
  }
}

/* What the window beginning at `row` adds to the rows that its predecessor has read, spread over the tiles of the
 * pointwise part: in bursts, or in the depthwise part, fetching stalls. */
NND_INLINE struct nnd_prefetch nnd_separable_ahead(const struct nnd_separable *s, const nnd_elem *in, nnd_size row) {
  const struct nnd_axis y = s->depthwise.y;
  const nnd_size row_bytes = s->depthwise.x.size * NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size reach = row == 0 ? 0 : nnd_end_row(y, row);
  const nnd_size lines = nnd_ceil_div(s->window_rows * y.stride * row_bytes, NND_LINE_BYTES);
  const nnd_size tiles = nnd_pointwise_tiles(&s->pointwise, s->window_rows * s->window_columns);
  return (struct nnd_prefetch){(const char *)in + reach * row_bytes, y.size * row_bytes, 0,
                               (int)nnd_ceil_div(lines, tiles)};
}

#endif
