/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators along an axis share: plain tensors, seen as (outer, size, inner).
 */
#ifndef NND_OPS_ALONG_AXIS_H
#define NND_OPS_ALONG_AXIS_H

#include "kernels/along_axis.h"
#include "model/words.h"

typedef void (*nnd_along_run)(const void *fields, void *const *at, struct nnd_part part);

NND_RECORD(along_axis)

/* The output has `element`, or that of the input where it is -1. */
static int nnd_check_along(struct nnd_opener *o, const struct nnd_along_axis *own, int element) {
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked) return nnd_fail(o->message, "an axis of a tensor that is not plain");
  if (out->element != (element < 0 ? in->element : element))
    return nnd_fail(o->message, "what is made along an axis has another type");
  return 1;
}

/* Whether tensors of so many elements are (outer, size, inner) and (outer, made, inner). An axis without elements may be
 * reduced: that a step reads any is checked where its table is made, unless it says that it needs none. */
static int nnd_fits_along(struct nnd_along t, nnd_size in, nnd_size out, nnd_size made) {
  if (t.outer < 1 || t.size < 0 || t.inner < 1) return 0;
  if (!t.size) return !in && made == 1 && out % t.outer == 0 && out / t.outer == t.inner;
  return in % t.outer == 0 && in / t.outer % t.size == 0 && in / t.outer / t.size == t.inner &&
         out % (in / t.size) == 0 && out / (in / t.size) == made;
}

/* The sizes, checked; the output has so many elements of each row or column. */
static int nnd_size_along(struct nnd_maker *m, const struct nnd_along_axis *own, nnd_size made, struct nnd_along *t) {
  *t = (struct nnd_along){nnd_size_of(m, own->outer), nnd_size_of(m, own->size), nnd_size_of(m, own->inner)};
  if (!nnd_fits_along(*t, nnd_shape_of(m, own->in)->count, nnd_shape_of(m, own->out)->count, made))
    return nnd_fail(m->message, "an axis does not fit its tensor");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  return 1;
}

/* Runs what there is for the element of the input: `runs` has one for each, or null. */
static int nnd_run_along(struct nnd_maker *m, const struct nnd_along_axis *own, const nnd_along_run *runs) {
  m->instance->run = runs[nnd_shape_of(m, own->in)->element];
  nnd_tell_operations(m, nnd_shape_of(m, own->in)->count, 16); /* functions and several passes */
  return m->instance->run || nnd_fail(m->message, "a type that is not taken along an axis");
}

#endif
