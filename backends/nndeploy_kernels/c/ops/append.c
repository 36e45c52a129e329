/* SPDX-License-Identifier: Apache-2.0
 *
 * An input with more behind it, in an output that may have room for what later calls append: a cache that grows.
 *
 *   append                 output, input, what follows it, axis
 *
 * Where the caller gives the memory of the output as that of the input too, this already begins with it, and nothing of
 * it is copied.
 */
#include "kernels/rows.h"
#include "model/model.h"

struct nnd_append_own {
  int out, past, more, axis;
};

struct nnd_append_fields {
  nnd_size outer, past, more, whole; /* the last three in bytes */
};

static int nnd_open_append(struct nnd_opener *o) {
  struct nnd_append_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  o->step->takes_empty = 1;
  own->out = nnd_write_any_tensor(o);
  own->past = nnd_read_any_tensor(o);
  own->more = nnd_read_any_tensor(o);
  own->axis = (int)nnd_word(o, 0, NND_MOST_RANK - 1);
  if (o->message->failed) return 0;
  const struct nnd_tensor *out = &o->model->tensors[own->out], *past = &o->model->tensors[own->past],
                          *more = &o->model->tensors[own->more];
  if (out->is_blocked || past->is_blocked || more->is_blocked || past->element != out->element ||
      more->element != out->element || past->rank != out->rank || more->rank != out->rank || own->axis >= out->rank)
    return nnd_fail(o->message, "parts of another layout, type or rank");
  return 1;
}

static void nnd_run_append(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_append_fields *t = fields;
  nnd_size first, last;
  nnd_share(t->outer, part, &first, &last);
  char *to = (char *)at[0] + first * t->whole;
  if (at[1] != at[0]) nnd_copy_rows(to, t->whole, (const char *)at[1] + first * t->past, t->past, t->past, last - first);
  nnd_copy_rows(to + t->past, t->whole, (const char *)at[2] + first * t->more, t->more, t->more, last - first);
}

static int nnd_make_append(struct nnd_maker *m) {
  const struct nnd_append_own *own = m->step->own;
  const struct nnd_shape *out = nnd_shape_of(m, own->out), *past = nnd_shape_of(m, own->past),
                         *more = nnd_shape_of(m, own->more);
  struct nnd_append_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  for (int axis = 0; axis < out->rank; axis++) {
    const int fits = axis == own->axis
                         ? past->sizes[axis] + more->sizes[axis] <= out->sizes[axis]
                         : past->sizes[axis] == out->sizes[axis] && more->sizes[axis] == out->sizes[axis];
    if (!fits) return nnd_fail(m->message, "what is appended does not fit");
  }
  nnd_size inner = nnd_element_bytes[out->element];
  t->outer = 1;
  for (int axis = 0; axis < own->axis; axis++) t->outer *= out->sizes[axis];
  for (int axis = own->axis + 1; axis < out->rank; axis++) inner *= out->sizes[axis];
  t->past = past->sizes[own->axis] * inner, t->more = more->sizes[own->axis] * inner;
  t->whole = out->sizes[own->axis] * inner;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->past);
  nnd_give_tensor(m, own->more);
  nnd_tell_operations(m, more->count, 8); /* the past mostly lies where it is to be */
  m->instance->run = nnd_run_append;
  return 1;
}

const struct nnd_op nnd_op_append = {"append", nnd_open_append, nnd_make_append};
