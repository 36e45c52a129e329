/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense k x k convolution, from NCHW (the first of a network: no conversion before it) or NCHWc, to NCHWc.
 *
 * The micro-kernel is that of all products, pixels of one output row x vectors of output channels. Rows of the kernel
 * outside the image are left out by the bounds of a loop; where columns of it may lie outside, the rows that are read
 * are copied to where zeros stand beside them.
 */
#ifndef NND_CONVOLUTION_H
#define NND_CONVOLUTION_H

#include "kernels/tile.h"

struct nnd_convolution {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels;
  nnd_size out_plane; /* elements from one channel block to the next */
  int stream;
  struct nnd_end end;
};

struct nnd_convolution_data {
  const void *in;      /* nnd_elem of NCHWc, or floats of NCHW: of the image */
  const void *weights; /* [panel][kernel rows][kernel columns][in_channels][vectors of the panel][c] */
  const float *bias, *numbers;
  const nnd_elem *residual; /* at the row, like `out` */
  nnd_elem *out;
};

/* Elements of the weights of a panel of `vectors` for each tap. */
NND_INLINE nnd_size nnd_tap_weights(const struct nnd_convolution *s, int planar, int vectors) {
  return (planar ? s->in_channels : nnd_grouped_channels(s->in_channels)) * vectors * NND_LANES;
}

/* Columns [begin, begin + count) of rows that are copied, `pitch` pixels each, to `left`; up to `capacity` rows of each
 * channel, or channel block, one after the other. */
struct nnd_copied_rows {
  nnd_size begin, count, left, pitch, capacity;
};

#define NND_COPIED_WINDOWS                                                                                             \
  2 /* of rows that fit the copies: then those that the next window reads again move to the front */

NND_INLINE nnd_size nnd_copied_capacity(struct nnd_axis y) {
  return NND_COPIED_WINDOWS * nnd_min(y.size, (y.kernel - 1) * y.dilation + 1);
}

/* Padded columns that `columns` output columns read. */
NND_INLINE nnd_size nnd_reach(struct nnd_axis x, nnd_size columns) {
  return (columns - 1) * x.stride + (x.kernel - 1) * x.dilation + 1;
}

/* Whole rows. */
NND_INLINE struct nnd_copied_rows nnd_copied_rows(struct nnd_axis y, struct nnd_axis x) {
  return (struct nnd_copied_rows){0, x.size, x.pad, nnd_max(x.pad + x.size, nnd_reach(x, x.out_size)),
                                  nnd_copied_capacity(y)};
}

/* What the first, or the last, `edge` output columns read. */
NND_INLINE struct nnd_copied_rows nnd_copied_edge(struct nnd_axis y, struct nnd_axis x, nnd_size edge, int is_right) {
  const nnd_size pitch = nnd_reach(x, edge), begin = is_right ? (x.out_size - edge) * x.stride - x.pad : 0;
  const nnd_size left = is_right ? 0 : x.pad;
  return (struct nnd_copied_rows){begin, nnd_max(0, nnd_min(x.size - begin, pitch - left)), left, pitch,
                                  nnd_copied_capacity(y)};
}

/* Whether windows may read columns beside the image. */
NND_INLINE int nnd_reads_beside(struct nnd_axis x) { return x.pad > 0 || nnd_reach(x, x.out_size) - x.pad > x.size; }

/* What a worker's copies hold: rows [low, high) of image `image`, from the front on. */
struct nnd_copies {
  char *to;
  struct nnd_copied_rows rows;
  nnd_size image, low, high;
};

/* The bytes of copies of `planes` channels or channel blocks, a pixel of which takes `pixel_bytes`. */
NND_INLINE nnd_size nnd_copied_bytes(struct nnd_copied_rows rows, nnd_size planes, nnd_size pixel_bytes) {
  return planes * rows.capacity * rows.pitch * pixel_bytes;
}

/* Makes the copies hold rows [begin, end) of an image whose planes begin at `in`; zeros stand beside them from
 * before. */
NND_INLINE void nnd_copy_window(struct nnd_copies *c, struct nnd_axis y, struct nnd_axis x, nnd_size planes,
                                nnd_size pixel_bytes, nnd_size image, nnd_size begin, nnd_size end, const void *in) {
  const struct nnd_copied_rows rows = c->rows;
  const nnd_size of_row = rows.pitch * pixel_bytes, of_plane = rows.capacity * of_row;
  if (c->image != image || begin < c->low || begin > c->high) c->image = image, c->low = c->high = begin;
  if (end - c->low > rows.capacity) {
    for (nnd_size plane = 0; plane < planes; plane++)
      memmove(c->to + plane * of_plane, c->to + plane * of_plane + (begin - c->low) * of_row,
              (size_t)((c->high - begin) * of_row));
    c->low = begin;
  }
  for (nnd_size plane = 0; plane < planes; plane++)
    for (nnd_size row = c->high; row < end; row++)
      memcpy(c->to + plane * of_plane + (row - c->low) * of_row + rows.left * pixel_bytes,
             (const char *)in + ((plane * y.size + row) * x.size + rows.begin) * pixel_bytes,
             (size_t)(rows.count * pixel_bytes));
  c->high = nnd_max(c->high, end);
}

