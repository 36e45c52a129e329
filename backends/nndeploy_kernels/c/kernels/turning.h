/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and matrices of elements of 1, 4, 8 or 16 bytes, which may lie at any byte: copied at even steps, or turned.
 *
 * A matrix is turned in tiles that read and write whole lines of a cache; where one side is 2 to 4 elements long, in
 * loops that the compiler makes interleavings of.
 */
#ifndef NND_TURNING_H
#define NND_TURNING_H

#include "kernels/layout.h"

typedef int32_t nnd_bytes_4 __attribute__((aligned(1)));
typedef int64_t nnd_bytes_8 __attribute__((aligned(1)));
typedef int64_t nnd_bytes_16 __attribute__((vector_size(16), aligned(1)));

/* Element (row, column) lies at row * width + column * in_step bytes of the input, and at row * out_step +
 * column * width bytes of the output: rows lie together there, columns here. */
struct nnd_matrix {
  nnd_size rows, columns, in_step, out_step;
};

#define NND_TURN_SIDE 16  /* elements of a tile */
#define NND_TURN_BYTES 64 /* of a tile of bytes */

/* A tile, one element after the other. */
#define NND_TURN_TILE(name, type)                                                                                      \
  NND_INLINE void name##_of(const char *from, nnd_size in_step, char *to, nnd_size out_step, nnd_size rows,            \
                            nnd_size columns) {                                                                        \
    for (nnd_size row = 0; row < rows; row++)                                                                          \
      for (nnd_size column = 0; column < columns; column++)                                                            \
        ((type *)(to + row * out_step))[column] = ((const type *)(from + column * in_step))[row];                      \
  }                                                                                                                    \
  static void name(const char *from, nnd_size in_step, char *to, nnd_size out_step, nnd_size rows, nnd_size columns) { \
    if (columns == NND_TURN_SIDE)                                                                                      \
      name##_of(from, in_step, to, out_step, rows, NND_TURN_SIDE);                                                     \
    else                                                                                                               \
      name##_of(from, in_step, to, out_step, rows, columns);                                                           \
  }
NND_TURN_TILE(nnd_turn_tile_1, int8_t)
NND_TURN_TILE(nnd_turn_some_4, nnd_bytes_4)
NND_TURN_TILE(nnd_turn_tile_8, nnd_bytes_8)
NND_TURN_TILE(nnd_turn_tile_16, nnd_bytes_16)

static void nnd_turn_tile_4(const char *from, nnd_size in_step, char *to, nnd_size out_step, nnd_size rows,
                            nnd_size columns) {
  for (nnd_size row = 0; row < rows; row += NND_LANES)
    for (nnd_size column = 0; column < columns; column += NND_LANES) {
      const nnd_size held_rows = nnd_min(NND_LANES, rows - row), held_columns = nnd_min(NND_LANES, columns - column);
      const char *in = from + column * in_step + row * 4;
      char *out = to + row * out_step + column * 4;
      if (held_rows < NND_LANES || held_columns < NND_LANES) {
        nnd_turn_some_4(in, in_step, out, out_step, held_rows, held_columns);
        continue;
      }
      vf tile[NND_LANES];
      NND_UNROLL
      for (int i = 0; i < NND_LANES; i++) tile[i] = nnd_load_any((const float *)(in + i * in_step));
      nnd_transpose(tile);
      NND_UNROLL
      for (int i = 0; i < NND_LANES; i++) nnd_store_any((float *)(out + i * out_step), tile[i]);
    }
}

/* `few` columns, a compile-time constant, that lie together in the output; or rows, in the input. */
#define NND_TURN_FEW(name, type)                                                                                       \
  NND_INLINE void name##_columns(const char *from, char *to, nnd_size rows, nnd_size in_step, nnd_size few) {          \
    type *restrict out = (type *)to;                                                                                   \
    for (nnd_size row = 0; row < rows; row++)                                                                          \
      for (nnd_size i = 0; i < few; i++) out[row * few + i] = ((const type *)(from + i * in_step))[row];               \
  }                                                                                                                    \
  NND_INLINE void name##_rows(const char *from, char *to, nnd_size columns, nnd_size out_step, nnd_size few) {         \
    const type *restrict in = (const type *)from;                                                                      \
    for (nnd_size column = 0; column < columns; column++)                                                              \
      for (nnd_size i = 0; i < few; i++) ((type *)(to + i * out_step))[column] = in[column * few + i];                 \
  }

/* A tile's part of a side. */
struct nnd_span {
  nnd_size first, count;
};

/* The part of `all` elements from `first` on, at most `most`: whole vectors of `lanes`, where need be with some elements
 * of the part before once more. */
