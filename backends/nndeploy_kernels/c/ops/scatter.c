/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of data with updates put in, or combined with what is there, at places that are data.
 *
 *   scatter_elements   an element for each number, along the axis
 *   scatter_nd         slices by tuples, the last axis of the numbers, of places along the first axes
 *
 * Numbers are int32 or int64, negative ones count from the end; one that is out of range is told, and skipped. Updates
 * of one place are taken in their order, whatever the workers: these share the output, and each looks at all numbers
 * that may be of its own.
 */
#include "model/words.h"
#include "ops/indices.h"

NND_SET(reduction);

#define NND_MOST_SHARES 8 /* of an output: each reads all numbers */

typedef void (*nnd_combine)(void *to, const void *from, nnd_size count);

#define NND_PUT_OF(name, type)                                                                                         \
  static void name(void *to, const void *from, nnd_size count) {                                                       \
    if (count == 1)                                                                                                    \
      *(type *)to = *(const type *)from;                                                                               \
    else                                                                                                               \
      memcpy(to, from, (size_t)count * sizeof(type));                                                                  \
  }
NND_PUT_OF(nnd_put_1, int8_t)
NND_PUT_OF(nnd_put_4, int32_t)
NND_PUT_OF(nnd_put_8, int64_t)

#define NND_COMBINE(name, type, expression)                                                                            \
  static void name(void *to, const void *from, nnd_size count) {                                                       \
    type *restrict out = to;                                                                                           \
    const type *restrict in = from;                                                                                    \
    for (nnd_size i = 0; i < count; i++) {                                                                             \
      const type a = out[i], b = in[i];                                                                                \
      out[i] = (type)(expression);                                                                                     \
    }                                                                                                                  \
  }
