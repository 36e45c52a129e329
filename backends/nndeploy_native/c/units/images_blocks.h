/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing as in images_planes.h, where an element is a vector of NND_LANES channels: what a tap of a pixel reads of
 * them lies in one line of a cache, and lanes are channels whatever the width of the image.
 */
#ifndef NND_UNITS_IMAGES_BLOCKS_H
#define NND_UNITS_IMAGES_BLOCKS_H

#include "../layout.h"
#include "images_planes.h"

#define NND_MOST_STRIDE 255

/* How blocks are packed: their layout, and what follows from it. */
struct nnd_block_layout {
  struct nnd_planes planes;
  int16_t phase_of_row[NND_MOST_STRIDE]; /* by what is left of a padded row behind whole strides; -1: is not read */
  nnd_size *column;                      /* where a column of the image lies in a packed row, in floats; -1: nowhere */
  nnd_size *border;                      /* the elements of a packed row that no column lies in */
  nnd_size num_border;
};

/* The layout of `rows` output rows; its floats are NND_LANES times those of one channel's plane. */
NND_INLINE struct nnd_planes nnd_blocks_for(struct nnd_axis y, struct nnd_axis x, nnd_size rows) {
  struct nnd_planes p = nnd_planes_for(y, x, rows);
  p.phase = p.rows * p.pitch;
  p.plane = p.phases_y * p.phases_x * p.phase | 1; /* odd: blocks of channels meet other lines of the caches */
  return p;
}

/* Floats of the lists of a layout. */
NND_INLINE nnd_size nnd_block_lists(const struct nnd_planes *p) {
  const nnd_size sizes = p->x.size + p->phases_x * p->pitch;
  return nnd_blocks(sizes * (nnd_size)(sizeof(nnd_size) / sizeof(float))) * NND_LANES;
}

/* `memory` is of nnd_block_lists(). */
static void nnd_lay_blocks(const struct nnd_planes *p, float *memory, struct nnd_block_layout *to) {
  to->planes = *p;
  to->column = (nnd_size *)memory;
  to->border = to->column + p->x.size;
  to->num_border = 0;
  for (nnd_size rest = 0; rest < p->y.stride; rest++) to->phase_of_row[rest] = -1;
  for (nnd_size f = 0; f < p->phases_y; f++) to->phase_of_row[f * p->y.dilation % p->y.stride] = (int16_t)f;
  for (nnd_size i = 0; i < p->x.size; i++) to->column[i] = -1;
  for (nnd_size f = 0; f < p->phases_x; f++)
    for (nnd_size i = 0; i < p->pitch; i++) {
      const nnd_size column = i * p->x.stride + f * p->x.dilation % p->x.stride - p->x.pad;
      const nnd_size at = (f * p->phase + i) * NND_LANES;
      if (column >= 0 && column < p->x.size) to->column[column] = at;
      else to->border[to->num_border++] = at;
    }
}

/* Up to NND_LANES pixels, `column` floats apart, of `held` channels, `channel` floats apart, to vectors of channels. */
NND_INLINE void nnd_load_block(const float *from, nnd_size held, nnd_size channel, nnd_size column, nnd_size pixels,
                               vf *to) {
  if (column != 1) {
    for (nnd_size i = 0; i < pixels; i++) {
      to[i] = nnd_splat(0.0f);
      for (nnd_size c = 0; c < held; c++) to[i][c] = from[c * channel + i * column];
    }
    return;
  }
  NND_UNROLL for (int c = 0; c < NND_LANES; c++)
    to[c] = c >= held            ? nnd_splat(0.0f)
            : pixels < NND_LANES ? nnd_load_first(from + c * channel, pixels, 0.0f)
                                 : nnd_load_any(from + c * channel);
  nnd_transpose(to);
}

/* `rows` of `width` elements, `pitch` apart, to one run. */
NND_INLINE void nnd_copy_elements(const float *from, nnd_size rows, nnd_size width, nnd_size pitch, float *to) {
  for (nnd_size row = 0; row < rows; row++, from += pitch * NND_LANES)
    for (nnd_size i = 0; i < width; i++, to += NND_LANES) nnd_store(to, nnd_load(from + i * NND_LANES));
}

