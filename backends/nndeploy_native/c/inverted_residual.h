/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted residual on NCHWc: pointwise (expand), depthwise, pointwise (project), as one operator.
 *
 * A window is some rows of the output, all columns. The expanded rows that it reads are kept in a ring, so that rows
 * shared with the next window are expanded once. Panel by panel of hidden channels: expand the new rows, run the
 * depthwise part over them while they are in the first cache, keep its result; then project it. Where the window is
 * the whole image nothing is shared: the ring holds one panel only, and the hidden channels may be taken in groups,
 * each adding its part to the output.
 * Threads share windows; a thread's first window fills its own ring.
 */
#ifndef NND_INVERTED_RESIDUAL_H
#define NND_INVERTED_RESIDUAL_H

#include "depthwise.h"
#include "pointwise.h"

struct nnd_inverted {
  struct nnd_pointwise expand, project; /* planes are set here */
  struct nnd_depthwise depthwise;
  nnd_size channels, images;            /* hidden channels */
  nnd_size window_rows, group_panels;   /* panels of hidden channels that one projection sums over */
  nnd_size num_panels;                  /* of hidden channels */
  int prefetch_input;                   /* the input does not fit the second cache */
};

struct nnd_inverted_data {
  struct nnd_pointwise_data expand, project; /* the output is the projection's */
  const float *depthwise_weights, *depthwise_bias, *depthwise_numbers;
};

/* Fetches what the next window adds to the input rows before `to`: share `number` of `count`, for a burst stalls. */
NND_INLINE void nnd_inverted_fetch(struct nnd_inverted s, nnd_size to, nnd_size number, nnd_size count,
                                   const nnd_elem *in) {
  const nnd_size row_bytes = s.depthwise.x.size * NND_LANES * sizeof(nnd_elem);
  const nnd_size lines = s.window_rows * s.depthwise.y.stride * row_bytes / NND_LINE_BYTES;
  const nnd_size of_share = nnd_ceil_div(lines, count);
  for (nnd_size block = 0; block < nnd_blocks(s.expand.in_channels); block++) {
    const char *from = (const char *)(in + block * s.expand.in_plane) + to * row_bytes;
    for (nnd_size line = number * of_share; line < (number + 1) * of_share; line++)
      __builtin_prefetch(from + line * NND_LINE_BYTES, 0, 2);
  }
}

/* One panel, `expand` of all channels: rows [from, to) of the input are expanded, then the depthwise part of `rows`
 * output rows from `row` on. What a tile of these reads is expanded just before it is read. */
NND_INLINE void nnd_inverted_panel(struct nnd_inverted s, int vectors, int half, nnd_size panel, nnd_size rows,
                                   nnd_size row, nnd_size from, nnd_size to, const struct nnd_inverted_data *d,
                                   nnd_elem *ring, nnd_elem *first) {
  const struct nnd_axis x = s.depthwise.x;
  const nnd_size columns = nnd_row_tiles(x, NND_DEPTHWISE_TILE).count, shares = columns * s.num_panels;
  const struct nnd_pointwise_data expand = nnd_pointwise_from(s.expand, d->expand, panel);
#ifdef NND_ANY_SHAPE
  const int whole = 0;
#else
  const int whole = s.window_rows >= s.depthwise.y.out_size && s.depthwise.ring == s.depthwise.y.size;
#endif
  const struct nnd_tiles tiles = nnd_pixel_tiles(x.size, vectors, half);
  const struct nnd_prefetch weights = nnd_next_panel(s.expand, tiles, vectors, expand.weights);
  if (whole) { /* all rows as one */
    struct nnd_pointwise_data at = expand;
    at.out = ring;
    nnd_pointwise_panel(s.expand, NND_WHOLE, s.depthwise.ring * x.size, vectors, half, at, nnd_no_prefetch);
  }
  nnd_size expanded = whole ? tiles.count : 0;
  for (nnd_size tile = 0; tile < columns; tile++) {
    const nnd_size reach = nnd_row_tile_reach(x, tile);
    for (; expanded < tiles.count && nnd_tile_begin(tiles, expanded) < reach; expanded++) {
      for (nnd_size y = from; y < to; y++) {
        struct nnd_pointwise_data at = expand;
        at.in += y * x.size * NND_LANES;
        at.out = ring + y % s.depthwise.ring * x.size * NND_LANES;
        __asm__("" : "+r"(at.bias)); /* else it is kept in registers from row to row, which sums need */
        nnd_pointwise_one(s.expand, tiles, expanded, vectors, half, at, weights);
      }
    }
    nnd_depthwise_tile_rows(s.depthwise, vectors, panel * NND_PANEL, tile, rows, row, d->depthwise_weights,
                            d->depthwise_bias, d->depthwise_numbers, s.expand.out_plane, ring, first);
    if (s.prefetch_input) nnd_inverted_fetch(s, to, panel * columns + tile, shares, d->expand.in);
  }
}

/* `d.project.out` and `.residual` are those of the image, `done` input rows are in the ring already, `first` is memory
 * for the depthwise result of one group. */
