/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements with more around them: a number, or what the elements themselves say.
 *
 *   padded_copy    input, value, output (tensors), mode, offset (rule), axes, each: size of the output, what comes before
 *                  the elements, elements, step (rules): element (i, j, ...) of those inside is number
 *                  offset + i * step + j * step + ... of the input; all tensors are plain
 *   padded_at      input, value, numbers (int32 or int64), output (tensors), mode, offset (rule), axes, each: size of the
 *                  output, elements, step (rules), which of the numbers says what comes before the elements, or -1: none;
 *                  where that is negative so many elements are left out
 *   padded_image   input, value, output (tensors), mode, top, height, left, width, each as (before, first, count)
 *                  (rules): `count` rows and columns from `first` on of an image in channel blocks, with `before` of
 *                  them before these
 *
 * The value is a tensor of one element, which the mode NND_PAD_VALUE alone reads. Workers share rows.
 */
#include "ops/indices.h"
#include "ops/reach.h"

/* Around 1 2 3: any number; 1 1 1 2 3 3 3; 3 2 1 2 3 2 1; 2 3 1 2 3 1 2. */
enum nnd_pad_mode { NND_PAD_VALUE, NND_PAD_EDGE, NND_PAD_REFLECT, NND_PAD_WRAP, NND_NUM_PAD_MODES };

/* `size` of the output, of which `count` from `begin` on are elements, `step` apart in the input. */
struct nnd_pad_axis {
  nnd_size size, begin, count, step;
};

struct nnd_pad_own {
  int in, value, numbers, out, mode, rank;
  nnd_size offset;
  struct nnd_pad_axis axes[NND_MOST_RANK]; /* rules */
  int which[NND_MOST_RANK];                /* of the numbers */
};

/* `rank` is at least 1; `offset` in elements. */
struct nnd_pad_fields {
  int mode, rank;
  nnd_size offset, rows;
  struct nnd_pad_axis axes[NND_MOST_RANK]; /* the last first, axes that go on alike joined */
};

static int nnd_open_padding(struct nnd_opener *o, int is_blocked, int has_numbers) {
  struct nnd_pad_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_any_tensor(o);
  own->value = nnd_read_any_tensor(o);
  own->numbers = has_numbers ? nnd_read_any_tensor(o) : -1;
  own->out = nnd_write_any_tensor(o);
  own->mode = (int)nnd_word(o, 0, NND_NUM_PAD_MODES - 1);
  if (o->message->failed) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  const struct nnd_tensor *value = &o->model->tensors[own->value];
  if (in->is_blocked != is_blocked || out->is_blocked != is_blocked || value->is_blocked ||
      in->element != out->element || value->element != out->element)
    return nnd_fail(o->message, "elements are padded in another layout or type");
  return 1;
}

static int nnd_open_pad(struct nnd_opener *o) {
  if (!nnd_open_padding(o, 0, 0)) return 0;
  struct nnd_pad_own *own = o->step->own;
  own->offset = nnd_read_rule(o);
  own->rank = (int)nnd_word(o, 0, NND_MOST_RANK);
  for (int axis = 0; axis < own->rank; axis++) {
    struct nnd_pad_axis *one = &own->axes[axis];
    one->size = nnd_read_rule(o), one->begin = nnd_read_rule(o);
    one->count = nnd_read_rule(o), one->step = nnd_read_rule(o);
  }
  return !o->message->failed;
}

static int nnd_open_pad_at(struct nnd_opener *o) {
  if (!nnd_open_padding(o, 0, 1)) return 0;
  struct nnd_pad_own *own = o->step->own;
  own->offset = nnd_read_rule(o);
  own->rank = (int)nnd_word(o, 0, NND_MOST_RANK);
  for (int axis = 0; axis < own->rank; axis++) {
    struct nnd_pad_axis *one = &own->axes[axis];
    one->size = nnd_read_rule(o), one->count = nnd_read_rule(o), one->step = nnd_read_rule(o);
    own->which[axis] = (int)nnd_word(o, -1, 2 * NND_MOST_RANK - 1);
  }
  if (!nnd_has_places(o, own->numbers)) return nnd_fail(o->message, "elements are padded by what is no whole number");
  return !o->message->failed;
}

