/* SPDX-License-Identifier: Apache-2.0
 *
 * pairwise_shares: what scores of pairs of classes say of the share of each class, of each row.
 *
 *     r(i, j) = 1 / (1 + exp(a * score + b)) of a pair i < j, within 1e-7 of 0 and 1, and r(j, i) = 1 - r(i, j)
 *     p       makes the sum over i, j of (r(j, i) p(i) - r(i, j) p(j))^2 least, all p sum up to 1
 *
 * in float64, step by step until no part of it is further than 0.005 / classes from where it stays, as libsvm has it
 * (Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, 2004, their second
 * method). Pairs stand in the order (0, 1), (0, 2) ... (1, 2) ... Workers share rows.
 */
#include "base/double_operators.h"
#include "model/words.h"

#define NND_MOST_CLASSES 1024
#define NND_LEAST_SHARE 1e-7

NND_RECORD(pairwise_shares)

struct nnd_pairwise_shares_own {
  int in, out;
  nnd_size classes;
  const float *slopes, *offsets;
};

struct nnd_pairwise_shares_fields {
  nnd_size rows, classes;
  const float *slopes, *offsets;
};

static int nnd_open_pairwise_shares(struct nnd_opener *o) {
  struct nnd_pairwise_shares_own *own = nnd_own(o, sizeof *own);
  struct nnd_pairwise_shares words;
  if (!own || !nnd_read_pairwise_shares(o, &words)) return 0;
  const nnd_size classes = words.classes, pairs = classes * (classes - 1) / 2;
  if (!words.slopes || !words.offsets || words.slopes->count != pairs || words.offsets->count != pairs)
    return nnd_fail(o->message, "slopes and offsets that are not one for each pair of classes");
  *own = (struct nnd_pairwise_shares_own){words.in, words.out, classes, words.slopes->data, words.offsets->data};
  if (o->model->tensors[own->in].is_blocked || o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "scores of classes that are not plain");
  return 1;
}

/* r (classes, classes) of a row. */
static void nnd_pairwise_of(const struct nnd_pairwise_shares_fields *t, const float *scores, double *r) {
  nnd_size pair = 0;
  for (nnd_size i = 0; i < t->classes; i++)
    for (nnd_size j = i + 1; j < t->classes;) {
      vd line = {0};
      const nnd_size count = nnd_min(NND_LANES, t->classes - j);
      for (nnd_size k = 0; k < count; k++, pair++)
        line[k] = (double)scores[pair] * (double)t->slopes[pair] + (double)t->offsets[pair];
      const vd share =
          nnd_double_max(nnd_double_min(1.0 / (1.0 + nnd_double_exp(line)), nnd_splat_double(1 - NND_LEAST_SHARE)),
                         nnd_splat_double(NND_LEAST_SHARE));
      for (nnd_size k = 0; k < count; k++, j++) {
        r[i * t->classes + j] = share[k];
        r[j * t->classes + i] = 1 - share[k];
      }
    }
}

/* `q` (classes, classes) and `products` are room. */
static void nnd_couple(nnd_size classes, const double *r, double *q, double *products, double *p) {
  for (nnd_size i = 0; i < classes; i++) {
    double squares = 0;
    for (nnd_size j = 0; j < classes; j++) {
      if (j == i) continue;
      squares += r[j * classes + i] * r[j * classes + i];
      q[i * classes + j] = -r[j * classes + i] * r[i * classes + j];
    }
    q[i * classes + i] = squares;
    p[i] = 1.0 / (double)classes;
  }
  const double close = 0.005 / (double)classes;
  for (nnd_size turn = 0; turn < nnd_max(100, classes); turn++) {
    double all = 0, furthest = 0;
    for (nnd_size i = 0; i < classes; i++) {
      products[i] = 0;
      for (nnd_size j = 0; j < classes; j++) products[i] += q[i * classes + j] * p[j];
      all += p[i] * products[i];
    }
    for (nnd_size i = 0; i < classes; i++) {
      const double apart = __builtin_fabs(products[i] - all);
      furthest = apart > furthest ? apart : furthest;
    }
    if (furthest < close) break;
    for (nnd_size i = 0; i < classes; i++) {
      const double own = q[i * classes + i], step = (all - products[i]) / own, scale = 1 + step;
      p[i] += step;
      all = (all + step * (step * own + 2 * products[i])) / scale / scale;
      for (nnd_size j = 0; j < classes; j++) {
        products[j] = (products[j] + step * q[i * classes + j]) / scale;
        p[j] /= scale;
      }
    }
  }
}

static void nnd_run_pairwise_shares(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_pairwise_shares_fields *t = fields;
  const nnd_size classes = t->classes, pairs = classes * (classes - 1) / 2;
  double *r = (double *)part.scratch, *q = r + classes * classes, *products = q + classes * classes;
  double *p = products + classes;
  nnd_size row, last;
  nnd_share(t->rows, part, &row, &last);
  for (; row < last; row++) {
    nnd_pairwise_of(t, (const float *)at[1] + row * pairs, r);
    nnd_couple(classes, r, q, products, p);
    for (nnd_size i = 0; i < classes; i++) ((float *)at[0])[row * classes + i] = (float)p[i];
  }
}

static int nnd_make_pairwise_shares(struct nnd_maker *m) {
  const struct nnd_pairwise_shares_own *own = m->step->own;
  struct nnd_pairwise_shares_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size classes = own->classes, pairs = classes * (classes - 1) / 2;
  const nnd_size scores = nnd_shape_of(m, own->in)->count, shares = nnd_shape_of(m, own->out)->count;
  *t = (struct nnd_pairwise_shares_fields){shares / classes, classes, own->slopes, own->offsets};
  if (scores % pairs || shares % classes || scores / pairs != t->rows)
    return nnd_fail(m->message, "scores of pairs that do not fit the shares of their classes");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->scratch_bytes = (2 * classes * classes + 2 * classes) * (nnd_size)sizeof(double);
  nnd_tell_operations(m, t->rows, 20 * classes * classes);
  m->instance->run = nnd_run_pairwise_shares;
  return 1;
}

const struct nnd_op nnd_op_pairwise_shares = {"pairwise_shares", nnd_open_pairwise_shares, nnd_make_pairwise_shares};
