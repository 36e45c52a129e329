/* SPDX-License-Identifier: Apache-2.0
 *
 * Work along the middle axis of plain tensors (outer, size, inner), whose rows or columns are each by themselves.
 *
 *   rows      inner is 1 and the axis fills a vector: one row after the other, in vectors along it
 *   columns   else: some vectors of neighbouring columns at once, step by step along the axis
 *
 * Law: what becomes of a row or column depends neither on how many are taken at once, nor on the part.
 */
#ifndef NND_ALONG_AXIS_H
#define NND_ALONG_AXIS_H

#include "base/step.h"
#include "kernels/lanes.h"

#define NND_AT_A_TIME 4 /* vectors of columns */

struct nnd_along {
  nnd_size outer, size, inner;
};

/* Where columns that are no neighbours begin; those beyond `count` are the first one again. */
struct nnd_column_places {
  nnd_size count, at[NND_LANES];
};

/* Columns: the first is number `number` of all, and begins at `at`; `places` is null where they are neighbours. */
struct nnd_columns {
  nnd_size number, at;
  const struct nnd_column_places *places;
};

/* Vector `v` of columns of which the first lies at `from`. */
NND_INLINE vf nnd_take_columns(const float *from, struct nnd_columns c, int v) {
  if (!c.places) return nnd_load_any(from + v * NND_LANES);
  vf result;
  NND_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++) result[lane] = from[c.places->at[lane]];
  return result;
}

/* Writes to columns that lie as they were taken. */
NND_INLINE void nnd_give_columns(float *to, struct nnd_columns c, int v, vf value) {
  if (!c.places)
    nnd_store_any(to + v * NND_LANES, value);
  else
    for (nnd_size lane = 0; lane < c.places->count; lane++) to[c.places->at[lane]] = value[lane];
}

/* Writes one number of each column; these numbers are neighbours. */
NND_INLINE void nnd_give_numbers(float *to, struct nnd_columns c, int v, vf value) {
  nnd_store_some(to + c.number + v * NND_LANES, value, c.places ? c.places->count : NND_LANES);
}

/* `fields` are those of a step, `at` its operands. Both are inlined where they are given. */
typedef void (*nnd_row_work)(const void *fields, nnd_size row, void *const *at);
typedef void (*nnd_column_work)(const void *fields, int vectors, struct nnd_columns c, void *const *at);

/* Columns [first, last) of those of all rows, which may belong to several rows: fewer than a vector. */
NND_INLINE void nnd_few_columns(const struct nnd_along *t, nnd_size first, nnd_size last, const void *fields,
                                void *const *at, nnd_column_work columns) {
  struct nnd_column_places places = {.count = last - first};
  const nnd_size before = (t->size - 1) * t->inner; /* from the end of a row's columns to those of the next row */
  nnd_size column = first / t->inner * t->size * t->inner + first % t->inner, left = t->inner - first % t->inner;
  places.at[0] = column++;
  for (nnd_size lane = 1; lane < NND_LANES; lane++) {
    if (--left == 0) column += before, left = t->inner;
    places.at[lane] = lane < places.count ? column++ : places.at[0];
  }
  columns(fields, 1, (struct nnd_columns){first, 0, &places}, at);
}

/* A part of all rows or columns; `row` may be null, which makes columns of them. */
NND_INLINE void nnd_along_axis(const struct nnd_along *t, const void *fields, void *const *at, struct nnd_part part,
                               nnd_row_work row, nnd_column_work columns) {
  const nnd_size width = NND_AT_A_TIME * NND_LANES, tiles = nnd_ceil_div(t->inner, width);
  nnd_size unit, last;
  if (row && t->inner == 1 && t->size >= NND_LANES) {
    nnd_share(t->outer, part, &unit, &last);
    for (; unit < last; unit++) row(fields, unit, at);
  } else if (t->inner < NND_LANES) {
    const nnd_size count = t->outer * t->inner;
    nnd_share(nnd_ceil_div(count, NND_LANES), part, &unit, &last);
    for (; unit < last; unit++)
      nnd_few_columns(t, unit * NND_LANES, nnd_min(count, (unit + 1) * NND_LANES), fields, at, columns);
  } else {
    nnd_share(t->outer * tiles, part, &unit, &last);
    for (; unit < last; unit++) {
      const nnd_size outer = unit / tiles, end = nnd_min(t->inner, (unit % tiles + 1) * width);
      nnd_size column = unit % tiles * width;
      struct nnd_columns c = {outer * t->inner + column, outer * t->size * t->inner + column, NULL};
      if (column + width <= end)
        columns(fields, NND_AT_A_TIME, c, at);
      else {
        for (; column + NND_LANES <= end; column += NND_LANES, c.number += NND_LANES, c.at += NND_LANES)
          columns(fields, 1, c, at);
        if (column < end) nnd_few_columns(t, c.number, c.number + end - column, fields, at, columns);
      }
    }
  }
}

/* Some neighbouring columns of elements of any type: the first is number `number` of all, and begins at `at`. */
#define NND_TILE 64
struct nnd_tile {
  nnd_size number, at, count;
};

NND_INLINE nnd_size nnd_num_tiles(const struct nnd_along *t) { return t->outer * nnd_ceil_div(t->inner, NND_TILE); }

NND_INLINE struct nnd_tile nnd_tile_at(const struct nnd_along *t, nnd_size unit) {
  const nnd_size tiles = nnd_ceil_div(t->inner, NND_TILE), outer = unit / tiles, column = unit % tiles * NND_TILE;
  return (struct nnd_tile){outer * t->inner + column, outer * t->size * t->inner + column,
                           nnd_min(NND_TILE, t->inner - column)};
}

#endif
