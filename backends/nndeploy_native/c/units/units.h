/* SPDX-License-Identifier: Apache-2.0
 *
 * The units by their number: what a row of a table names. ../../units/unit_list.py repeats the list; a test compares.
 */
#ifndef NND_UNITS_UNITS_H
#define NND_UNITS_UNITS_H

#include "tile.h"

enum nnd_unit_number {
  NND_PACK_INPUT = 1,
  NND_PACK_WEIGHTS = 2,
  NND_WIDE_1 = 3, /* rows x one panel */
  NND_WIDE_2 = 4,
  NND_WIDE_4 = 5,
  NND_LANE = 6,
  NND_DOT = 7,
  NND_THIN = 8,
  NND_UNITS = 9
};

#define NND_MOST_UNIT_ROWS 14

#define NND_EACH_ROW(X, ...)                                                                                           \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)          \
  X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)       \
  X(13, __VA_ARGS__) X(14, __VA_ARGS__)

#define NND_FITS(rows, vectors) ((rows) * (vectors) <= NND_ACCUMULATORS && (rows) <= NND_UNIT_ROWS)
#define NND_DOT_FITS(rows, columns) ((rows) <= NND_DOT_ROWS && (rows) * (columns) <= NND_ACCUMULATORS)

#define NND_DEFINE_WIDE(rows, name, panels, vectors)                                                                   \
  static void nnd_##name##_##rows(const struct nnd_tile_call *t) {                                                     \
    if (NND_FITS(rows, (panels) * (vectors))) nnd_wide_unit(rows, panels, vectors, t);                                 \
  }                                                                                                                    \
  static void nnd_apart_##name##_##rows(const struct nnd_tile_call *t) {                                               \
    if (NND_FITS(rows, (panels) * (vectors))) nnd_apart_unit(rows, panels, vectors, t);                                \
  }
#define NND_DEFINE_DOT(rows, columns)                                                                                  \
  static void nnd_dot_##columns##_##rows(const struct nnd_tile_call *t) {                                              \
    if (NND_DOT_FITS(rows, columns)) nnd_dot_unit(rows, columns, t);                                                   \
  }
#define NND_EACH_DOT(X, columns) X(1, columns) X(2, columns) X(3, columns) X(4, columns)
#define NND_LISTED(rows, name, vectors) NND_FITS(rows, vectors) ? nnd_##name##_##rows : 0,
#define NND_LISTED_DOT(rows, columns) NND_DOT_FITS(rows, columns) ? nnd_dot_##columns##_##rows : 0,

NND_EACH_ROW(NND_DEFINE_WIDE, wide_1, 1, NND_PANEL)
NND_EACH_ROW(NND_DEFINE_WIDE, wide_2, 2, NND_PANEL)
NND_EACH_ROW(NND_DEFINE_WIDE, wide_4, 4, NND_PANEL)
NND_EACH_ROW(NND_DEFINE_WIDE, lane, 1, 1)
NND_EACH_DOT(NND_DEFINE_DOT, 1)
NND_EACH_DOT(NND_DEFINE_DOT, 2)
NND_EACH_DOT(NND_DEFINE_DOT, 3)
NND_EACH_DOT(NND_DEFINE_DOT, 4)
NND_EACH_DOT(NND_DEFINE_DOT, 5)
NND_EACH_DOT(NND_DEFINE_DOT, 6)

/* By whether rows lie apart, number and rows; null where there is none. */
static const nnd_unit nnd_units[2][NND_UNITS][NND_MOST_UNIT_ROWS + 1] = {
    {[NND_WIDE_1] = {0, NND_EACH_ROW(NND_LISTED, wide_1, NND_PANEL)},
     [NND_WIDE_2] = {0, NND_EACH_ROW(NND_LISTED, wide_2, 2 * NND_PANEL)},
     [NND_WIDE_4] = {0, NND_EACH_ROW(NND_LISTED, wide_4, 4 * NND_PANEL)},
     [NND_LANE] = {0, NND_EACH_ROW(NND_LISTED, lane, 1)}},
    {[NND_WIDE_1] = {0, NND_EACH_ROW(NND_LISTED, apart_wide_1, NND_PANEL)},
     [NND_WIDE_2] = {0, NND_EACH_ROW(NND_LISTED, apart_wide_2, 2 * NND_PANEL)},
     [NND_WIDE_4] = {0, NND_EACH_ROW(NND_LISTED, apart_wide_4, 4 * NND_PANEL)},
     [NND_LANE] = {0, NND_EACH_ROW(NND_LISTED, apart_lane, 1)}},
};

/* By columns and rows. */
static const nnd_unit nnd_dot_units[NND_DOT_COLUMNS + 1][NND_DOT_ROWS + 1] = {
    {0},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 1)},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 2)},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 3)},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 4)},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 5)},
    {0, NND_EACH_DOT(NND_LISTED_DOT, 6)},
};

#define NND_EACH_THIN(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define NND_DEFINE_THIN(k)                                                                                             \
  static void nnd_thin_##k(const struct nnd_tile_call *t) { nnd_thin_unit(k, t); }
#define NND_LISTED_THIN(k) nnd_thin_##k,
NND_EACH_THIN(NND_DEFINE_THIN)

/* By k. */
static const nnd_unit nnd_thin_units[NND_THIN_K + 1] = {0, NND_EACH_THIN(NND_LISTED_THIN)};

/* The one family for a product of small K or few columns; 0: the others. */
NND_INLINE int nnd_only_unit(nnd_size k, nnd_size columns) {
  return k <= NND_THIN_K ? NND_THIN : columns <= NND_DOT_COLUMNS ? NND_DOT : 0;
}

/* Panels side by side of a unit. */
static const int nnd_unit_panels[NND_UNITS] = {0, 0, 0, 1, 2, 4, 1, 1, 1};

/* The most rows of a unit, given the columns of the product. */
NND_INLINE int nnd_most_rows(int unit, nnd_size columns) {
  if (unit == NND_DOT) return (int)nnd_min(NND_DOT_ROWS, NND_ACCUMULATORS / columns);
  if (unit == NND_THIN) return NND_THIN_ROWS;
  if (unit == NND_LANE) return NND_UNIT_ROWS;
  return NND_ACCUMULATORS / (NND_PANEL * nnd_unit_panels[unit]);
}

#endif
