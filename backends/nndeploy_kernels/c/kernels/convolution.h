/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense k x k convolution, from NCHW (the first of a network: no conversion before it) or NCHWc, to NCHWc.
 *
 * The micro-kernel is that of all products, pixels of one output row x vectors of output channels. Rows of the kernel
 * outside the image are left out by the bounds of a loop, columns of it that no pixel needs (wide dilations) too; the
 * first and the last pixel of a row may read zeros beside it. Where more of them would, the rows that are read are
 * copied to where zeros stand beside them.
 */
#ifndef NND_CONVOLUTION_H
#define NND_CONVOLUTION_H

#include "kernels/tile.h"

struct nnd_convolution {
  struct nnd_axis y, x;
  nnd_size columns, first_column; /* of the weights' kernel, and the first of the `x.kernel` ones that are met */
  nnd_size in_channels, out_channels;
  nnd_size out_plane; /* elements from one channel block to the next */
  int stream;
  struct nnd_end end;
  int is_planar, copies_rows;
  const nnd_size *offsets; /* planar: where each channel of each tap lies (nnd_planar_offsets()) */
};

struct nnd_convolution_data {
  const void *in;      /* nnd_elem of NCHWc, or floats of NCHW: of the image */
  const void *weights; /* [panel][kernel rows][kernel columns][in_channels][vectors of the panel][c] */
  const float *bias, *numbers;
  const nnd_elem *residual; /* at the row, like `out` */
  nnd_elem *out;
};

/* The planes of the input, of channels or of channel blocks, and the bytes of a pixel of one. */
NND_INLINE nnd_size nnd_planes(const struct nnd_convolution *s) {
  return s->is_planar ? s->in_channels : nnd_blocks(s->in_channels);
}
NND_INLINE nnd_size nnd_plane_pixel(const struct nnd_convolution *s) {
  return s->is_planar ? (nnd_size)sizeof(float) : NND_LANES * (nnd_size)sizeof(nnd_elem);
}

/* Elements of the weights of a vector for each tap. */
NND_INLINE nnd_size nnd_tap_weights(const struct nnd_convolution *s) {
  return (s->is_planar ? s->in_channels : nnd_grouped_channels(s->in_channels)) * NND_LANES;
}

/* Rows are copied to `left` of those of `pitch` pixels; up to `capacity` rows of each channel, or channel block, one
 * after the other. Of planes that are read at strides of three and more, what output pixels read side by side lies side
 * by side: in `phases` parts, column x as number x / phases of part x % phases. */
