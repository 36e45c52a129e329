/* SPDX-License-Identifier: Apache-2.0
 *
 * lrn: x / (bias + alpha / window * the sum of squares of neighbours along the middle of three axes) ^ beta.
 *
 * Of an even window, the element behind counts that has none before.
 */
#include "ops/along_axis.h"

#define NND_MOST_NUMBER 3e38    /* a float's */
#define NND_MOST_NEIGHBOURS 256 /* that each element is summed over */

NND_RECORD(lrn)

struct nnd_lrn_fields {
  struct nnd_along along;
  nnd_size before, behind; /* of an element: neighbours that count */
  float alpha, beta, bias; /* alpha: divided by the window */
};

static int nnd_open_lrn(struct nnd_opener *o) {
  struct nnd_lrn *own = nnd_own(o, sizeof *own);
  return own && nnd_read_lrn(o, own) && nnd_check_along(o, &own->along, NND_FLOAT32);
}

NND_INLINE void nnd_lrn_columns(const void *fields, int vectors, struct nnd_columns c, void *const *at) {
  const struct nnd_lrn_fields *t = fields;
  const float *in = (const float *)at[1] + c.at;
  float *out = (float *)at[0] + c.at;
  for (nnd_size k = 0; k < t->along.size; k++) {
    const nnd_size end = nnd_min(t->along.size, k + t->behind + 1);
    vf sum[vectors];
    NND_UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = nnd_splat(0.0f);
    for (nnd_size i = nnd_max(0, k - t->before); i < end; i++) NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const vf x = nnd_take_columns(in + i * t->along.inner, c, v);
      sum[v] += x * x;
    }
    NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const vf power = nnd_op_exp(nnd_op_log(sum[v] * t->alpha + t->bias) * -t->beta);
      const vf x = nnd_take_columns(in + k * t->along.inner, c, v);
      nnd_give_columns(out + k * t->along.inner, c, v, x * power);
    }
  }
}

static void nnd_run_lrn(const void *fields, void *const *at, struct nnd_part part) {
  nnd_along_axis(&((const struct nnd_lrn_fields *)fields)->along, fields, at, part, NULL, nnd_lrn_columns);
}

static int nnd_make_lrn(struct nnd_maker *m) {
  static const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = nnd_run_lrn};
  const struct nnd_lrn *own = m->step->own;
  struct nnd_lrn_fields *t = nnd_fields(m, sizeof *t);
  if (!t || !nnd_size_along(m, &own->along, nnd_size_of(m, own->along.size), &t->along)) return 0;
  t->before = (own->window - 1) / 2, t->behind = own->window / 2;
  t->alpha = own->alpha / (float)own->window, t->beta = own->beta, t->bias = own->bias;
  return nnd_run_along(m, &own->along, runs);
}

const struct nnd_op nnd_op_lrn = {"lrn", nnd_open_lrn, nnd_make_lrn};