/* Borders: what is filled, of a row inside the image or of one outside. */
static void nnd_fill_borders(const struct nnd_block_layout *layout, nnd_size top, nnd_size rows, float fill,
                             float *to) {
  const struct nnd_planes *p = &layout->planes;
  const vf filled = nnd_splat(fill);
  for (nnd_size fy = 0; fy < p->phases_y; fy++) {
    float *row = to + fy * p->phases_x * p->phase * NND_LANES;
    nnd_size y = top + fy * p->y.dilation % p->y.stride;
    for (nnd_size i = 0; i < rows; i++, y += p->y.stride, row += p->pitch * NND_LANES) {
      if (y >= 0 && y < p->y.size)
        for (nnd_size b = 0; b < layout->num_border; b++) nnd_store(row + layout->border[b], filled);
      else
        for (nnd_size fx = 0; fx < p->phases_x; fx++)
          for (nnd_size e = 0; e < p->pitch; e++) nnd_store(row + (fx * p->phase + e) * NND_LANES, filled);
    }
  }
}

/* Where a row of the image lies. */
struct nnd_row_cursor {
  nnd_size rest, number; /* of its padded number: behind whole strides, and those */
  float *to;
};

NND_INLINE void nnd_find_row(const struct nnd_block_layout *layout, float *to, struct nnd_row_cursor *at) {
  const struct nnd_planes *p = &layout->planes;
  const nnd_size phase = layout->phase_of_row[at->rest];
  at->to = phase < 0 ? 0 : to + (phase * p->phases_x * p->phase + at->number * p->pitch) * NND_LANES;
}
NND_INLINE void nnd_next_row(const struct nnd_block_layout *layout, float *to, struct nnd_row_cursor *at) {
  if (++at->rest == layout->planes.y.stride) at->rest = 0, at->number++;
  nnd_find_row(layout, to, at);
}

/* What `rows` output rows of `held` channels read, from row `first` on; `stride`: of channels, rows, columns. */
static void nnd_pack_block(const struct nnd_block_layout *layout, nnd_size first, nnd_size rows, const float *from,
                           const nnd_size *stride, nnd_size held, float fill, float *to) {
  const struct nnd_axis y = layout->planes.y;
  const nnd_size all = rows + nnd_tap_shift(y, y.kernel - 1), top = first * y.stride - y.pad;
  const nnd_size begin = nnd_max(0, top), end = nnd_min(y.size, top + all * y.stride), width = layout->planes.x.size;
  const int is_run = stride[2] == 1 && stride[1] == width && layout->planes.phases_y == y.stride;
  const int is_even = layout->planes.x.stride == 1;
  nnd_fill_borders(layout, top, all, fill, to);
  struct nnd_row_cursor at = {.rest = (begin - top) % y.stride, .number = (begin - top) / y.stride};
  nnd_find_row(layout, to, &at);
  for (nnd_size row = begin; row < end; row += is_run ? end - begin : 1) {
    const nnd_size pixels = is_run ? (end - begin) * width : width;
    nnd_size column = 0;
    if (!at.to) {
      nnd_next_row(layout, to, &at);
      continue;
    }
    for (nnd_size pixel = 0; pixel < pixels; pixel += NND_LANES) {
      const nnd_size count = nnd_min(NND_LANES, pixels - pixel);
      vf loaded[NND_LANES];
      nnd_load_block(from + row * stride[1] + pixel * stride[2], held, stride[0], stride[2], count, loaded);
      if (is_even && column + NND_LANES <= width && count == NND_LANES && layout->column[column] >= 0 &&
          layout->column[column + NND_LANES - 1] >= 0) {
        float *run = at.to + layout->column[column];
        NND_UNROLL for (int i = 0; i < NND_LANES; i++) nnd_store(run + i * NND_LANES, loaded[i]);
        column += NND_LANES;
        if (column == width) {
          column = 0;
          nnd_next_row(layout, to, &at);
        }
        continue;
      }
      for (nnd_size i = 0; i < count;) {
        const nnd_size *place = layout->column + column;
        const nnd_size some = nnd_min(count - i, width - column);
        for (nnd_size j = 0; j < some; j++)
          if (place[j] >= 0) nnd_store(at.to + place[j], loaded[i + j]);
        i += some;
        column += some;
        if (column < width) break;
        column = 0;
        nnd_next_row(layout, to, &at);
      }
    }
  }
}

#endif