/* What the rows of a panel have in common. */
struct nnd_panel_job {
  struct nnd_tile_job job;
  nnd_size panel; /* -1: none */
  const nnd_weight *weights;
  int way, vectors, half;
};

NND_INLINE int nnd_convolution_way(struct nnd_axis x) {
  return x.stride == 1 ? NND_NEXT : x.stride == 2 ? NND_SECOND : NND_ANYWHERE;
}

NND_INLINE struct nnd_panel_job nnd_convolution_job(const struct nnd_convolution *s, nnd_size panel,
                                                    const struct nnd_convolution_data *d) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const nnd_size of_tap = nnd_tap_weights(s, 0, vectors), taps = s->y.kernel * s->x.kernel;
  const struct nnd_tile_job job = {.channels = s->in_channels,
                                   .columns = s->x.kernel,
                                   .column_step = s->x.dilation * NND_LANES,
                                   .row_weights = s->x.kernel * of_tap,
                                   .tap_weights = of_tap,
                                   .bias = d->bias + block * NND_LANES,
                                   .numbers = s->end.number ? d->numbers + block * NND_LANES : 0,
                                   .out_plane = s->out_plane,
                                   .end = &s->end,
                                   .sum = NND_WHOLE,
                                   .stream = s->stream,
                                   .pixel_step = s->x.stride};
  const nnd_weight *weights =
      (const nnd_weight *)d->weights + block * NND_LANES * taps * nnd_grouped_channels(s->in_channels);
  return (struct nnd_panel_job){
      job, panel, weights, nnd_convolution_way(s->x), vectors, panel == full && nnd_has_half(s->out_channels)};
}

/* Puts a job at output column `column` of row `row`, whose input is read from copies, or where there are none as it
 * is. */
NND_INLINE void nnd_place_job(const struct nnd_convolution *s, struct nnd_panel_job *p, nnd_size row, nnd_size column,
                              const struct nnd_copies *copies, const struct nnd_convolution_data *d) {
  const nnd_size top = row * s->y.stride - s->y.pad, begin = nnd_tap_begin(s->y, top), end = nnd_tap_end(s->y, top);
  const nnd_size first = top + begin * s->y.dilation, pitch = copies ? copies->rows.pitch : s->x.size;
  const nnd_size x = column * s->x.stride - s->x.pad + (copies ? copies->rows.left - copies->rows.begin : 0);
  const nnd_size at = p->panel * NND_PANEL * s->out_plane + column * NND_LANES;
  const nnd_elem *in = copies ? (const nnd_elem *)copies->to : d->in;
  p->job.rows = nnd_max(0, end - begin);
  p->job.weights = p->weights + begin * p->job.row_weights;
  p->job.in_plane = (copies ? copies->rows.capacity : s->y.size) * pitch * NND_LANES;
  p->job.row_step = s->y.dilation * pitch * NND_LANES;
  p->job.in = in + ((first - (copies ? copies->low : 0)) * pitch + x) * NND_LANES;
  p->job.out = d->out + at;
  p->job.residual = s->end.residual ? d->residual + at : NULL;
}

/* Output row `row`, columns [from, to) of it; `copies`: null where `d->in` is read as it is. */
NND_INLINE void nnd_convolution_row(const struct nnd_convolution *s, struct nnd_panel_job *p, nnd_size row,
                                    nnd_size from, nnd_size to, const struct nnd_copies *copies,
                                    const struct nnd_convolution_data *d) {
  const int half = p->half && (p->vectors > 1 || to - from >= NND_FEW_FOR_HALVES);
  nnd_place_job(s, p, row, from, copies, d);
  nnd_run_cut(nnd_cut_of(p->way, p->vectors, half, to - from, 0), p->way, p->vectors, half, &p->job);
}

/* The tiles of a long row: `large` of `each` + 1 pixels, then those of `each`, the last of which may overlap. */
NND_INLINE struct nnd_cut nnd_long_cut(const struct nnd_convolution *s, int vectors, int half) {
  const int way = nnd_convolution_way(s->x);
  struct nnd_cut cut = nnd_cut_of(way, vectors, half, s->x.out_size, 0);
  if (cut.large >= 0) return cut;
  cut.each = nnd_even_tile(way, vectors, half, s->x.out_size);
  return (struct nnd_cut){s->x.out_size, nnd_ceil_div(s->x.out_size, cut.each), 0, cut.each, 0};
}

