/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that follow from sizes, or from a first one and a difference.
 *
 * Whole numbers of arange wrap, floats are computed as doubles. Workers share elements.
 */
#include "model/words.h"

NND_RECORD(size)
NND_RECORD(sizes)
NND_RECORD(arange)

static int nnd_open_sizes(struct nnd_opener *o) {
  struct nnd_sizes *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_sizes(o, own)) return 0;
  return o->model->tensors[own->out].element == NND_INT64 || nnd_fail(o->message, "sizes are int64");
}

struct nnd_sizes_fields {
  nnd_size count, sizes[NND_MOST_RANK];
};

static void nnd_run_sizes(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_sizes_fields *t = fields;
  int64_t *to = at[0];
  for (nnd_size i = 0; part.number == 0 && i < t->count; i++) to[i] = t->sizes[i];
}

static int nnd_make_sizes(struct nnd_maker *m) {
  const struct nnd_sizes *own = m->step->own;
  struct nnd_sizes_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->count = own->num_sizes;
  for (nnd_size i = 0; i < t->count; i++) t->sizes[i] = nnd_size_of(m, own->sizes[i].size);
  if (nnd_shape_of(m, own->out)->count != t->count) return nnd_fail(m->message, "more sizes than room for them");
  nnd_give_tensor(m, own->out);
  nnd_tell_operations(m, 1, 0);
  m->instance->run = nnd_run_sizes;
  return 1;
}

const struct nnd_op nnd_op_sizes = {"sizes", nnd_open_sizes, nnd_make_sizes};

static int nnd_open_arange(struct nnd_opener *o) {
  struct nnd_arange *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_arange(o, own)) return 0;
  const struct nnd_tensor *out = &o->model->tensors[own->out];
  if (out->is_blocked || o->model->tensors[own->start].element != out->element ||
      o->model->tensors[own->step].element != out->element)
    return nnd_fail(o->message, "a range of several types");
  return 1;
}

struct nnd_arange_fields {
  nnd_size count;
};

#define NND_ARANGE(name, type, wide)                                                                                   \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    type *to = at[0];                                                                                                  \
    const wide start = (wide) * (const type *)at[1], step = (wide) * (const type *)at[2];                              \
    nnd_size first, last;                                                                                              \
    nnd_share(((const struct nnd_arange_fields *)fields)->count, part, &first, &last);                                 \
    for (nnd_size i = first; i < last; i++) to[i] = (type)(start + (wide)i * step);                                    \
  }
NND_ARANGE(nnd_run_arange_float, float, double)
NND_ARANGE(nnd_run_arange_int32, int32_t, uint32_t)
NND_ARANGE(nnd_run_arange_int64, int64_t, uint64_t)

static int nnd_make_arange(struct nnd_maker *m) {
  const struct nnd_arange *own = m->step->own;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  struct nnd_arange_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->count = out->count;
  if (nnd_shape_of(m, own->start)->count != 1 || nnd_shape_of(m, own->step)->count != 1)
    return nnd_fail(m->message, "a range from more than one number");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->start);
  nnd_give_tensor(m, own->step);
  switch (out->element) {
    case NND_FLOAT32: m->instance->run = nnd_run_arange_float; return 1;
    case NND_INT32: m->instance->run = nnd_run_arange_int32; return 1;
    case NND_INT64: m->instance->run = nnd_run_arange_int64; return 1;
    default: return nnd_fail(m->message, "a range of another type than float32, int32 or int64");
  }
}

const struct nnd_op nnd_op_arange = {"arange", nnd_open_arange, nnd_make_arange};
