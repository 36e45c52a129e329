/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing as in images_planes.h, where an element is a vector of NND_LANES channels: what a tap of a pixel reads of them
 * lies in one line of a cache, and lanes are channels whatever the width of the image.
 */
#ifndef NND_UNITS_IMAGES_BLOCKS_H
#define NND_UNITS_IMAGES_BLOCKS_H

#include "../layout.h"
#include "images_planes.h"

#define NND_MOST_STRIDE 255

/* The layout of `rows` output rows; its floats are NND_LANES times those of one channel's plane. */
NND_INLINE struct nnd_planes nnd_blocks_for(struct nnd_axis y, struct nnd_axis x, nnd_size rows) {
  struct nnd_planes p = nnd_planes_for(y, x, rows);
  p.phase = p.rows * p.pitch;
  p.plane = p.phases_y * p.phases_x * p.phase | 1; /* odd: blocks of channels meet other lines of the caches */
  return p;
}

/* By what is left of a padded index behind a whole number of strides: the phase that has such elements, -1 none. */
static void nnd_phases_by_rest(struct nnd_axis axis, nnd_size phases, int16_t *of) {
  for (nnd_size i = 0; i < axis.stride; i++) of[i] = -1;
  for (nnd_size f = 0; f < phases; f++) of[f * axis.dilation % axis.stride] = (int16_t)f;
}

/* Up to NND_LANES pixels of `held` channels, `stride[0]` floats apart and a pixel's `column`, to vectors of channels. */
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

NND_INLINE void nnd_fill_elements(float *to, nnd_size count, float value) {
  for (nnd_size i = 0; i < count; i++) nnd_store(to + i * NND_LANES, nnd_splat(value));
}

/* `rows` of `width` elements, `pitch` apart, to one run. */
NND_INLINE void nnd_copy_elements(const float *from, nnd_size rows, nnd_size width, nnd_size pitch, float *to) {
  for (nnd_size row = 0; row < rows; row++, from += pitch * NND_LANES)
    for (nnd_size i = 0; i < width; i++, to += NND_LANES) nnd_store(to, nnd_load(from + i * NND_LANES));
}

/* The elements of a row of phases that no pixel is stored to. */
static void nnd_fill_block_row(const struct nnd_planes *p, int is_inside, float fill, float *row) {
  for (nnd_size fx = 0; fx < p->phases_x; fx++, row += p->phase * NND_LANES) {
    const nnd_size before = p->x.pad - fx * p->x.dilation % p->x.stride;
    const nnd_size begin = is_inside ? nnd_min(p->pitch, nnd_max(0, nnd_ceil_div(before, p->x.stride))) : p->pitch;
    const nnd_size end = nnd_max(begin, nnd_min(p->pitch, nnd_ceil_div(p->x.size + before, p->x.stride)));
    nnd_fill_elements(row, begin, fill);
    nnd_fill_elements(row + end * NND_LANES, p->pitch - end, fill);
  }
}

/* `pixels` of the image from the beginning of a row on; rows follow each other, `to` is by row from that one on: where it
 * lies, null where it is not read. */
static void nnd_pack_pixels(const struct nnd_planes *p, const int16_t *phase, const float *from, nnd_size channel,
                            nnd_size stride, nnd_size held, nnd_size pixels, float *const *to) {
  const struct nnd_axis x = p->x;
  const nnd_size first_place = nnd_floor_div(x.pad, x.stride), first_rest = x.pad - first_place * x.stride;
  nnd_size column = 0, place = first_place, rest = first_rest;
  for (nnd_size pixel = 0; pixel < pixels; pixel += NND_LANES) {
    const nnd_size count = nnd_min(NND_LANES, pixels - pixel);
    vf loaded[NND_LANES];
    nnd_load_block(from + pixel * stride, held, channel, stride, count, loaded);
    if (x.stride == 1 && *to && place >= 0 && count == NND_LANES && column + NND_LANES <= x.size &&
        place + NND_LANES <= p->pitch) {
      float *at = *to + place * NND_LANES;
      NND_UNROLL for (int i = 0; i < NND_LANES; i++) nnd_store(at + i * NND_LANES, loaded[i]);
      column += NND_LANES;
      place += NND_LANES;
      if (column == x.size) column = 0, place = first_place, to++;
      continue;
    }
    for (nnd_size i = 0; i < count; i++) {
      if (*to && phase[rest] >= 0 && place >= 0 && place < p->pitch)
        nnd_store(*to + (phase[rest] * p->phase + place) * NND_LANES, loaded[i]);
      if (++rest == x.stride) rest = 0, place++;
      if (++column == x.size) column = 0, place = first_place, rest = first_rest, to++;
    }
  }
}

#define NND_ROWS_AT_ONCE 64

/* What output rows of `held` channels read, from row `first` on, `rows` of them; `stride` of channels, rows, columns. */
static void nnd_pack_block(const struct nnd_planes *p, nnd_size first, nnd_size rows, const float *from,
                           const nnd_size *stride, nnd_size held, float fill, float *to) {
  const struct nnd_axis axis = p->y;
  const nnd_size all = rows + nnd_tap_shift(axis, axis.kernel - 1), top = first * axis.stride - axis.pad;
  const int is_run = stride[2] == 1 && stride[1] == p->x.size;
  const nnd_size at_once = is_run && p->phases_y == axis.stride ? NND_ROWS_AT_ONCE : 1;
  const nnd_size begin = nnd_max(0, top), end = nnd_min(axis.size, top + all * axis.stride);
  int16_t of_rest[2][NND_MOST_STRIDE];
  nnd_phases_by_rest(axis, p->phases_y, of_rest[0]);
  nnd_phases_by_rest(p->x, p->phases_x, of_rest[1]);
  for (nnd_size fy = 0; fy < p->phases_y; fy++)
    for (nnd_size i = 0; i < all; i++) {
      const nnd_size y = top + i * axis.stride + fy * axis.dilation % axis.stride;
      nnd_fill_block_row(p, y >= 0 && y < axis.size, fill,
                         to + (fy * p->phases_x * p->phase + i * p->pitch) * NND_LANES);
    }
  for (nnd_size y = begin; y < end; y += at_once) {
    const nnd_size count = nnd_min(at_once, end - y);
    float *row[NND_ROWS_AT_ONCE + 1] = {0};
    int is_read = 0;
    for (nnd_size i = 0; i < count; i++) {
      const nnd_size at = (y + i - top) / axis.stride, fy = of_rest[0][(y + i - top) % axis.stride];
      if (fy >= 0) row[i] = to + (fy * p->phases_x * p->phase + at * p->pitch) * NND_LANES, is_read = 1;
    }
    if (is_read)
      nnd_pack_pixels(p, of_rest[1], from + y * stride[1], stride[0], stride[2], held, count * p->x.size, row);
  }
}

#endif