struct nnd_copied_rows {
  nnd_size left, pitch, capacity, phases;
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

NND_INLINE struct nnd_copied_rows nnd_copied_rows(struct nnd_axis y, struct nnd_axis x, int is_planar) {
  const nnd_size phases = is_planar && x.stride > 2 ? x.stride : 1;
  const nnd_size left = nnd_max(0, x.pad), size = left + nnd_max(x.size, nnd_reach(x, x.out_size) - x.pad);
  return (struct nnd_copied_rows){left, nnd_ceil_div(size, phases) * phases, nnd_copied_capacity(y), phases};
}

/* Leaves out the first and the last columns of the kernel where all that any pixel meets of them lies beside the image;
 * `x.pad` is that of the columns that are left, below 0 where they begin inside. */
NND_INLINE void nnd_leave_out_columns(struct nnd_convolution *s) {
  struct nnd_axis *x = &s->x;
  const nnd_size last = (x->out_size - 1) * x->stride; /* of the output, from its first column on */
  for (; x->kernel > 1 && last - x->pad < 0; x->kernel--, x->pad -= x->dilation) s->first_column++;
  while (x->kernel > 1 && (x->kernel - 1) * x->dilation - x->pad >= x->size) x->kernel--;
}

/* Where padded column `column` of copied rows lies. */
NND_INLINE nnd_size nnd_copied_column(struct nnd_copied_rows rows, nnd_size column) {
  return rows.phases == 1 ? column : column % rows.phases * (rows.pitch / rows.phases) + column / rows.phases;
}

/* Whether rows must be copied: more than one pixel at an end of a row reads beside it, or planes are read at strides
 * that no micro-kernel has. */
NND_INLINE int nnd_needs_copies(struct nnd_axis x, int is_planar) {
  const nnd_size behind = nnd_reach(x, x.out_size) - x.pad - x.size;
  return nnd_max(x.pad, behind) > x.stride || (is_planar && x.stride > 2);
}

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

/* Copies a row of floats to its phases, whose places begin at `to`. */
NND_INLINE void nnd_copy_phases(struct nnd_copied_rows rows, nnd_size size, const float *from, float *to) {
  const nnd_size phases = rows.phases;
  for (nnd_size phase = 0; phase < nnd_min(phases, size); phase++) {
    const nnd_size place = nnd_copied_column(rows, rows.left + phase), count = nnd_ceil_div(size - phase, phases);
    for (nnd_size i = 0; i < count; i++) to[place + i] = from[phase + i * phases];
  }
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
      if (rows.phases > 1)
        nnd_copy_phases(rows, x.size, (const float *)in + (plane * y.size + row) * x.size,
                        (float *)(c->to + plane * of_plane + (row - c->low) * of_row));
      else
        memcpy(c->to + plane * of_plane + (row - c->low) * of_row + rows.left * pixel_bytes,
               (const char *)in + (plane * y.size + row) * x.size * pixel_bytes, (size_t)(x.size * pixel_bytes));
  c->high = nnd_max(c->high, end);
}

/* What the rows of a panel have in common. */
struct nnd_panel_job {
  struct nnd_tile_job job;
  nnd_size panel;       /* -1: none */
  nnd_size row_weights; /* bytes from row to row of the kernel */
  int way, vectors, half;
};

NND_INLINE int nnd_blocked_way(struct nnd_axis x) {
  return x.stride == 1 ? NND_NEXT : x.stride == 2 ? NND_SECOND : NND_ANYWHERE;
}

NND_INLINE int nnd_convolution_way(const struct nnd_convolution *s) {
  if (!s->is_planar) return nnd_blocked_way(s->x);
  return s->x.stride == 2 ? NND_PLANES_2 : NND_PLANES; /* copies for larger strides lie side by side */
}

NND_INLINE int nnd_convolution_half(const struct nnd_convolution *s) {
  return nnd_way_has_halves(nnd_convolution_way(s)) && nnd_has_half(s->out_channels);
}

NND_INLINE struct nnd_panel_job nnd_convolution_job(const struct nnd_convolution *s, nnd_size panel,
                                                    const struct nnd_convolution_data *d) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const nnd_size of_tap = nnd_tap_weights(s), each = s->is_planar ? sizeof(float) : sizeof(nnd_weight);
  const struct nnd_tile_job job = {
      .channels = s->in_channels,
      .columns = s->x.kernel,
      .column_step = s->x.dilation * NND_LANES,
      .weights =
          (const char *)d->weights + (block * s->y.kernel * s->columns + s->first_column * vectors) * of_tap * each,
      .row_weights = s->columns * of_tap * vectors,
      .tap_weights = of_tap * vectors,
      .bias = d->bias + block * NND_LANES,
      .numbers = s->end.number ? d->numbers + block * NND_LANES : 0,
      .out_plane = s->out_plane,
      .end = &s->end,
      .sum = NND_WHOLE,
      .stream = s->stream,
      .pixel_step = s->x.stride};
  return (struct nnd_panel_job){
      job, panel, job.row_weights * each, nnd_convolution_way(s), vectors, panel == full && nnd_convolution_half(s)};
}

#define NND_FETCH_AHEAD 1 /* output rows */

