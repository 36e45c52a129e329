/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of bytes by strips of rows, two at once, where the machine multiplies blocks (kernels/int8_tile.h).
 */
#ifndef NND_INT8_STRIPS_H
#define NND_INT8_STRIPS_H

#include "ops/int8_record.h"

/* Strips that share a line of rows evenly: all are `each` high, so the last begins on rows of the one before it. */
struct nnd_int8_strips {
  nnd_size rows, count, each;
};
NND_INLINE struct nnd_int8_strips nnd_int8_strips_of(nnd_size rows) {
  const nnd_size count = nnd_ceil_div(rows, NND_INT8_STRIP);
  return (struct nnd_int8_strips){rows, count, nnd_ceil_div(rows, count)};
}

/* The first row of a strip that no strip before it has; `strip` may be `count`. */
NND_INLINE nnd_size nnd_int8_strip_row(struct nnd_int8_strips strips, nnd_size strip) {
  return nnd_min(strips.rows, strip * strips.each);
}

/* Whether rows whose `k` lie so many bytes apart, for each tap, are read where they lie by so many panels; or are packed
 * first: reading a tile whose rows begin within lines takes six times as long as another. */
#define NND_FEW_READS 8
NND_INLINE int nnd_int8_reads_rows(nnd_size k, nnd_size step, nnd_size panels) {
  return nnd_int8_block_of(k) && ((step % NND_LINE_BYTES == 0 && k % NND_LINE_BYTES == 0) || panels <= NND_FEW_READS);
}

/* Some strips by some panels of a group of columns. Without `is_packed`, lines of rows lie `line` bytes apart from `from`
 * on; else strip after strip is packed there. */
struct nnd_int8_strip_job {
  nnd_int8_multiplier multiply;
  const struct nnd_int8_record *record;
  const struct nnd_int8_data *data;
  struct nnd_int8_strips strips;
  nnd_size begin, last;          /* strips, counted from line to line */
  nnd_size top;                  /* row of the output of the first line's first row */
  nnd_size column, columns;      /* of the group */
  nnd_size panel, end;           /* of the group */
  const int32_t *column_sums;    /* of all columns */
  const int32_t *row_sums;       /* of the first strip's rows on; null: none */
  const int8_t *weights;         /* of the group */
  const char *from;              /* lines at 64 bytes */
  nnd_size k;                    /* of a tap */
  nnd_size line, step;           /* without `is_packed`: bytes from line to line, from row to row */
  const nnd_size *offsets, taps; /* where taps lie, without `is_packed` */
  uint32_t zero;
  int is_packed, is_signed, factor_step;
};
void nnd_run_int8_strips(const struct nnd_int8_strip_job *job);

#endif
