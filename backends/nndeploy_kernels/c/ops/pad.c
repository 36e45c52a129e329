/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements with more around them: a number, or what the elements themselves say.
 *
 * The value is a tensor of one element, which the mode NND_PAD_VALUE alone reads. Workers share rows.
 */
#include "model/words.h"
#include "ops/indices.h"
#include "ops/reach.h"

NND_SET(pad_mode);

NND_RECORD(pad_axis)
NND_RECORD(pad_axis_at)
NND_RECORD(pad_side)
NND_RECORD(padded_copy)
NND_RECORD(padded_at)
NND_RECORD(padded_image)

/* `rank` is at least 1; `offset` in elements. */
struct nnd_pad_fields {
  int mode, rank;
  nnd_size offset, rows;
  struct nnd_pad_axis axes[NND_MOST_RANK]; /* the last first, axes that go on alike joined */
};

static int nnd_fits_padding(struct nnd_opener *o, int x, int number, int y, int is_blocked) {
  const struct nnd_tensor *in = &o->model->tensors[x], *value = &o->model->tensors[number],
                          *out = &o->model->tensors[y];
  return (in->is_blocked == is_blocked && out->is_blocked == is_blocked && !value->is_blocked &&
          in->element == out->element && value->element == out->element) ||
         nnd_fail(o->message, "elements are padded in another layout or type");
}

static int nnd_open_pad(struct nnd_opener *o) {
  struct nnd_padded_copy *own = nnd_own(o, sizeof *own);
  return own && nnd_read_padded_copy(o, own) && nnd_fits_padding(o, own->in, own->value, own->out, 0);
}

static int nnd_open_pad_at(struct nnd_opener *o) {
  struct nnd_padded_at *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_padded_at(o, own) || !nnd_fits_padding(o, own->in, own->value, own->out, 0)) return 0;
  return nnd_has_places(o, own->numbers) || nnd_fail(o->message, "elements are padded by what is no whole number");
}

static int nnd_open_pad_image(struct nnd_opener *o) {
  struct nnd_padded_image *own = nnd_own(o, sizeof *own);
  return own && nnd_read_padded_image(o, own) && nnd_fits_padding(o, own->in, own->value, own->out, 1);
}

/* Which of `count` elements stands at place `i`, which may lie before or behind them; -1: none. */
static nnd_size nnd_pad_place(int mode, nnd_size i, nnd_size count) {
  if (i >= 0 && i < count) return i;
  switch (mode) {
    case NND_PAD_EDGE: return i < 0 ? 0 : count - 1;
    case NND_PAD_WRAP: return (i % count + count) % count;
    case NND_PAD_REFLECT: {
      const nnd_size period = nnd_max(1, 2 * (count - 1)), place = (i % period + period) % period;
      return nnd_min(place, period - place);
    }
    default: return -1;
  }
}

/* Where a row begins among the elements: a place along each axis but the last, and what it adds up to. */
struct nnd_pad_row {
  nnd_size index[NND_MOST_RANK], places[NND_MOST_RANK], from;
  int outside; /* axes along which it lies where there is only the value */
};

static void nnd_pad_move(const struct nnd_pad_fields *t, struct nnd_pad_row *row, int axis, nnd_size index) {
  const struct nnd_pad_axis *one = &t->axes[axis];
  const nnd_size place = nnd_pad_place(t->mode, index - one->begin, one->count), before = row->places[axis];
  row->outside += (place < 0) - (before < 0);
  row->from += (nnd_max(place, 0) - nnd_max(before, 0)) * one->step;
  row->index[axis] = index, row->places[axis] = place;
}

static void nnd_pad_next(const struct nnd_pad_fields *t, struct nnd_pad_row *row) {
  for (int axis = 1; axis < t->rank; axis++) {
    const int is_done = row->index[axis] + 1 == t->axes[axis].size;
    nnd_pad_move(t, row, axis, is_done ? 0 : row->index[axis] + 1);
    if (!is_done) return;
  }
}

static struct nnd_pad_row nnd_pad_row(const struct nnd_pad_fields *t, nnd_size number) {
  struct nnd_pad_row row = {.from = t->offset};
  for (int axis = 1; axis < t->rank; axis++) {
    nnd_pad_move(t, &row, axis, number % t->axes[axis].size);
    number /= t->axes[axis].size;
  }
  return row;
}

struct nnd_pixel { /* of one channel block */
  nnd_elem lanes[NND_LANES];
};

