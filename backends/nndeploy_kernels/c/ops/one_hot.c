/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as an axis on which one element is on.
 *
 * Negative numbers count from the end of the new axis; where one is no place, all is off.
 *
 * Workers share rows: the new axis where it is the last, else what lies behind it.
 */
#include "model/words.h"
#include "ops/indices.h"

NND_RECORD(one_hot)

struct nnd_one_hot_fields {
  int is_wide;
  nnd_size outer, depth, inner, width;
};

static int nnd_open_one_hot(struct nnd_opener *o) {
  struct nnd_one_hot *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_one_hot(o, own)) return 0;
  const struct nnd_tensor *values = &o->model->tensors[own->values], *out = &o->model->tensors[own->out];
  if (values->is_blocked || out->is_blocked || values->element != out->element)
    return nnd_fail(o->message, "elements are on in another layout or type");
  if (!nnd_has_places(o, own->numbers)) return nnd_fail(o->message, "elements are on where no whole number says");
  return 1;
}

NND_INLINE void nnd_one_hot_rows(const struct nnd_one_hot_fields *t, void *const *at, struct nnd_part part,
                                 nnd_size width, int is_wide) {
  const char *off = at[1], *on = off + width;
  nnd_size first, last;
  nnd_share(t->inner > 1 ? t->outer * t->depth : t->outer, part, &first, &last);
  for (nnd_size row = first; row < last; row++) {
    const nnd_size count = t->inner > 1 ? t->inner : t->depth;
    char *to = (char *)at[0] + row * count * width;
    if (t->inner > 1) {
      const nnd_size begin = row / t->depth * t->inner, number = row % t->depth;
      for (nnd_size i = 0; i < count; i++)
        memcpy(to + i * width, nnd_place_at(at[2], is_wide, begin + i, t->depth) == number ? on : off, (size_t)width);
    } else {
      const nnd_size place = nnd_place_at(at[2], is_wide, row, t->depth);
      for (nnd_size i = 0; i < count; i++) memcpy(to + i * width, off, (size_t)width);
      if (place >= 0) memcpy(to + place * width, on, (size_t)width);
    }
  }
}

static void nnd_run_one_hot(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_one_hot_fields *t = fields;
  NND_BY_WIDTH(nnd_one_hot_rows, t->width, t->is_wide, t, at, part)
}

static int nnd_make_one_hot(struct nnd_maker *m) {
  const struct nnd_one_hot *own = m->step->own;
  const struct nnd_shape *numbers = nnd_shape_of(m, own->numbers), *out = nnd_shape_of(m, own->out);
  struct nnd_one_hot_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (own->axis >= out->rank) return nnd_fail(m->message, "elements are on along an axis that there is not");
  t->outer = nnd_extent(out, 0, own->axis), t->depth = out->sizes[own->axis];
  t->inner = nnd_extent(out, own->axis + 1, out->rank);
  if (numbers->count != t->outer * t->inner || nnd_shape_of(m, own->values)->count != 2)
    return nnd_fail(m->message, "numbers or values do not fit what is made of them");
  t->width = nnd_element_bytes[out->element], t->is_wide = numbers->element == NND_INT64;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->values);
  nnd_give_tensor(m, own->numbers);
  m->instance->run = nnd_run_one_hot;
  return 1;
}

const struct nnd_op nnd_op_one_hot = {"one_hot", nnd_open_one_hot, nnd_make_one_hot};
