/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax, log_softmax, reduce_mean, reduce_sum, reduce_max: along the middle of three axes of plain tensors.
 *
 *   input, output (tensors), outer, size, inner (rules)
 */
#include "kernels/along_axis.h"

#include "model/model.h"

struct nnd_along_own {
  int in, out;
  nnd_size rules[3];
};

static int nnd_open_along(struct nnd_opener *o) {
  struct nnd_along_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_tensor(o);
  own->out = nnd_write_tensor(o);
  for (int i = 0; i < 3; i++) own->rules[i] = nnd_read_rule(o);
  if (o->message->failed) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->element != NND_FLOAT32 || out->element != NND_FLOAT32)
    return nnd_fail(o->message, "an axis of a tensor that is not plain float32");
  return 1;
}

static int nnd_make_along(struct nnd_maker *m, int is_reduction,
                          void (*run)(const void *fields, void *const *at, struct nnd_part part)) {
  const struct nnd_along_own *own = m->step->own;
  struct nnd_along_axis_step *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_along_axis_step){nnd_size_of(m, own->rules[0]), nnd_size_of(m, own->rules[1]),
                                    nnd_size_of(m, own->rules[2])};
  const nnd_size in = nnd_shape_of(m, own->in)->count, out = nnd_shape_of(m, own->out)->count;
  if (t->outer < 1 || t->size < 1 || t->inner < 1 || in % t->outer || in / t->outer % t->size ||
      in / t->outer / t->size != t->inner || out != (is_reduction ? in / t->size : in))
    return nnd_fail(m->message, "an axis does not fit its tensor");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = run;
  return 1;
}

#define NND_ALONG(name, is_reduction)                                                                                  \
  static void nnd_run_##name(const void *fields, void *const *at, struct nnd_part part) {                              \
    nnd_##name##_step(fields, at[0], at[1], part);                                                                     \
  }                                                                                                                    \
  static int nnd_make_##name(struct nnd_maker *m) { return nnd_make_along(m, is_reduction, nnd_run_##name); }          \
  const struct nnd_op nnd_op_##name##_ = {#name, nnd_open_along, nnd_make_##name};
NND_ALONG(softmax, 0)
NND_ALONG(log_softmax, 0)
NND_ALONG(reduce_mean, 1)
NND_ALONG(reduce_sum, 1)
NND_ALONG(reduce_max, 1)