/* What stands around a row is little: no call of a function, which the compiler would make of a loop. */
#define NND_PADDED_ROWS(name, type)                                                                                    \
  NND_INLINE void name##_around(const struct nnd_pad_fields *t, type *to, nnd_size first, nnd_size last,               \
                                const type *in, type value) {                                                          \
    const struct nnd_pad_axis row = t->axes[0];                                                                        \
    for (nnd_size i = first; i < last; i++) {                                                                          \
      to[i] = t->mode == NND_PAD_VALUE ? value : in[nnd_pad_place(t->mode, i - row.begin, row.count) * row.step];      \
      __asm__ volatile("" : "+r"(i));                                                                                  \
    }                                                                                                                  \
  }                                                                                                                    \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_pad_fields *t = fields;                                                                           \
    const struct nnd_pad_axis line = t->axes[0];                                                                       \
    nnd_size first, last;                                                                                              \
    nnd_share(t->rows, part, &first, &last);                                                                           \
    if (first >= last) return;                                                                                         \
    struct nnd_pad_row row = nnd_pad_row(t, first);                                                                    \
    const type value = name##_value(at[2]);                                                                            \
    type *to = (type *)at[0] + first * line.size;                                                                      \
    for (nnd_size number = first; number < last; number++, to += line.size, nnd_pad_next(t, &row)) {                   \
      const type *in = (const type *)at[1] + row.from;                                                                 \
      const nnd_size end = line.begin + line.count;                                                                    \
      if (row.outside) {                                                                                               \
        for (nnd_size i = 0; i < line.size; i++) to[i] = value;                                                        \
        continue;                                                                                                      \
      }                                                                                                                \
      name##_around(t, to, 0, line.begin, in, value);                                                                  \
      if (line.step == 1)                                                                                              \
        memcpy(to + line.begin, in, (size_t)line.count * sizeof *to);                                                  \
      else                                                                                                             \
        for (nnd_size i = 0; i < line.count; i++) to[line.begin + i] = in[i * line.step];                              \
      name##_around(t, to, end, line.size, in, value);                                                                 \
    }                                                                                                                  \
  }

static int8_t nnd_run_pad_1_value(const void *value) { return *(const int8_t *)value; }
static int32_t nnd_run_pad_4_value(const void *value) { return *(const int32_t *)value; }
static int64_t nnd_run_pad_8_value(const void *value) { return *(const int64_t *)value; }
static struct nnd_pixel nnd_run_pad_image_value(const void *value) {
  struct nnd_pixel pixel;
  for (int lane = 0; lane < NND_LANES; lane++) pixel.lanes[lane] = nnd_to_elem(*(const float *)value);
  return pixel;
}
NND_PADDED_ROWS(nnd_run_pad_1, int8_t)
NND_PADDED_ROWS(nnd_run_pad_4, int32_t)
NND_PADDED_ROWS(nnd_run_pad_8, int64_t)
NND_PADDED_ROWS(nnd_run_pad_image, struct nnd_pixel)

/* Adds an axis, outside of those that are there. Axes that go on alike are one, but what surrounds an axis says which of
 * its own elements stand there. */
static void nnd_pad_add(struct nnd_pad_fields *t, struct nnd_pad_axis one) {
  struct nnd_pad_axis *before = t->rank ? &t->axes[t->rank - 1] : NULL;
  if (one.size == 1) return;
  if (before && before->count == before->size && one.step == before->step * before->size &&
      (t->mode == NND_PAD_VALUE || one.count == one.size))
    *before = (struct nnd_pad_axis){one.size * before->size, one.begin * before->size, one.count * before->size,
                                    before->step};
  else
    t->axes[t->rank++] = one;
}

static int nnd_pad_done(struct nnd_maker *m, struct nnd_pad_fields *t, nnd_size count, int in, int value, int out,
                        void (*run)(const void *, void *const *, struct nnd_part)) {
  if (nnd_shape_of(m, value)->count != 1) return nnd_fail(m->message, "elements are padded with several values");
  if (!t->rank) t->axes[t->rank++] = (struct nnd_pad_axis){1, 0, 1, 1};
  t->rows = count / t->axes[0].size;
  nnd_give_tensor(m, out);
  nnd_give_tensor(m, in);
  nnd_give_tensor(m, value);
  m->instance->run = run;
  return 1;
}

static void (*nnd_pad_run(const struct nnd_shape *in))(const void *, void *const *, struct nnd_part) {
  const nnd_size each = nnd_element_bytes[in->element];
  return each == 1 ? nnd_run_pad_1 : each == 8 ? nnd_run_pad_8 : nnd_run_pad_4;
}

static int nnd_make_pad(struct nnd_maker *m) {
  const struct nnd_padded_copy *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pad_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->mode = own->mode, t->offset = nnd_size_of(m, own->offset);
  struct nnd_reach reach = {t->offset, t->offset};
  nnd_size whole = 1;
  for (int axis = own->num_axes - 1; axis >= 0; axis--) {
    const struct nnd_pad_axis *rules = &own->axes[axis];
    const struct nnd_pad_axis one = {nnd_size_of(m, rules->size), nnd_size_of(m, rules->begin),
                                     nnd_size_of(m, rules->count), nnd_size_of(m, rules->step)};
    if (one.size < 1 || one.size > out->count / whole || one.begin < 0 || one.count < 1 || one.begin > one.size ||
        one.count > one.size - one.begin)
      return nnd_fail(m->message, "what is around a view does not fit what is made of it");
    if (!nnd_reaches(&reach, 0, one.count - 1, one.step) || !nnd_reach_is_within(reach, in->count))
      return nnd_fail(m->message, "a view goes beyond its tensor");
    whole *= one.size;
    nnd_pad_add(t, one);
  }
  if (!nnd_reach_is_within(reach, in->count) || whole != out->count)
    return nnd_fail(m->message, "a view goes beyond its tensor");
  return nnd_pad_done(m, t, whole, own->in, own->value, own->out, nnd_pad_run(in));
}