/* Sums and products of whole numbers wrap around: `wide` is unsigned, or float. A NaN of either is the result. */
#define NND_COMBINES(suffix, type, wide)                                                                               \
  NND_COMBINE(nnd_add_##suffix, type, (wide)a + (wide)b)                                                               \
  NND_COMBINE(nnd_mul_##suffix, type, (wide)a *(wide)b)                                                                \
  NND_COMBINE(nnd_max_##suffix, type, a > b || a != a ? a : b)                                                         \
  NND_COMBINE(nnd_min_##suffix, type, a < b || a != a ? a : b)
NND_COMBINES(float32, float, float)
NND_COMBINES(int32, int32_t, uint32_t)
NND_COMBINES(int64, int64_t, uint64_t)
NND_COMBINES(uint8, uint8_t, uint32_t)
NND_COMBINES(int8, int8_t, uint32_t)

#define NND_COMBINED(suffix) {NULL, nnd_add_##suffix, nnd_mul_##suffix, nnd_max_##suffix, nnd_min_##suffix}

/* Returns NULL where elements of this type are not combined. */
static nnd_combine nnd_combine_of(const struct nnd_shape *shape, int reduction) {
  static const nnd_combine of[NND_NUM_ELEMENTS][NND_CHOICES_reduction(NND_ONE)] = {
      [NND_FLOAT32] = NND_COMBINED(float32),
      [NND_INT32] = NND_COMBINED(int32),
      [NND_INT64] = NND_COMBINED(int64),
      [NND_UINT8] = NND_COMBINED(uint8),
      [NND_INT8] = NND_COMBINED(int8)};
  const nnd_size width = nnd_element_bytes[shape->element];
  if (reduction == NND_PUT) return width == 8 ? nnd_put_8 : width == 4 ? nnd_put_4 : nnd_put_1;
  return of[shape->element][reduction];
}

NND_RECORD(scatter_elements)
NND_READER(scatter_nd, struct nnd_scatter_elements)

/* What instances begin with; `width` of an element in bytes. */
struct nnd_scatter_fields {
  int is_wide;
  nnd_size width;
  nnd_combine combine;
};

static int nnd_fits_scatter(struct nnd_opener *o, const struct nnd_scatter_elements *own) {
  o->step->takes_empty = 1; /* without updates it is a copy; data that have no element are no output that has one */
  const struct nnd_tensor *data = &o->model->tensors[own->data], *updates = &o->model->tensors[own->updates];
  const struct nnd_tensor *out = &o->model->tensors[own->out];
  if (data->is_blocked || updates->is_blocked || out->is_blocked || data->element != out->element ||
      updates->element != out->element)
    return nnd_fail(o->message, "elements are put into those of another layout or type");
  if (!nnd_has_places(o, own->numbers)) return nnd_fail(o->message, "elements are put where no whole number says");
  return 1;
}

static int nnd_open_scatter_elements(struct nnd_opener *o) {
  struct nnd_scatter_elements *own = nnd_own(o, sizeof *own);
  return own && nnd_read_scatter_elements(o, own) && nnd_fits_scatter(o, own);
}

static int nnd_open_scatter_nd(struct nnd_opener *o) {
  struct nnd_scatter_elements *own = nnd_own(o, sizeof *own);
  return own && nnd_read_scatter_nd(o, own) && nnd_fits_scatter(o, own);
}

static int nnd_scatter_done(struct nnd_maker *m, void (*run)(const void *, void *const *, struct nnd_part)) {
  const struct nnd_scatter_elements *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data);
  struct nnd_scatter_fields *t = (struct nnd_scatter_fields *)m->instance->fields;
  t->is_wide = nnd_shape_of(m, own->numbers)->element == NND_INT64;
  t->width = nnd_element_bytes[data->element];
  t->combine = nnd_combine_of(data, own->reduction);
  if (!t->combine) return nnd_fail(m->message, "elements of this type are not combined");
  if (data->count != nnd_shape_of(m, own->out)->count)
    return nnd_fail(m->message, "a copy with updates has another size than the data");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->data);
  nnd_give_tensor(m, own->numbers);
  nnd_give_tensor(m, own->updates);
  m->instance->run = run;
  return 1;
}

/* An axis but that which the numbers are of: `size` of the data, `count` of the numbers, steps in both. */
struct nnd_scatter_axis {
  nnd_size size, count, step, by;
};

#define NND_SCATTER_PIECE 64 /* elements of a row that a worker does at least */

/* A unit is a piece of the row axis, the innermost one, at one place along the other `rank` axes. */
struct nnd_scatter_elements_fields {
  struct nnd_scatter_fields common;
  int rank;
  nnd_size units, pieces;
  struct nnd_scatter_axis along, row, axes[NND_MOST_RANK];
};

/* Where a unit lies in the data and in the numbers. */
struct nnd_scatter_unit {
  nnd_size begin, end, data, numbers;
  int has_numbers;
};

static struct nnd_scatter_unit nnd_scatter_unit(const struct nnd_scatter_elements_fields *t, nnd_size number) {
  nnd_size rest = number / t->pieces;
  struct nnd_scatter_unit unit = {.begin = number % t->pieces * NND_SCATTER_PIECE, .has_numbers = 1};
  unit.end = number % t->pieces + 1 == t->pieces ? t->row.size : unit.begin + NND_SCATTER_PIECE;
  for (int axis = 0; axis < t->rank; axis++) {
    const nnd_size at = rest % t->axes[axis].size;
    unit.data += at * t->axes[axis].step, unit.numbers += at * t->axes[axis].by;
    unit.has_numbers &= at < t->axes[axis].count;
    rest /= t->axes[axis].size;
  }
  return unit;
}

/* Whether numbers side by side are one number, as those are of an index that was expanded along a row. */
static int nnd_is_one_number(const void *numbers, int is_wide, nnd_size first, nnd_size count) {
  const int64_t *wide = (const int64_t *)numbers + (is_wide ? first : 0);
  const int32_t *narrow = (const int32_t *)numbers + (is_wide ? 0 : first);
  int64_t differs = 0;
  if (is_wide)
    for (nnd_size i = 1; i < count; i++) differs |= wide[i] ^ wide[0];
  else
    for (nnd_size i = 1; i < count; i++) differs |= narrow[i] ^ narrow[0];
  return !differs;
}

static void nnd_run_scatter_elements(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_scatter_elements_fields *t = fields;
  const nnd_size width = t->common.width;
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  for (nnd_size number = first; number < last; number++) {
    const struct nnd_scatter_unit unit = nnd_scatter_unit(t, number);
    char *to = (char *)at[0] + unit.data * width;
    const char *from = (const char *)at[1] + unit.data * width, *updates = at[3];
    if (t->along.step == 1) /* of the innermost axis of the data: the row is one element */
      memcpy(to, from, (size_t)(t->along.size * width));
    else
      for (nnd_size k = 0; k < t->along.size; k++) {
        const nnd_size offset = (k * t->along.step + unit.begin) * width;
        memcpy(to + offset, from + offset, (size_t)((unit.end - unit.begin) * width));
      }
    if (!unit.has_numbers) continue;
    const nnd_size end = nnd_min(unit.end, t->row.count), count = end - unit.begin;
    const int is_row = t->row.step == 1 && t->row.by == 1 && count > 1;
    for (nnd_size k = 0; k < t->along.count; k++) {
      const nnd_size first = unit.numbers + k * t->along.by + unit.begin;
      if (is_row && nnd_is_one_number(at[2], t->common.is_wide, first, count)) {
        const nnd_size place = nnd_told_place_at(&part, at[2], t->common.is_wide, first, t->along.size);
        if (place >= 0)
          t->common.combine(to + (place * t->along.step + unit.begin) * width, updates + first * width, count);
        continue;
      }
      for (nnd_size i = unit.begin; i < end; i++) {
        const nnd_size n = unit.numbers + k * t->along.by + i * t->row.by;
        const nnd_size place = nnd_told_place_at(&part, at[2], t->common.is_wide, n, t->along.size);
        if (place >= 0)
          t->common.combine(to + (place * t->along.step + i * t->row.step) * width, updates + n * width, 1);
      }
    }
  }
}

static int nnd_make_scatter_elements(struct nnd_maker *m) {
  const struct nnd_scatter_elements *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data), *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_scatter_elements_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (own->axis >= data->rank || numbers->rank != data->rank || nnd_shape_of(m, own->updates)->count != numbers->count)
    return nnd_fail(m->message, "updates do not fit their numbers, or these the data");
  t->row = (struct nnd_scatter_axis){1, 1, 1, 1};
  t->units = 1;
  for (int axis = data->rank - 1; axis >= 0; axis--) {
    const struct nnd_scatter_axis one = {data->sizes[axis], numbers->sizes[axis],
                                         nnd_extent(data, axis + 1, data->rank),
                                         nnd_extent(numbers, axis + 1, numbers->rank)};
    if (axis == own->axis) {
      t->along = one;
      continue;
    }
    if (one.count > one.size) return nnd_fail(m->message, "numbers go beyond the data along axis %d", axis);
    struct nnd_scatter_axis *before = axis > own->axis ? &t->row : t->rank ? &t->axes[t->rank - 1] : NULL;
    if (before && before->count == before->size && one.step == before->step * before->size &&
        one.by == before->by * before->count) {
      before->count *= one.count;
      before->size *= one.size;
    } else
      t->axes[t->rank++] = one;
  }
  for (int axis = 0; axis < t->rank; axis++) t->units *= t->axes[axis].size;
  t->pieces = nnd_max(1, t->row.size / NND_SCATTER_PIECE);
  t->units *= t->pieces;
  return nnd_scatter_done(m, nnd_run_scatter_elements);
}

const struct nnd_op nnd_op_scatter_elements = {"scatter_elements", nnd_open_scatter_elements,
                                               nnd_make_scatter_elements};

/* Data (rows, slice), `tuples` of `depth` numbers each. */
struct nnd_scatter_nd_fields {
  struct nnd_scatter_fields common;
  int depth;
  nnd_size rows, tuples, slice, sizes[NND_MOST_RANK];
};

static void nnd_run_scatter_nd(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_scatter_nd_fields *t = fields;
  const nnd_size slice_bytes = t->slice * t->common.width, shares = nnd_min(NND_MOST_SHARES, t->rows);
  nnd_size first, last;
  nnd_share(shares, part, &first, &last);
  if (first >= last) return;
  first = first * t->rows / shares, last = last * t->rows / shares;
  memcpy((char *)at[0] + first * slice_bytes, (const char *)at[1] + first * slice_bytes,
         (size_t)((last - first) * slice_bytes));
  for (nnd_size tuple = 0; tuple < t->tuples; tuple++) {
    const nnd_size row = nnd_tuple_at(&part, at[2], t->common.is_wide, tuple, t->depth, t->sizes);
    if (row >= first && row < last)
      t->common.combine((char *)at[0] + row * slice_bytes, (const char *)at[3] + tuple * slice_bytes, t->slice);
  }
}

static int nnd_make_scatter_nd(struct nnd_maker *m) {
  const struct nnd_scatter_elements *own = m->step->own;
  const struct nnd_shape *data = nnd_shape_of(m, own->data), *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_scatter_nd_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size depth = numbers->rank ? numbers->sizes[numbers->rank - 1] : 0;
  if (depth < 1 || depth > data->rank) return nnd_fail(m->message, "slices are put along axes that there are not");
  t->depth = (int)depth;
  for (int axis = 0; axis < t->depth; axis++) t->sizes[axis] = data->sizes[axis];
  t->rows = nnd_extent(data, 0, t->depth), t->slice = nnd_extent(data, t->depth, data->rank);
  t->tuples = numbers->count / depth;
  if (!nnd_is_product(nnd_shape_of(m, own->updates)->count, t->tuples, t->slice))
    return nnd_fail(m->message, "updates do not fit their numbers, or these the data");
  return nnd_scatter_done(m, nnd_run_scatter_nd);
}

const struct nnd_op nnd_op_scatter_nd = {"scatter_nd", nnd_open_scatter_nd, nnd_make_scatter_nd};
