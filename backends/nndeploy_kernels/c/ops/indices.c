/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements, rows and slices that numbers pick, which are data: int32 or int64, negative ones count from the end. One
 * that is out of range is told, and picks zeros.
 *
 *   gather            slices along the axis, in the places of the numbers
 *   gather_elements   an element for each number, at its place along the other axes
 *   gather_nd         slices by tuples, the last axis of the numbers, of places along the axes from `axis` on; axes before
 *                     it are those of the data
 *
 * Workers share slices, or rows of elements.
 */
#include "ops/indices.h"
#include "model/words.h"

NND_RECORD(picked)

static int nnd_open_indexed(struct nnd_opener *o) {
  struct nnd_picked *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_picked(o, own)) return 0;
  const struct nnd_tensor *data = &o->model->tensors[own->data], *out = &o->model->tensors[own->out];
  if (data->is_blocked || out->is_blocked || data->element != out->element)
    return nnd_fail(o->message, "elements are picked into another layout or type");
  if (!nnd_has_places(o, own->numbers)) return nnd_fail(o->message, "elements are picked by what is no whole number");
  return 1;
}

/* What instances begin with. */
struct nnd_indexed_fields {
  int is_wide;
};

static int nnd_indexed_done(struct nnd_maker *m, void (*run)(const void *, void *const *, struct nnd_part)) {
  const struct nnd_picked *own = m->step->own;
  struct nnd_indexed_fields *t = (struct nnd_indexed_fields *)m->instance->fields;
  t->is_wide = nnd_shape_of(m, own->numbers)->element == NND_INT64;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->data);
  nnd_give_tensor(m, own->numbers);
  nnd_tell_operations(m, nnd_shape_of(m, own->out)->count, 16);
  m->instance->run = run;
  return 1;
}

/* Data (outer, size, slice) by numbers (count) to (outer, count, slice); `slice` in bytes. */
struct nnd_gather_fields {
  struct nnd_indexed_fields common;
  nnd_size outer, size, count, slice;
};

NND_INLINE void nnd_gather_slices(const struct nnd_gather_fields *t, void *const *at, struct nnd_part part,
                                  nnd_size slice, int is_wide) {
  nnd_size first, last;
  nnd_share(t->outer * t->count, part, &first, &last);
  const nnd_size size = t->size, count = t->count; /* what is written may lie anywhere, for all that a compiler knows */
  const void *numbers = at[2];
  nnd_size number = first % count;
  const char *from = (const char *)at[1] + first / t->count * t->size * slice;
  char *to = (char *)at[0] + first * slice;
  for (nnd_size unit = first; unit < last; unit++, to += slice) {
    const nnd_size place = nnd_told_place_at(&part, numbers, is_wide, number, size);
    if (place >= 0)
      memcpy(to, from + place * slice, (size_t)slice);
    else
      memset(to, 0, (size_t)slice);
    if (++number == count) number = 0, from += size * slice;
  }
}

static void nnd_run_gather_slices(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_gather_fields *t = fields;
  NND_BY_WIDTH(nnd_gather_slices, t->slice, t->common.is_wide, t, at, part)
}

static int nnd_make_gather_slices(struct nnd_maker *m) {
  const struct nnd_picked *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data), *out = nnd_shape_of(m, own->out);
  struct nnd_gather_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (own->axis >= data->rank) return nnd_fail(m->message, "elements are picked along an axis that there is not");
  t->outer = nnd_extent(data, 0, own->axis), t->size = data->sizes[own->axis];
  t->count = nnd_shape_of(m, own->numbers)->count;
  const nnd_size slice = nnd_extent(data, own->axis + 1, data->rank);
  if (!nnd_is_product(out->count, t->outer * slice, t->count))
    return nnd_fail(m->message, "slices do not fit what is made of them");
  t->slice = slice * nnd_element_bytes[data->element];
  return nnd_indexed_done(m, nnd_run_gather_slices);
}

const struct nnd_op nnd_op_gather = {"gather", nnd_open_indexed, nnd_make_gather_slices};

/* Axes of the numbers, the last first, those that go on alike joined; `step` in the data, 0 along the one that the
 * numbers are of. */
struct nnd_elements_axis {
  nnd_size count, step;
};

struct nnd_gather_elements_fields {
  struct nnd_indexed_fields common;
  int rank;
  nnd_size size, step, rows, width; /* of the axis that the numbers are of; of an element in bytes */
  struct nnd_elements_axis axes[NND_MOST_RANK];
};