const struct nnd_op nnd_op_padded_copy = {"padded_copy", nnd_open_pad, nnd_make_pad};

/* All axes as they are; those that numbers pad are moved when these are there. */
struct nnd_pad_at_fields {
  struct nnd_pad_fields whole;
  int is_wide, which[NND_MOST_RANK];
  void (*run)(const void *fields, void *const *at, struct nnd_part part);
};

static void nnd_run_pad_at(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_pad_at_fields *t = fields;
  struct nnd_pad_fields moved = t->whole;
  for (int axis = 0; axis < moved.rank; axis++) {
    struct nnd_pad_axis *one = &moved.axes[axis];
    const int64_t said = t->which[axis] < 0 ? 0 : nnd_whole_at(at[3], t->is_wide, t->which[axis]);
    const nnd_size begin = said >= one->size ? one->size - 1 : said <= -one->count ? 1 - one->count : (nnd_size)said;
    one->begin = nnd_max(begin, 0);
    one->count = nnd_min(one->count + nnd_min(begin, 0), one->size - one->begin);
    moved.offset -= nnd_min(begin, 0) * one->step;
  }
  t->run(&moved, at, part);
}

static int nnd_make_pad_at(struct nnd_maker *m) {
  const struct nnd_padded_at *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const struct nnd_shape *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_pad_at_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->whole.mode = own->mode, t->whole.offset = nnd_size_of(m, own->offset);
  t->is_wide = numbers->element == NND_INT64;
  struct nnd_reach reach = {t->whole.offset, t->whole.offset};
  nnd_size whole = 1;
  for (int axis = own->num_axes - 1; axis >= 0; axis--) {
    const struct nnd_pad_axis_at *rules = &own->axes[axis];
    const struct nnd_pad_axis one = {nnd_size_of(m, rules->size), 0, nnd_size_of(m, rules->count),
                                     nnd_size_of(m, rules->step)};
    if (one.size < 1 || one.size > out->count / whole || one.count < 1 || rules->which >= numbers->count)
      return nnd_fail(m->message, "what is around a view does not fit what is made of it");
    if (!nnd_reaches(&reach, 0, one.count - 1, one.step) || !nnd_reach_is_within(reach, in->count))
      return nnd_fail(m->message, "a view goes beyond its tensor");
    whole *= one.size;
    t->which[t->whole.rank] = (int)rules->which;
    t->whole.axes[t->whole.rank++] = one;
  }
  if (!nnd_reach_is_within(reach, in->count) || whole != out->count)
    return nnd_fail(m->message, "a view goes beyond its tensor");
  if (!t->whole.rank) t->which[0] = -1; /* an axis is added */
  if (!nnd_pad_done(m, &t->whole, whole, own->in, own->value, own->out, nnd_run_pad_at)) return 0;
  nnd_give_tensor(m, own->numbers);
  t->run = nnd_pad_run(in);
  return 1;
}

const struct nnd_op nnd_op_padded_at = {"padded_at", nnd_open_pad_at, nnd_make_pad_at};

static int nnd_make_pad_image(struct nnd_maker *m) {
  const struct nnd_padded_image *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pad_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1])
    return nnd_fail(m->message, "an image is padded to another number of channels");
  t->mode = own->mode;
  for (int axis = 1; axis >= 0; axis--) {
    const struct nnd_pad_side *rules = axis ? &own->columns : &own->rows;
    const nnd_size size = out->sizes[2 + axis], first = nnd_size_of(m, rules->first);
    const struct nnd_pad_axis one = {size, nnd_size_of(m, rules->begin), nnd_size_of(m, rules->count),
                                     axis ? 1 : in->sizes[3]};
    if (one.begin < 0 || one.begin > size || one.count < 1 || one.count > size - one.begin || first < 0 ||
        one.count > in->sizes[2 + axis] || first > in->sizes[2 + axis] - one.count)
      return nnd_fail(m->message, "what is around an image does not fit what is made of it");
    t->offset += first * one.step;
    nnd_pad_add(t, one);
  }
  const nnd_size planes = in->sizes[0] * nnd_blocks(in->sizes[1]);
  nnd_pad_add(t, (struct nnd_pad_axis){planes, 0, planes, in->sizes[2] * in->sizes[3]});
  return nnd_pad_done(m, t, planes * out->sizes[2] * out->sizes[3], own->in, own->value, own->out, nnd_run_pad_image);
}

const struct nnd_op nnd_op_padded_image = {"padded_image", nnd_open_pad_image, nnd_make_pad_image};