NND_INLINE void nnd_inverted_window(struct nnd_inverted s, nnd_size rows, nnd_size row, nnd_size done,
                                    struct nnd_inverted_data d, nnd_elem *ring, nnd_elem *first) {
  const struct nnd_axis y = s.depthwise.y;
  const nnd_size blocks = nnd_blocks(s.channels), full = nnd_full_panels(blocks), width = s.depthwise.x.out_size;
  const nnd_size plane = rows * width * NND_LANES;
  const nnd_size from = nnd_max(done, nnd_first_row(y, row)), to = nnd_end_row(y, row + rows);
  const int whole = s.window_rows >= y.out_size;
  struct nnd_pointwise project = s.project;
  project.in_plane = plane;
  d.project.in = first;
  d.project.out += row * width * NND_LANES;
  if (s.project.end.residual) d.project.residual += row * width * NND_LANES;
  for (nnd_size begin = 0; begin <= full; begin += s.group_panels) {
    const nnd_size end = nnd_min(full + 1, begin + s.group_panels);
    for (nnd_size panel = begin; panel < end; panel++) {
      const nnd_size block = panel * NND_PANEL;
      nnd_elem *kept = whole ? ring : ring + block * s.expand.out_plane;
      nnd_elem *result = first + (panel - begin) * NND_PANEL * plane;
      if (panel < full)
        nnd_inverted_panel(s, NND_PANEL, 0, panel, rows, row, from, to, &d, kept, result);
      else
        nnd_inverted_panel(s, nnd_last_panel(blocks), nnd_has_half(s.channels), panel, rows, row, from, to, &d, kept,
                           result);
    }
    if (s.group_panels > full) {
      nnd_pointwise_row(project, NND_WHOLE, rows * width, d.project, nnd_no_prefetch);
    } else {
      const int sum = (begin == 0 ? NND_FIRST : 0) | (end == full + 1 ? NND_LAST : 0);
      project.channel = begin * NND_PANEL * NND_LANES;
      project.in_channels = (end == full + 1 ? s.channels : end * NND_PANEL * NND_LANES) - project.channel;
      nnd_pointwise_row(project, sum, rows * width, d.project, nnd_no_prefetch);
    }
  }
}

/* A step: windows of all images. A worker's scratch holds a ring of `ring_rows` expanded rows at `ring_at`, the
 * depthwise result of one group at `first_at`. */
struct nnd_inverted_residual_step {
  struct nnd_axis y, x;
  nnd_size in_channels, channels, out_channels, images, window_rows, group_panels, ring_rows, ring_at, first_at;
  int prefetch_weights, prefetch_input;
  struct nnd_end expand_end, first_end, end;
};

NND_INLINE void nnd_inverted_residual_step(const struct nnd_inverted_residual_step *t, nnd_elem *out,
                                           const nnd_elem *in, const nnd_weight *expand_weights,
                                           const float *expand_bias, const float *expand_numbers,
                                           const float *first_weights, const float *first_bias,
                                           const float *first_numbers, const nnd_weight *weights, const float *bias,
                                           const nnd_elem *residual, const float *numbers, struct nnd_part part) {
  const struct nnd_axis y = t->y, x = t->x;
  struct nnd_inverted s = {
      .expand = {.in_channels = t->in_channels, .out_channels = t->channels, .panel_channels = t->in_channels,
                 .in_plane = y.size * x.size * NND_LANES, .end = t->expand_end,
                 .prefetch_weights = t->prefetch_weights},
      .project = {.in_channels = t->channels, .out_channels = t->out_channels, .panel_channels = t->channels,
                  .out_plane = y.out_size * x.out_size * NND_LANES, .end = t->end,
                  .prefetch_weights = t->prefetch_weights},
      .depthwise = {y, x, t->first_end, t->ring_rows},
      .channels = t->channels, .images = t->images, .window_rows = t->window_rows, .group_panels = t->group_panels,
      .num_panels = nnd_full_panels(nnd_blocks(t->channels)) + 1, .prefetch_input = t->prefetch_input};
  s.expand.out_plane = s.depthwise.ring * x.size * NND_LANES;
  const struct nnd_inverted_data d = {
      {.in = in, .weights = expand_weights, .bias = expand_bias, .numbers = expand_numbers},
      {.weights = weights, .bias = bias, .numbers = numbers, .residual = residual, .out = out},
      first_weights, first_bias, first_numbers};
  const nnd_size down = nnd_ceil_div(y.out_size, s.window_rows), rest = y.out_size - (down - 1) * s.window_rows;
  const nnd_size in_image = nnd_blocks(s.expand.in_channels) * s.expand.in_plane;
  const nnd_size out_image = nnd_blocks(s.project.out_channels) * s.project.out_plane;
  nnd_elem *ring = (nnd_elem *)(part.scratch + t->ring_at), *result = (nnd_elem *)(part.scratch + t->first_at);
  nnd_size done = 0, first, last;
  nnd_share(s.images * down, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / down, window = unit % down, row = window * s.window_rows;
    if (window == 0) done = 0;
    struct nnd_inverted_data at = d;
    at.expand.in += image * in_image;
    at.project.out += image * out_image;
    if (s.project.end.residual) at.project.residual += image * out_image;
#ifdef NND_ANY_SHAPE
    nnd_inverted_window(s, window + 1 < down ? s.window_rows : rest, row, done, at, ring, result);
#else
    if (window + 1 < down || rest == s.window_rows)
      nnd_inverted_window(s, s.window_rows, row, done, at, ring, result);
    else
      nnd_inverted_window(s, rest, row, done, at, ring, result);
#endif
    done = nnd_end_row(y, row + s.window_rows);
  }
}

#endif
