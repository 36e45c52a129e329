/* SPDX-License-Identifier: Apache-2.0
 *
 * double_product: rows of float64, (rows, inner), by a matrix (inner, columns), both plain.
 *
 * What a classifier of a few features is: no weights are packed. Workers share runs of columns of each row.
 */
#include "model/words.h"

NND_RECORD(double_product)

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

static void nnd_run_double_product(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_double_product_fields *t = fields;
  const nnd_size runs = nnd_blocks(t->columns);
  nnd_size unit, last;
  nnd_share(t->rows * runs, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size row = unit / runs, column = unit % runs * NND_LANES;
    const nnd_size count = nnd_min(NND_LANES, t->columns - column);
    const double *a = (const double *)at[1] + row * t->inner, *b = (const double *)at[2] + column;
    double *out = (double *)at[0] + row * t->columns + column;
    if (count == NND_LANES) {
      vd sum = {0};
      for (nnd_size k = 0; k < t->inner; k++) sum += a[k] * *(const vd_any *)(b + k * t->columns);
      *(vd_any *)out = sum;
      continue;
    }
    for (nnd_size c = 0; c < count; c++) {
      double sum = 0;
      for (nnd_size k = 0; k < t->inner; k++) sum += a[k] * b[k * t->columns + c];
      out[c] = sum;
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
  nnd_tell_operations(m, made, 2 * t->inner);
  m->instance->run = nnd_run_double_product;
  return 1;
}

const struct nnd_op nnd_op_double_product = {"double_product", nnd_open_double_product, nnd_make_double_product};
