/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing of plain tensors along any axis.
 *
 * Workers share what lies behind each other along the axis and all before it.
 */
#include "model/words.h"
#include "ops/resize_table.h"

struct nnd_resize_axis_own {
  NND_FIELDS(resize_axis)
};
NND_READER(resize_axis, struct nnd_resize_axis_own)

/* The tensor is (outer, places, inner). */
struct nnd_resize_axis_fields {
  struct nnd_resize_axis axis;
  nnd_size outer, inner;
  float beyond;
};

static int nnd_open_resize_axis(struct nnd_opener *o) {
  struct nnd_resize_axis_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_resize_axis(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->rank != out->rank || own->axis >= in->rank)
    return nnd_fail(o->message, "a resize of an axis that a plain tensor has not");
  return 1;
}

/* One output place: `inner` sums side by side. */
NND_INLINE void nnd_resize_place(const struct nnd_resize_axis_fields *t, const int32_t *places, const float *weights,
                                 const float *from, float *to) {
  const nnd_size inner = t->inner, taps = t->axis.taps;
  nnd_size i = 0;
  for (; i + NND_LANES <= inner; i += NND_LANES) {
    vf sum = nnd_splat(0.0f);
    for (nnd_size tap = 0; tap < taps; tap++) sum += weights[tap] * nnd_load_any(from + places[tap] * inner + i);
    nnd_store_any(to + i, sum);
  }
  for (; i < inner; i++) {
    float sum = 0;
    for (nnd_size tap = 0; tap < taps; tap++) sum += weights[tap] * from[places[tap] * inner + i];
    to[i] = sum;
  }
}

static void nnd_run_resize_axis(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_resize_axis_fields *t = fields;
  const nnd_size out_size = t->axis.out_size;
  nnd_size unit, last;
  nnd_share(t->outer * out_size, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size place = unit % out_size * t->axis.taps;
    float *to = (float *)at[0] + unit * t->inner;
    if (t->axis.places[place] < 0)
      for (nnd_size i = 0; i < t->inner; i++) to[i] = t->beyond;
    else
      nnd_resize_place(t, t->axis.places + place, t->axis.weights + place,
                       (const float *)at[1] + unit / out_size * t->axis.size * t->inner, to);
  }
}

static int nnd_make_resize_axis_step(struct nnd_maker *m) {
  const struct nnd_resize_axis_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_resize_axis_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->outer = t->inner = 1, t->beyond = own->mode.beyond;
  for (int axis = 0; axis < in->rank; axis++) {
    if (axis == own->axis) continue;
    if (in->sizes[axis] != out->sizes[axis]) return nnd_fail(m->message, "a resize of another axis than it says");
    *(axis < own->axis ? &t->outer : &t->inner) *= in->sizes[axis];
  }
  if (!nnd_make_resize_axis(m, &own->mode, &own->rule, in->sizes[own->axis], out->sizes[own->axis], &t->axis)) return 0;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = nnd_run_resize_axis;
  return 1;
}

const struct nnd_op nnd_op_resize_axis = {"resize_axis", nnd_open_resize_axis, nnd_make_resize_axis_step};