/* The job at output column `column` of row `row`, whose input is read from copies, or where there are none as it is. */
NND_INLINE struct nnd_tile_job nnd_placed_job(const struct nnd_convolution *s, const struct nnd_panel_job *p,
                                              nnd_size row, nnd_size column, const struct nnd_copies *copies,
                                              const struct nnd_convolution_data *d) {
  const nnd_size top = row * s->y.stride - s->y.pad, begin = nnd_tap_begin(s->y, top), end = nnd_tap_end(s->y, top);
  const nnd_size first = top + begin * s->y.dilation, pitch = copies ? copies->rows.pitch : s->x.size;
  const nnd_size at_image = column * s->x.stride - s->x.pad; /* from the padding on, phases divide it */
  const nnd_size x = copies ? (at_image + copies->rows.left) / copies->rows.phases : at_image;
  const nnd_size at = p->panel * NND_PANEL * s->out_plane + column * NND_LANES;
  const char *in = copies ? copies->to : d->in;
  struct nnd_tile_job job = p->job;
  job.rows = nnd_max(0, end - begin);
  job.weights = (const char *)job.weights + begin * p->row_weights;
  job.in_plane = (copies ? copies->rows.capacity : s->y.size) * pitch * NND_LANES;
  job.row_step = s->y.dilation * pitch * NND_LANES;
  job.offsets = s->offsets;
  job.column = x, job.dilation = s->x.dilation, job.width = copies ? 0 : pitch;
  job.in = in + ((first - (copies ? copies->low : 0)) * pitch + x) * nnd_plane_pixel(s);
  job.out = d->out + at;
  job.residual = s->end.residual ? d->residual + at : NULL;
  if (s->is_planar && !copies && end - begin == s->y.kernel && p->panel == 0) {
    job.fetch_rows = nnd_min(s->y.stride, s->y.kernel);
    job.fetch_ahead = NND_FETCH_AHEAD * s->y.stride * s->x.size;
  }
  return job;
}

/* Columns [from, to) of output row `row`; `copies`: null where `d->in` is read as it is. */
NND_INLINE void nnd_convolution_row(const struct nnd_convolution *s, const struct nnd_panel_job *p, nnd_size row,
                                    nnd_size from, nnd_size to, const struct nnd_copies *copies,
                                    const struct nnd_convolution_data *d) {
  const int half = p->half && (p->vectors > 1 || to - from >= NND_FEW_FOR_HALVES);
  struct nnd_tile_job job = nnd_placed_job(s, p, row, from, copies, d);
  nnd_run_cut(nnd_cut_of(p->way, p->vectors, half, to - from, 0), p->way, p->vectors, half, &job);
}

/* The bytes of a worker's copies. */
NND_INLINE nnd_size nnd_copies_bytes(const struct nnd_convolution *s) {
  if (!s->copies_rows) return 0;
  return nnd_copied_bytes(nnd_copied_rows(s->y, s->x, s->is_planar), nnd_planes(s), nnd_plane_pixel(s));
}

/* Returns copies at `scratch` that hold no rows. */
NND_INLINE struct nnd_copies nnd_begin_copies(const struct nnd_convolution *s, char *scratch) {
  if (s->copies_rows) memset(scratch, 0, (size_t)nnd_copies_bytes(s));
  return (struct nnd_copies){scratch, nnd_copied_rows(s->y, s->x, s->is_planar), -1, 0, 0};
}

/* From where output row `row` of image `image`, whose planes begin at `in`, is made: copies that hold what it reads, or
 * null. */
NND_INLINE const struct nnd_copies *nnd_row_copies(const struct nnd_convolution *s, struct nnd_copies *copies,
                                                   nnd_size image, nnd_size row, const void *in) {
  const nnd_size top = row * s->y.stride - s->y.pad, begin = nnd_tap_begin(s->y, top), end = nnd_tap_end(s->y, top);
  if (!s->copies_rows) return NULL;
  if (end > begin)
    nnd_copy_window(copies, s->y, s->x, nnd_planes(s), nnd_plane_pixel(s), image, top + begin * s->y.dilation,
                    top + (end - 1) * s->y.dilation + 1, in);
  return copies;
}

/* Fills where each channel of each tap of planes, or of their copies, lies: [kernel row][kernel column][channel]. */
NND_INLINE void nnd_planar_offsets(const struct nnd_convolution *s, nnd_size *offsets) {
  const struct nnd_copied_rows copied = nnd_copied_rows(s->y, s->x, 1);
  const nnd_size rows = s->copies_rows ? copied.capacity : s->y.size, pitch = s->copies_rows ? copied.pitch : s->x.size;
  for (nnd_size ky = 0; ky < s->y.kernel; ky++)
    for (nnd_size kx = 0; kx < s->x.kernel; kx++)
      for (nnd_size i = 0; i < s->in_channels; i++)
        *offsets++ = (i * rows + ky * s->y.dilation) * pitch +
                     (s->copies_rows ? nnd_copied_column(copied, kx * s->x.dilation) : kx * s->x.dilation);
}

#endif