NND_INLINE struct nnd_span nnd_turned_span(nnd_size all, nnd_size first, nnd_size most, nnd_size lanes) {
  const nnd_size count = nnd_min(most, all - first), whole = nnd_ceil_div(count, lanes) * lanes;
  if (whole > all) return (struct nnd_span){first, count};
  return (struct nnd_span){nnd_min(first, all - whole), whole};
}

/* Turns a matrix. */
#define NND_TURN(name, type, tile, side, lanes)                                                                        \
  NND_TURN_FEW(name, type)                                                                                             \
  static void name(const char *from, char *to, struct nnd_matrix m) {                                                  \
    const nnd_size width = (nnd_size)sizeof(type);                                                                     \
    switch (m.out_step == m.columns * width ? m.columns : 0) {                                                         \
      case 2: name##_columns(from, to, m.rows, m.in_step, 2); return;                                                  \
      case 3: name##_columns(from, to, m.rows, m.in_step, 3); return;                                                  \
      case 4: name##_columns(from, to, m.rows, m.in_step, 4); return;                                                  \
      default: break;                                                                                                  \
    }                                                                                                                  \
    switch (m.in_step == m.rows * width ? m.rows : 0) {                                                                \
      case 2: name##_rows(from, to, m.columns, m.out_step, 2); return;                                                 \
      case 3: name##_rows(from, to, m.columns, m.out_step, 3); return;                                                 \
      case 4: name##_rows(from, to, m.columns, m.out_step, 4); return;                                                 \
      default: break;                                                                                                  \
    }                                                                                                                  \
    for (nnd_size column = 0; column < m.columns; column += side)                                                      \
      for (nnd_size row = 0; row < m.rows; row += side) {                                                              \
        const struct nnd_span rows = nnd_turned_span(m.rows, row, side, lanes);                                        \
        const struct nnd_span columns = nnd_turned_span(m.columns, column, side, lanes);                               \
        tile(from + columns.first * m.in_step + rows.first * width, m.in_step,                                         \
             to + rows.first * m.out_step + columns.first * width, m.out_step, rows.count, columns.count);             \
      }                                                                                                                \
  }
NND_TURN(nnd_turn_1, int8_t, nnd_turn_tile_1, NND_TURN_BYTES, 1)
NND_TURN(nnd_turn_4, nnd_bytes_4, nnd_turn_tile_4, NND_TURN_SIDE, NND_LANES)
NND_TURN(nnd_turn_8, nnd_bytes_8, nnd_turn_tile_8, NND_TURN_SIDE, 1)
NND_TURN(nnd_turn_16, nnd_bytes_16, nnd_turn_tile_16, NND_TURN_SIDE, 1)

/* Copies `rows` lines of `count` elements, `step` bytes apart, to where they follow each other. */
#define NND_COPY_LINE(name, type)                                                                                      \
  NND_INLINE void name##_lines(const char *from, char *to, nnd_size step, nnd_size count, nnd_size rows,               \
                               nnd_size in_step, nnd_size out_step) {                                                  \
    for (nnd_size row = 0; row < rows; row++)                                                                          \
      for (nnd_size i = 0; i < count; i++)                                                                             \
        ((type *)(to + row * out_step))[i] = *(const type *)(from + row * in_step + i * step);                         \
  }                                                                                                                    \
  static void name(const char *from, char *to, nnd_size step, nnd_size count, nnd_size rows, nnd_size in_step,         \
                   nnd_size out_step) {                                                                                \
    const nnd_size width = (nnd_size)sizeof(type);                                                                     \
    switch (count) {                                                                                                   \
      case 2: name##_lines(from, to, step, 2, rows, in_step, out_step); return;                                        \
      case 3: name##_lines(from, to, step, 3, rows, in_step, out_step); return;                                        \
      case 4: name##_lines(from, to, step, 4, rows, in_step, out_step); return;                                        \
      default: break;                                                                                                  \
    }                                                                                                                  \
    if (step == 0)                                                                                                     \
      name##_lines(from, to, 0, count, rows, in_step, out_step);                                                       \
    else if (step == -width)                                                                                           \
      name##_lines(from, to, -width, count, rows, in_step, out_step);                                                  \
    else if (step == 2 * width)                                                                                        \
      name##_lines(from, to, 2 * width, count, rows, in_step, out_step);                                               \
    else                                                                                                               \
      name##_lines(from, to, step, count, rows, in_step, out_step);                                                    \
  }
NND_COPY_LINE(nnd_copy_lines_1, int8_t)
NND_COPY_LINE(nnd_copy_lines_4, nnd_bytes_4)
NND_COPY_LINE(nnd_copy_lines_8, nnd_bytes_8)
NND_COPY_LINE(nnd_copy_lines_16, nnd_bytes_16)

#endif
