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

/* Rows that are copied: `pitch` pixels each, the image begins at `left`; up to `capacity` of each channel, or channel
 * block, one after the other. */
struct nnd_copied_rows {
  nnd_size left, pitch, capacity;
};

#define NND_COPIED_WINDOWS 2 /* of rows that fit the copies: then those that the next window reads again move to the front */

NND_INLINE struct nnd_copied_rows nnd_copied_rows(struct nnd_axis y, struct nnd_axis x) {
  const nnd_size reach = (x.out_size - 1) * x.stride + (x.kernel - 1) * x.dilation + 1; /* of padded columns */
  const nnd_size span = nnd_min(y.size, (y.kernel - 1) * y.dilation + 1);
  return (struct nnd_copied_rows){x.pad, nnd_max(x.pad + x.size, reach), NND_COPIED_WINDOWS * span};
}

/* Whether windows may read columns beside the image. */
NND_INLINE int nnd_reads_beside(struct nnd_axis x) {
  return x.pad > 0 || (x.out_size - 1) * x.stride - x.pad + (x.kernel - 1) * x.dilation >= x.size;
}

/* What a worker's copies hold: rows [low, high) of image `image`, from the front on. */
struct nnd_copies {
  char *to;
  nnd_size image, low, high;
};

/* The bytes of copies of `planes` channels or channel blocks, a pixel of which takes `pixel_bytes`. */
NND_INLINE nnd_size nnd_copied_bytes(const struct nnd_axis *y, const struct nnd_axis *x, nnd_size planes,
                                     nnd_size pixel_bytes) {
  const struct nnd_copied_rows copied = nnd_copied_rows(*y, *x);
  return planes * copied.capacity * copied.pitch * pixel_bytes;
}

/* Makes the copies hold rows [begin, end) of an image whose planes begin at `in`; zeros stand beside them from before. */
NND_INLINE void nnd_copy_window(struct nnd_copies *c, struct nnd_axis y, struct nnd_axis x, nnd_size planes,
                                nnd_size pixel_bytes, nnd_size image, nnd_size begin, nnd_size end, const void *in) {
  const struct nnd_copied_rows copied = nnd_copied_rows(y, x);
  const nnd_size of_row = copied.pitch * pixel_bytes, of_plane = copied.capacity * of_row;
  if (c->image != image || begin < c->low || begin > c->high) c->image = image, c->low = c->high = begin;
  if (end - c->low > copied.capacity) {
    for (nnd_size plane = 0; plane < planes; plane++)
      memmove(c->to + plane * of_plane, c->to + plane * of_plane + (begin - c->low) * of_row,
              (size_t)((c->high - begin) * of_row));
    c->low = begin;
  }
  for (nnd_size plane = 0; plane < planes; plane++)
    for (nnd_size row = c->high; row < end; row++)
      memcpy(c->to + plane * of_plane + (row - c->low) * of_row + copied.left * pixel_bytes,
             (const char *)in + (plane * y.size + row) * x.size * pixel_bytes, (size_t)(x.size * pixel_bytes));
  c->high = nnd_max(c->high, end);
}

/* What the rows of a panel have in common. */
struct nnd_panel_job {
  struct nnd_tile_job job;
  nnd_size panel, in_row; /* which panel, -1: none; elements from row to row of the input */
  int way, vectors, half;
};

/* `is_copied`: the input is read from copies. */
NND_INLINE struct nnd_panel_job nnd_convolution_job(const struct nnd_convolution *s, nnd_size panel, int is_copied,
                                                    const struct nnd_convolution_data *d) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const struct nnd_copied_rows copied = nnd_copied_rows(s->y, s->x);
  const nnd_size in_row = (is_copied ? copied.pitch : s->x.size) * NND_LANES, of_tap = nnd_tap_weights(s, 0, vectors);
  const nnd_size taps = s->y.kernel * s->x.kernel;
  const struct nnd_tile_job job = {
      .in_plane = (is_copied ? copied.capacity : s->y.size) * in_row, .channels = s->in_channels,
      .columns = s->x.kernel, .row_step = s->y.dilation * in_row, .column_step = s->x.dilation * NND_LANES,
      .weights = (const nnd_weight *)d->weights + block * NND_LANES * taps * nnd_grouped_channels(s->in_channels),
      .row_weights = s->x.kernel * of_tap, .tap_weights = of_tap, .bias = d->bias + block * NND_LANES,
      .numbers = s->end.number ? d->numbers + block * NND_LANES : 0, .out_plane = s->out_plane, .end = &s->end,
      .sum = NND_WHOLE, .stream = s->stream, .pixel_step = s->x.stride};
  return (struct nnd_panel_job){job, panel, in_row, s->x.stride == 1 ? NND_NEXT : s->x.stride == 2 ? NND_SECOND : NND_ANYWHERE,
                                vectors, panel == full && nnd_has_half(s->out_channels)};
}

/* Output row `row`, columns [from, to) of it; `copies`: null where `d->in` is read as it is. */
NND_INLINE void nnd_convolution_row(const struct nnd_convolution *s, const struct nnd_panel_job *p, nnd_size row,
                                    nnd_size from, nnd_size to, const struct nnd_copies *copies,
                                    const struct nnd_convolution_data *d) {
  const nnd_size top = row * s->y.stride - s->y.pad, begin = nnd_tap_begin(s->y, top), end = nnd_tap_end(s->y, top);
  const nnd_size first = top + begin * s->y.dilation;
  const nnd_size at = p->panel * NND_PANEL * s->out_plane + from * NND_LANES;
  const int half = p->half && (p->vectors > 1 || to - from >= NND_FEW_FOR_HALVES);
  const nnd_elem *in = copies ? (const nnd_elem *)copies->to + (first - copies->low) * p->in_row
                              : (const nnd_elem *)d->in + first * p->in_row;
  struct nnd_tile_job job = p->job;
  job.rows = nnd_max(0, end - begin);
  job.weights = (const nnd_weight *)job.weights + begin * job.row_weights;
  job.in = in + from * s->x.stride * NND_LANES;
  job.out = d->out + at;
  job.residual = s->end.residual ? d->residual + at : NULL;
  nnd_run_cut(nnd_cut_of(p->way, p->vectors, half, to - from, 0), p->way, p->vectors, half, &job);
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
  const struct nnd_copied_rows copied = nnd_copied_rows(s->y, s->x);
  const nnd_size of_tap = nnd_tap_weights(s, 1, vectors), taps = s->y.kernel * s->x.kernel;
  const int way = s->x.stride == 1 ? NND_PLANES : s->x.stride == 2 ? NND_PLANES_2 : NND_PLANES_ANY;
  struct nnd_tile_job job = {
      .channels = s->in_channels, .rows = nnd_max(0, end - begin), .columns = s->x.kernel, .offsets = offsets,
      .weights = (const float *)d.weights + block * NND_LANES * taps * s->in_channels + begin * s->x.kernel * of_tap,
      .bias = d.bias + block * NND_LANES, .numbers = s->end.number ? d.numbers + block * NND_LANES : 0,
      .out_plane = s->out_plane, .end = &s->end, .sum = NND_WHOLE, .stream = s->stream, .pixel_step = s->x.stride};
  const float *in = (const float *)copies->to + (top + begin * s->y.dilation - copies->low) * copied.pitch;
  job.in = in;
  job.out = d.out + block * s->out_plane;
  if (s->end.residual) job.residual = d.residual + block * s->out_plane;
  nnd_run_cut(nnd_cut_of(way, vectors, 0, s->x.out_size, 0), way, vectors, 0, &job);
}

#endif