#define NND_LONG_ROW 4 /* tiles */

/* The output columns for which a long row reads copies at either end; 0 where the row is short, or tiles between would
 * read beside the image. */
NND_INLINE nnd_size nnd_edge_of(const struct nnd_convolution *s) {
  const nnd_size blocks = nnd_blocks(s->out_channels), behind = nnd_reach(s->x, s->x.out_size) - s->x.pad - s->x.size;
  nnd_size edge = 0;
  for (int last = nnd_full_panels(blocks) == 0; last < 2; last++) {
    const struct nnd_cut cut =
        nnd_long_cut(s, last ? nnd_last_panel(blocks) : NND_PANEL, last && nnd_has_half(s->out_channels));
    if (cut.count < NND_LONG_ROW || cut.each * s->x.stride < nnd_max(s->x.pad, behind)) return 0;
    edge = nnd_max(edge, cut.each + (cut.large > 0));
  }
  return edge;
}

/* A whole long row: its first and its last tile from copies, those between from the image. */
NND_INLINE void nnd_long_row(const struct nnd_convolution *s, struct nnd_panel_job *p, nnd_size row,
                             const struct nnd_copies *left, const struct nnd_copies *right,
                             const struct nnd_convolution_data *d) {
  const struct nnd_cut cut = nnd_long_cut(s, p->vectors, p->half);
  const nnd_tile_kernel *kernels = nnd_tiles[p->way][p->vectors - 1][p->half];
  const int first = cut.each + (cut.large > 0), last = cut.each + (cut.large == cut.count);
  const nnd_size large = nnd_max(0, cut.large - 1 - (cut.large == cut.count)), small = cut.count - 2 - large;
  nnd_place_job(s, p, row, 0, left, d);
  nnd_run_tiles(kernels, p->way, 1, first, &p->job);
  nnd_place_job(s, p, row, first, NULL, d);
  nnd_run_tiles(kernels, p->way, large, cut.each + 1, &p->job);
  nnd_run_tiles(kernels, p->way, small, cut.each, &p->job);
  nnd_place_job(s, p, row, s->x.out_size - last, right, d);
  nnd_run_tiles(kernels, p->way, 1, last, &p->job);
}

/* Fills where each channel of each tap of copied planes lies: [kernel row][kernel column][channel]. */
NND_INLINE void nnd_planar_offsets(const struct nnd_convolution *s, nnd_size *offsets) {
  const struct nnd_copied_rows copied = nnd_copied_rows(s->y, s->x);
  for (nnd_size ky = 0; ky < s->y.kernel; ky++)
    for (nnd_size kx = 0; kx < s->x.kernel; kx++)
      for (nnd_size i = 0; i < s->in_channels; i++)
        *offsets++ = (i * copied.capacity + ky * s->y.dilation) * copied.pitch + kx * s->x.dilation;
}

/* Panel `panel` of output row `row` from copied rows of planes. */
NND_INLINE void nnd_planar_row(const struct nnd_convolution *s, const nnd_size *offsets, nnd_size panel, nnd_size row,
                               const struct nnd_copies *copies, struct nnd_convolution_data d) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const nnd_size top = row * s->y.stride - s->y.pad, begin = nnd_tap_begin(s->y, top), end = nnd_tap_end(s->y, top);
  const struct nnd_copied_rows copied = copies->rows;
  const nnd_size of_tap = nnd_tap_weights(s, 1, vectors), taps = s->y.kernel * s->x.kernel;
  const int way = s->x.stride == 1 ? NND_PLANES : s->x.stride == 2 ? NND_PLANES_2 : NND_PLANES_ANY;
  struct nnd_tile_job job = {
      .channels = s->in_channels,
      .rows = nnd_max(0, end - begin),
      .columns = s->x.kernel,
      .offsets = offsets,
      .weights = (const float *)d.weights + block * NND_LANES * taps * s->in_channels + begin * s->x.kernel * of_tap,
      .bias = d.bias + block * NND_LANES,
      .numbers = s->end.number ? d.numbers + block * NND_LANES : 0,
      .out_plane = s->out_plane,
      .end = &s->end,
      .sum = NND_WHOLE,
      .stream = s->stream,
      .pixel_step = s->x.stride};
  const float *in = (const float *)copies->to + (top + begin * s->y.dilation - copies->low) * copied.pitch;
  job.in = in;
  job.out = d.out + block * s->out_plane;
  job.residual = s->end.residual ? d.residual + block * s->out_plane : NULL;
  nnd_run_cut(nnd_cut_of(way, vectors, 0, s->x.out_size, 0), way, vectors, 0, &job);
}

#endif