NND_INLINE void nnd_gather_rows_of_elements(const struct nnd_gather_elements_fields *t, void *const *at,
                                            struct nnd_part part, nnd_size width, int is_wide) {
  const struct nnd_elements_axis row = t->axes[0];
  const nnd_size size = t->size, step = t->step; /* what is written may lie anywhere, for all that a compiler knows */
  nnd_size first, last;
  nnd_share(t->rows, part, &first, &last);
  for (nnd_size number = first; number < last; number++) {
    nnd_size rest = number, base = 0;
    for (int axis = 1; axis < t->rank; axis++) {
      base += rest % t->axes[axis].count * t->axes[axis].step;
      rest /= t->axes[axis].count;
    }
    const char *from = (const char *)at[1] + base * width;
    const void *numbers = at[2];
    char *to = (char *)at[0] + number * row.count * width;
    for (nnd_size i = 0; i < row.count; i++, to += width) {
      const nnd_size place = nnd_told_place_at(&part, numbers, is_wide, number * row.count + i, size);
      if (place >= 0)
        memcpy(to, from + (i * row.step + place * step) * width, (size_t)width);
      else
        memset(to, 0, (size_t)width);
    }
  }
}

static void nnd_run_gather_elements(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_gather_elements_fields *t = fields;
  NND_BY_WIDTH(nnd_gather_rows_of_elements, t->width, t->common.is_wide, t, at, part)
}

static int nnd_make_gather_elements(struct nnd_maker *m) {
  const struct nnd_picked *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data), *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_gather_elements_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (own->axis >= data->rank || numbers->rank != data->rank)
    return nnd_fail(m->message, "elements are picked along an axis that there is not");
  if (numbers->count != nnd_shape_of(m, own->out)->count)
    return nnd_fail(m->message, "numbers and what they pick are not as many");
  for (int axis = data->rank - 1; axis >= 0; axis--) {
    const nnd_size count = numbers->sizes[axis], stride = nnd_extent(data, axis + 1, data->rank);
    const nnd_size step = axis == own->axis ? 0 : stride;
    if (axis != own->axis && count > data->sizes[axis])
      return nnd_fail(m->message, "numbers go beyond the data along axis %d", axis);
    if (count == 1) continue;
    struct nnd_elements_axis *before = t->rank ? &t->axes[t->rank - 1] : NULL;
    if (before && step == before->step * before->count)
      before->count *= count;
    else
      t->axes[t->rank++] = (struct nnd_elements_axis){count, step};
  }
  if (!t->rank) t->axes[t->rank++] = (struct nnd_elements_axis){1, 0};
  t->size = data->sizes[own->axis], t->step = nnd_extent(data, own->axis + 1, data->rank);
  t->rows = numbers->count / t->axes[0].count, t->width = nnd_element_bytes[data->element];
  return nnd_indexed_done(m, nnd_run_gather_elements);
}

const struct nnd_op nnd_op_gather_elements = {"gather_elements", nnd_open_indexed, nnd_make_gather_elements};

/* `tuples` of each batch, of `depth` numbers each; `slice` and `whole`, the data of a batch, in bytes. */
struct nnd_gather_nd_fields {
  struct nnd_indexed_fields common;
  int depth;
  nnd_size units, tuples, slice, whole, sizes[NND_MOST_RANK];
};

NND_INLINE void nnd_gather_tuples(const struct nnd_gather_nd_fields *t, void *const *at, struct nnd_part part,
                                  nnd_size slice, int is_wide) {
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size number = nnd_tuple_at(&part, at[2], is_wide, unit, t->depth, t->sizes);
    char *to = (char *)at[0] + unit * slice;
    if (number >= 0)
      memcpy(to, (const char *)at[1] + unit / t->tuples * t->whole + number * slice, (size_t)slice);
    else
      memset(to, 0, (size_t)slice);
  }
}

static void nnd_run_gather_nd(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_gather_nd_fields *t = fields;
  NND_BY_WIDTH(nnd_gather_tuples, t->slice, t->common.is_wide, t, at, part)
}

static int nnd_make_gather_nd(struct nnd_maker *m) {
  const struct nnd_picked *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data), *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_gather_nd_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (own->axis >= numbers->rank) return nnd_fail(m->message, "slices are picked by numbers that are no tuples");
  const nnd_size depth = numbers->sizes[numbers->rank - 1];
  if (depth > data->rank - own->axis) return nnd_fail(m->message, "slices are picked along more axes than there are");
  t->depth = (int)depth;
  for (int axis = 0; axis < own->axis; axis++)
    if (data->sizes[axis] != numbers->sizes[axis])
      return nnd_fail(m->message, "data and numbers differ along axis %d", axis);
  for (int axis = 0; axis < t->depth; axis++) t->sizes[axis] = data->sizes[own->axis + axis];
  const nnd_size slice = nnd_extent(data, own->axis + t->depth, data->rank);
  t->units = numbers->count / depth;
  t->tuples = nnd_extent(numbers, own->axis, numbers->rank - 1);
  if (!nnd_is_product(nnd_shape_of(m, own->out)->count, t->units, slice))
    return nnd_fail(m->message, "slices do not fit what is made of them");
  t->slice = slice * nnd_element_bytes[data->element];
  t->whole = nnd_extent(data, own->axis, data->rank) * nnd_element_bytes[data->element];
  return nnd_indexed_done(m, nnd_run_gather_nd);
}

const struct nnd_op nnd_op_gather_nd = {"gather_nd", nnd_open_indexed, nnd_make_gather_nd};
