/* SPDX-License-Identifier: Apache-2.0
 *
 * How exact sums of bytes end:
 *
 *   x = (sums[r][c] - zeros[c] * row_sums[r]) * factors[c] + bias[c]
 *   out = end(x), or of bytes  saturate(round(end(x)) + zero)      to the nearest, ties to even; a NaN is the least
 *         then bytes are looked up in a table, where there is one
 */
#ifndef NND_INT8_END_H
#define NND_INT8_END_H

#include "base/step.h"
#include "kernels/int8_table.h"
#include "kernels/int8_tile.h"

struct nnd_int8_end {
  struct nnd_end end;
  int element; /* of the output: NND_FLOAT32, NND_UINT8, NND_INT8, or NND_INT32, sums as they are but for the zeros */
  float zero;  /* of bytes: a whole number that they hold */
  /* Sums become bytes by factors, a bias and bounds alone, and int32 holds what factors and bias make of them; least
   * and most: the bounds in bytes. */
  int is_quick, least, most;
  int is_whole;         /* the bounds are those of bytes, to which instructions saturate */
  const uint8_t *table; /* null: none */
};

/* Some sums; what is read by columns holds whole vectors, but for the residual and the output. */
struct nnd_int8_ended {
  const int32_t *sums;
  nnd_size sums_row;                     /* from row to row */
  nnd_size rows, columns;                /* at most those of a tile, or of a strip */
  const int32_t *row_sums, *zeros;       /* null: none */
  const float *factors, *bias, *numbers; /* null: ones, zeros, zeros */
  const float *residual;                 /* null: zeros; lies as the output does */
  void *out;
  nnd_size out_row; /* elements from row to row */
};

/* All but the table. */
void nnd_int8_finish(const struct nnd_int8_end *e, const struct nnd_int8_ended *t);

/* Looks rows of bytes up, where there is a table: many at once, for what was just written is slow to read. */
void nnd_int8_look_up_rows(const struct nnd_int8_end *e, void *out, nnd_size rows, nnd_size columns, nnd_size out_row);

/* Says whether an end is quick, where int32 holds what factors and bias make of sums. */
void nnd_int8_find_quick(struct nnd_int8_end *e, int is_held);

#endif
