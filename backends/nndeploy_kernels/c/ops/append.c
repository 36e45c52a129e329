/* SPDX-License-Identifier: Apache-2.0
 *
 * An input with more behind it, in an output that may have room for what later calls append: a cache that grows.
 *
 * append_at: what is new begins at places of its own, with zeros behind it, up to `length`. A place that the input or
 * `length` does not allow is told, and the nearest one is taken.
 *
 * Where the caller gives the memory of the output as that of the input too, this already begins with it, and nothing of
 * it is copied. What earlier callers hold of it must not change, so append_at then writes behind the input or nothing.
 */
#include "kernels/rows.h"
#include "model/words.h"
#include "ops/indices.h"

NND_RECORD(append_at)
NND_READER(append, struct nnd_append_at)

struct nnd_append_fields {
  int is_wide;
  nnd_size outer, past, more, whole;        /* the last three in bytes */
  nnd_size rows, inner, last_place, length; /* of append_at: rows for each place, bytes of one, places */
};

static int nnd_check_append(struct nnd_opener *o, const struct nnd_append_at *own) {
  o->step->takes_empty = 1;
  const struct nnd_tensor *out = &o->model->tensors[own->out], *past = &o->model->tensors[own->past],
                          *more = &o->model->tensors[own->new];
  if (out->is_blocked || past->is_blocked || more->is_blocked || past->element != out->element ||
      more->element != out->element || past->rank != out->rank || more->rank != out->rank || own->axis >= out->rank)
    return nnd_fail(o->message, "parts of another layout, type or rank");
  return 1;
}

static int nnd_open_append(struct nnd_opener *o) {
  struct nnd_append_at *own = nnd_own(o, sizeof *own);
  return own && nnd_read_append(o, own) && nnd_check_append(o, own);
}

static int nnd_open_append_at(struct nnd_opener *o) {
  struct nnd_append_at *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_append_at(o, own) || !nnd_check_append(o, own)) return 0;
  if (!own->axis || !nnd_has_places(o, own->places))
    return nnd_fail(o->message, "parts along the first axis, or at what are no places");
  return 1;
}

static void nnd_run_append(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_append_fields *t = fields;
  nnd_size first, last;
  nnd_share(t->outer, part, &first, &last);
  char *to = (char *)at[0] + first * t->whole;
  if (at[1] != at[0])
    nnd_copy_rows(to, t->whole, (const char *)at[1] + first * t->past, t->past, t->past, last - first);
  nnd_copy_rows(to + t->past, t->whole, (const char *)at[2] + first * t->more, t->more, t->more, last - first);
}

static void nnd_run_append_at(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_append_fields *t = fields;
  nnd_size row, last;
  nnd_share(t->outer, part, &row, &last);
  for (; row < last; row++) {
    const int64_t said = nnd_whole_at(at[3], t->is_wide, row / t->rows);
    if (said < 0 || said > t->last_place) nnd_out_of_range(&part, row / t->rows, said, t->last_place + 1);
    const nnd_size before = (said < 0 ? 0 : said > t->last_place ? t->last_place : (nnd_size)said) * t->inner;
    char *to = (char *)at[0] + row * t->whole;
    if (at[1] == at[0] && before != t->past) continue;
    if (at[1] != at[0]) memcpy(to, (const char *)at[1] + row * t->past, (size_t)before);
    memcpy(to + before, (const char *)at[2] + row * t->more, (size_t)t->more);
    memset(to + before + t->more, 0, (size_t)(t->length * t->inner - before - t->more));
  }
}

static int nnd_make_append(struct nnd_maker *m) {
  const struct nnd_append_at *own = m->step->own;
  const struct nnd_shape *out = nnd_shape_of(m, own->out), *past = nnd_shape_of(m, own->past),
                         *more = nnd_shape_of(m, own->new);
  struct nnd_append_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  for (int axis = 0; axis < out->rank; axis++) {
    const int fits = axis == own->axis ? past->sizes[axis] + more->sizes[axis] <= out->sizes[axis]
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
  nnd_give_tensor(m, own->new);
  nnd_tell_operations(m, more->count, 8); /* the past mostly lies where it is to be */
  m->instance->run = nnd_run_append;
  return 1;
}

static int nnd_make_append_at(struct nnd_maker *m) {
  const struct nnd_append_at *own = m->step->own;
  const struct nnd_shape *out = nnd_shape_of(m, own->out), *past = nnd_shape_of(m, own->past),
                         *more = nnd_shape_of(m, own->new), *places = nnd_shape_of(m, own->places);
  struct nnd_append_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size length = nnd_size_of(m, own->length), added = more->sizes[own->axis], of_past = past->sizes[own->axis];
  int fits = places->count == out->sizes[0] && length <= out->sizes[own->axis] && added <= length;
  for (int axis = 0; axis < out->rank; axis++)
    fits =
        fits && (axis == own->axis || (past->sizes[axis] == out->sizes[axis] && more->sizes[axis] == out->sizes[axis]));
  if (!fits) return nnd_fail(m->message, "what is appended at places does not fit");
  t->inner = nnd_element_bytes[out->element];
  t->rows = nnd_extent(out, 1, own->axis), t->inner *= nnd_extent(out, own->axis + 1, out->rank);
  t->outer = out->sizes[0] * t->rows, t->is_wide = places->element == NND_INT64, t->length = length;
  t->last_place = nnd_min(of_past, length - added);
  t->past = of_past * t->inner, t->more = added * t->inner, t->whole = out->sizes[own->axis] * t->inner;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->past);
  nnd_give_tensor(m, own->new);
  nnd_give_tensor(m, own->places);
  nnd_tell_operations(m, past->count + more->count, 1);
  m->instance->run = nnd_run_append_at;
  return 1;
}

const struct nnd_op nnd_op_append = {"append", nnd_open_append, nnd_make_append};
const struct nnd_op nnd_op_append_at = {"append_at", nnd_open_append_at, nnd_make_append_at};
