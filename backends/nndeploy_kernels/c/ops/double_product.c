/* SPDX-License-Identifier: Apache-2.0
 *
 * double_product: rows of float64, (rows, inner), by a matrix (inner, columns), both plain.
 *
 * What a classifier of a few features is: nothing is packed before a call, and in a call the columns alone that fill no
 * vector. Workers share runs of columns of some rows.
 */
#include "model/words.h"

NND_RECORD(double_product)

#define NND_DOUBLE_ROWS 4
#define NND_MOST_TURNED_ROWS 65536 /* of a matrix whose last columns are packed */

struct nnd_double_product_fields {
  nnd_size rows, inner, columns;
};

static int nnd_open_double_product(struct nnd_opener *o) {
  struct nnd_double_product *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_double_product(o, own)) return 0;
  const int tensors[] = {own->a, own->b, own->out};
  for (int i = 0; i < 3; i++)
    if (o->model->tensors[tensors[i]].element != NND_FLOAT64) /* none of these lies in blocks */
      return nnd_fail(o->message, "a product of float64 by something else");
  return 1;
}

/* Sums of a vector of columns of some rows; `b_row` from row to row of b, whose vectors are whole. */
NND_INLINE void nnd_double_tile(int rows, const struct nnd_double_product_fields *t, const double *a, const double *b,
                                nnd_size b_row, double *out, nnd_size count) {
  vd sums[NND_DOUBLE_ROWS] = {0};
  for (nnd_size k = 0; k < t->inner; k++) {
    const vd w = *(const vd_any *)(b + k * b_row);
    NND_UNROLL
    for (int r = 0; r < rows; r++) sums[r] += a[r * t->inner + k] * w;
  }
  for (int r = 0; r < rows; r++)
    if (count == NND_LANES)
      *(vd_any *)(out + r * t->columns) = sums[r];
    else
      memcpy(out + r * t->columns, &sums[r], (size_t)count * sizeof *out);
}

static void nnd_double_sums(const struct nnd_double_product_fields *t, nnd_size rows, const double *a, const double *b,
                            nnd_size b_row, double *out, nnd_size count) {
  nnd_size row = 0;
  for (; row + NND_DOUBLE_ROWS <= rows; row += NND_DOUBLE_ROWS)
    nnd_double_tile(NND_DOUBLE_ROWS, t, a + row * t->inner, b, b_row, out + row * t->columns, count);
  for (; row < rows; row++) nnd_double_tile(1, t, a + row * t->inner, b, b_row, out + row * t->columns, count);
}

/* The last columns, which fill no vector, with zeros behind them. */
static void nnd_pack_last_columns(const struct nnd_double_product_fields *t, const double *b, nnd_size count, vd *to) {
  for (nnd_size k = 0; k < t->inner; k++) {
    to[k] = (vd){0};
    memcpy(&to[k], b + k * t->columns, (size_t)count * sizeof *b);
  }
}

static void nnd_run_double_product(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_double_product_fields *t = fields;
  const nnd_size runs = nnd_blocks(t->columns), groups = nnd_ceil_div(t->rows, NND_DOUBLE_ROWS);
  int is_packed = 0;
  nnd_size unit, last;
  nnd_share(groups * runs, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size row = unit / runs * NND_DOUBLE_ROWS, column = unit % runs * NND_LANES;
    const nnd_size count = nnd_min(NND_LANES, t->columns - column), rows = nnd_min(NND_DOUBLE_ROWS, t->rows - row);
    const double *a = (const double *)at[1] + row * t->inner, *b = (const double *)at[2] + column;
    double *out = (double *)at[0] + row * t->columns + column;
    if (count == NND_LANES) {
      nnd_double_sums(t, rows, a, b, t->columns, out, count);
    } else if (t->inner <= NND_MOST_TURNED_ROWS) {
      if (!is_packed) nnd_pack_last_columns(t, b, count, (vd *)part.scratch);
      is_packed = 1;
      nnd_double_sums(t, rows, a, (const double *)part.scratch, NND_LANES, out, count);
    } else
      for (nnd_size i = 0; i < rows * count; i++) {
        double sum = 0;
        for (nnd_size k = 0; k < t->inner; k++) sum += a[i / count * t->inner + k] * b[k * t->columns + i % count];
        out[i / count * t->columns + i % count] = sum;
      }
  }
}

static int nnd_make_double_product(struct nnd_maker *m) {
  const struct nnd_double_product *own = m->step->own;
  struct nnd_double_product_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_double_product_fields){nnd_size_of(m, own->rows), nnd_size_of(m, own->inner),
                                          nnd_size_of(m, own->columns)};
  const nnd_size of_a = nnd_shape_of(m, own->a)->count, of_b = nnd_shape_of(m, own->b)->count;
  const nnd_size made = nnd_shape_of(m, own->out)->count;
  if (t->rows < 1 || t->inner < 1 || t->columns < 1 || of_a % t->inner || of_a / t->inner != t->rows ||
      of_b % t->inner || of_b / t->inner != t->columns || made % t->rows || made / t->rows != t->columns)
    return nnd_fail(m->message, "a product of float64 does not fit its matrices");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->a);
  nnd_give_tensor(m, own->b);
  if (t->columns % NND_LANES && t->inner <= NND_MOST_TURNED_ROWS) m->scratch_bytes = t->inner * (nnd_size)sizeof(vd);
  nnd_tell_operations(m, made, 2 * t->inner);
  m->instance->run = nnd_run_double_product;
  return 1;
}

const struct nnd_op nnd_op_double_product = {"double_product", nnd_open_double_product, nnd_make_double_product};