/* The axes are those of rows and columns; `step` is the rule of their first element. */
static int nnd_open_pad_image(struct nnd_opener *o) {
  if (!nnd_open_padding(o, 1, 0)) return 0;
  struct nnd_pad_own *own = o->step->own;
  for (own->rank = 0; own->rank < 2; own->rank++) {
    struct nnd_pad_axis *one = &own->axes[own->rank];
    one->begin = nnd_read_rule(o), one->step = nnd_read_rule(o), one->count = nnd_read_rule(o);
  }
  return !o->message->failed;
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

static int nnd_pad_done(struct nnd_maker *m, struct nnd_pad_fields *t, nnd_size count,
                        void (*run)(const void *, void *const *, struct nnd_part)) {
  const struct nnd_pad_own *own = m->step->own;
  if (nnd_shape_of(m, own->value)->count != 1) return nnd_fail(m->message, "elements are padded with several values");
  if (!t->rank) t->axes[t->rank++] = (struct nnd_pad_axis){1, 0, 1, 1};
  t->rows = count / t->axes[0].size;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->value);
  m->instance->run = run;
  return 1;
}

static void (*nnd_pad_run(const struct nnd_shape *in))(const void *, void *const *, struct nnd_part) {
  const nnd_size each = nnd_element_bytes[in->element];
  return each == 1 ? nnd_run_pad_1 : each == 8 ? nnd_run_pad_8 : nnd_run_pad_4;
}

static int nnd_make_pad(struct nnd_maker *m) {
  const struct nnd_pad_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pad_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->mode = own->mode, t->offset = nnd_size_of(m, own->offset);
  struct nnd_reach reach = {t->offset, t->offset};
  nnd_size whole = 1;
  for (int axis = own->rank - 1; axis >= 0; axis--) {
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
  return nnd_pad_done(m, t, whole, nnd_pad_run(in));
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
  const struct nnd_pad_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const struct nnd_shape *numbers = nnd_shape_of(m, own->numbers);
  struct nnd_pad_at_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->whole.mode = own->mode, t->whole.offset = nnd_size_of(m, own->offset);
  t->is_wide = numbers->element == NND_INT64;
  struct nnd_reach reach = {t->whole.offset, t->whole.offset};
  nnd_size whole = 1;
  for (int axis = own->rank - 1; axis >= 0; axis--) {
    const struct nnd_pad_axis *rules = &own->axes[axis];
    const struct nnd_pad_axis one = {nnd_size_of(m, rules->size), 0, nnd_size_of(m, rules->count),
                                     nnd_size_of(m, rules->step)};
    if (one.size < 1 || one.size > out->count / whole || one.count < 1 || own->which[axis] >= numbers->count)
      return nnd_fail(m->message, "what is around a view does not fit what is made of it");
    if (!nnd_reaches(&reach, 0, one.count - 1, one.step) || !nnd_reach_is_within(reach, in->count))
      return nnd_fail(m->message, "a view goes beyond its tensor");
    whole *= one.size;
    t->which[t->whole.rank] = own->which[axis];
    t->whole.axes[t->whole.rank++] = one;
  }
  if (!nnd_reach_is_within(reach, in->count) || whole != out->count)
    return nnd_fail(m->message, "a view goes beyond its tensor");
  if (!t->whole.rank) t->which[0] = -1; /* an axis is added */
  if (!nnd_pad_done(m, &t->whole, whole, nnd_run_pad_at)) return 0;
  nnd_give_tensor(m, own->numbers);
  t->run = nnd_pad_run(in);
  return 1;
}

const struct nnd_op nnd_op_padded_at = {"padded_at", nnd_open_pad_at, nnd_make_pad_at};

static int nnd_make_pad_image(struct nnd_maker *m) {
  const struct nnd_pad_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pad_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1])
    return nnd_fail(m->message, "an image is padded to another number of channels");
  t->mode = own->mode;
  for (int axis = 1; axis >= 0; axis--) {
    const struct nnd_pad_axis *rules = &own->axes[axis];
    const nnd_size size = out->sizes[2 + axis], first = nnd_size_of(m, rules->step);
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
  return nnd_pad_done(m, t, planes * out->sizes[2] * out->sizes[3], nnd_run_pad_image);
}

const struct nnd_op nnd_op_padded_image = {"padded_image", nnd_open_pad_image, nnd_make_pad_image};
