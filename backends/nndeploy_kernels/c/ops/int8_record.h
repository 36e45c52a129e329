/* SPDX-License-Identifier: Apache-2.0
 *
 * What steps that sum products of bytes have in common.
 */
#ifndef NND_INT8_RECORD_H
#define NND_INT8_RECORD_H

#include "kernels/int8_end.h"
#include "model/words.h"
#include "ops/windows.h"

NND_RECORD(int8_sums)

struct nnd_int8_record {
  int a, zero, factor, residual, out; /* tensors */
  nnd_size columns, inner;            /* products that make one sum, over all taps */
  const struct nnd_weight_data *weights;
  /* Whole vectors and a panel more; zeros: of weights that are int8; null where there are none. */
  const int32_t *zeros, *whole_bias;
  const float *factors, *bias, *numbers;
  struct nnd_int8_end end;
};

/* Both return 1, or 0 with a message; the second is called when `columns` are known. */
int nnd_open_int8(struct nnd_opener *o, struct nnd_int8_record *r, const struct nnd_int8_sums *words);
int nnd_spread_int8(struct nnd_opener *o, struct nnd_int8_record *r, const struct nnd_int8_sums *words);

/* Memory for packed weights of `num_bytes`, and for what their columns sum up to. */
int8_t *nnd_take_int8(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size num_bytes, nnd_size columns,
                      int32_t **column_sums);

/* The table of a program of one operand, from bytes of one element to those of another; null where there is none. */
const uint8_t *nnd_byte_table_of(struct nnd_opener *o, const struct nnd_program *program, int from, int to);

/* What a run reads and writes, in the order in which nnd_give_int8() gives it. */
struct nnd_int8_data {
  char *out;
  const uint8_t *a, *zero;
  const float *factor, *residual;
};

/* 0 with a message where `rows` rows of an output do not fit the operands. */
int nnd_give_int8(struct nnd_maker *m, const struct nnd_int8_record *r, nnd_size rows);

/* The zero point of `a`, where its bytes are read as they are. */
NND_INLINE uint32_t nnd_int8_zero(const struct nnd_int8_data *d, int is_signed) {
  if (!d->zero) return 0;
  return is_signed ? (uint32_t)(int8_t)*d->zero : *d->zero;
}

/* Where sums of `columns` from `column` on begin, and their factors. */
void nnd_begin_int8(const struct nnd_int8_record *r, const struct nnd_int8_data *d, nnd_size column, nnd_size columns,
                    const int32_t *column_sums, uint32_t zero, int factor_step, int32_t *first, float *factors);

/* Rows in tiles that share them evenly, counted without a division. */
struct nnd_int8_tiles {
  nnd_size count, each, more; /* the first `more` tiles have one row more than `each` */
};
NND_INLINE struct nnd_int8_tiles nnd_int8_tiles_of(nnd_size rows) {
  const nnd_size count = nnd_ceil_div(rows, NND_INT8_ROWS);
  return (struct nnd_int8_tiles){count, rows / count, rows % count};
}
NND_INLINE nnd_size nnd_int8_tile_row(struct nnd_int8_tiles tiles, nnd_size tile) {
  return tile * tiles.each + nnd_min(tile, tiles.more);
}

/* Bytes of rows and of what is made of them that pass through the caches together, while panel after panel of the
 * weights passes by: they stay in the first cache, or are as many as the weights. */
#define NND_INT8_HELD_BYTES ((nnd_size)24 << 10)
NND_INLINE nnd_size nnd_int8_held_bytes(const struct nnd_maker *m, nnd_size weight_bytes) {
  return nnd_max(NND_INT8_HELD_BYTES, nnd_min(weight_bytes, nnd_l2(m) / 4));
}

/* Bytes summed up. */
int32_t nnd_int8_row_sum(const uint8_t *row, nnd_size count, int is_signed);

/* Whether tiles of so many columns end before their sums leave the registers. */
NND_INLINE int nnd_int8_ends_in_tiles(const struct nnd_int8_record *r, nnd_size columns) {
  return r->end.is_quick && !r->zeros && nnd_blocks(columns) != 3;
}

NND_INLINE int nnd_is_byte(int element) { return element == NND_UINT8 || element == NND_INT8; }

#endif
