/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators along an axis share: plain tensors of float32, seen as (outer, size, inner).
 *
 *   input, output (tensors), outer, size, inner (rules)
 */
#ifndef NND_OPS_ALONG_AXIS_H
#define NND_OPS_ALONG_AXIS_H

#include "kernels/along_axis.h"
#include "model/model.h"

struct nnd_along_own {
  int in, out;
  nnd_size rules[3];
};

/* Reads the words. */
static int nnd_read_along(struct nnd_opener *o, struct nnd_along_own *own) {
  own->in = nnd_read_tensor(o);
  own->out = nnd_write_tensor(o);
  for (int i = 0; i < 3; i++) own->rules[i] = nnd_read_rule(o);
  if (o->message->failed) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked) return nnd_fail(o->message, "an axis of a tensor that is not plain");
  return 1;
}

static int nnd_open_along(struct nnd_opener *o) {
  struct nnd_along_own *own = nnd_own(o, sizeof *own);
  return own && nnd_read_along(o, own);
}

/* The sizes, checked; the output is as large as the input, or holds one number of each row or column. */
static int nnd_size_along(struct nnd_maker *m, const struct nnd_along_own *own, int is_reduction, struct nnd_along *t) {
  *t = (struct nnd_along){nnd_size_of(m, own->rules[0]), nnd_size_of(m, own->rules[1]), nnd_size_of(m, own->rules[2])};
  const nnd_size in = nnd_shape_of(m, own->in)->count, out = nnd_shape_of(m, own->out)->count;
  if (t->outer < 1 || t->size < 1 || t->inner < 1 || in % t->outer || in / t->outer % t->size ||
      in / t->outer / t->size != t->inner || out != (is_reduction ? in / t->size : in))
    return nnd_fail(m->message, "an axis does not fit its tensor");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  return 1;
}

static int nnd_make_along(struct nnd_maker *m, int is_reduction,
                          void (*run)(const void *fields, void *const *at, struct nnd_part part)) {
  struct nnd_along *t = nnd_fields(m, sizeof *t);
  m->instance->run = run;
  return t && nnd_size_along(m, m->step->own, is_reduction, t);
}

#endif
