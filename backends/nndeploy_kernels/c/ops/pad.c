/* SPDX-License-Identifier: Apache-2.0
 *
 * A view of a plain tensor with zeros around it.
 *
 *   padded_copy   input, output (tensors), offset (rule), axes, each: size of the output, zeros before, elements, step
 *                 (rules): element (i, j, ...) inside of the zeros is number offset + i * step + j * step + ... of the
 *                 input
 *
 * Workers share rows.
 */
#include "model/model.h"

#define NND_MOST_SPAN ((nnd_size)1 << 58) /* along one axis, zeros included: those of all axes add up */

struct nnd_pad_axis {
  nnd_size size, begin, count, step;
};

struct nnd_pad_own {
  int in, out, rank;
  nnd_size offset;
  struct nnd_pad_axis axes[NND_MOST_RANK]; /* rules */
};

/* `rank` is at least 1; `begin` and `count` of an axis in elements of the output. */
struct nnd_pad_fields {
  int rank;
  nnd_size offset, rows;
  struct nnd_pad_axis axes[NND_MOST_RANK]; /* the last first, axes that go on alike joined */
};

static int nnd_open_pad(struct nnd_opener *o) {
  struct nnd_pad_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_any_tensor(o);
  own->out = nnd_write_any_tensor(o);
  own->offset = nnd_read_rule(o);
  own->rank = (int)nnd_word(o, 0, NND_MOST_RANK);
  for (int axis = 0; axis < own->rank; axis++) {
    struct nnd_pad_axis *one = &own->axes[axis];
    one->size = nnd_read_rule(o), one->begin = nnd_read_rule(o);
    one->count = nnd_read_rule(o), one->step = nnd_read_rule(o);
  }
  if (o->message->failed) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->element != out->element)
    return nnd_fail(o->message, "zeros around a view of another layout or type");
  return 1;
}

/* Zeros before and behind a row are few: no call of a function, which the compiler would make of a loop. */
#define NND_FEW_ZEROS(name, type)                                                                                      \
  NND_INLINE void name(type *to, nnd_size count) {                                                                     \
    for (nnd_size i = 0; i < count; i++) {                                                                             \
      to[i] = 0;                                                                                                       \
      __asm__ volatile("" : "+r"(i));                                                                                  \
    }                                                                                                                  \
  }
NND_FEW_ZEROS(nnd_zeros_1, int8_t)
NND_FEW_ZEROS(nnd_zeros_4, int32_t)
NND_FEW_ZEROS(nnd_zeros_8, int64_t)

/* One row after the other; `index` counts them along the axes but the last, `from` goes with it. */
#define NND_PADDED_ROWS(name, zeros, type)                                                                             \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_pad_fields *t = fields;                                                                           \
    const struct nnd_pad_axis row = t->axes[0];                                                                        \
    nnd_size index[NND_MOST_RANK] = {0}, first, last;                                                                  \
    nnd_share(t->rows, part, &first, &last);                                                                           \
    if (first >= last) return;                                                                                         \
    nnd_size rest = first, from = t->offset;                                                                           \
    int outside = 0; /* axes along which the row lies among zeros */                                                   \
    for (int axis = 1; axis < t->rank; axis++) {                                                                       \
      const struct nnd_pad_axis *one = &t->axes[axis];                                                                 \
      index[axis] = rest % one->size - one->begin;                                                                     \
      rest /= one->size;                                                                                               \
      outside += index[axis] < 0 || index[axis] >= one->count;                                                         \
      from += index[axis] * one->step;                                                                                 \
    }                                                                                                                  \
    type *to = (type *)at[0] + first * row.size;                                                                       \
    for (nnd_size number = first; number < last; number++, to += row.size) {                                           \
      if (outside)                                                                                                     \
        memset(to, 0, (size_t)row.size * sizeof *to);                                                                  \
      else {                                                                                                           \
        const type *in = (const type *)at[1] + from;                                                                   \
        const nnd_size end = row.begin + row.count;                                                                    \
        zeros(to, row.begin);                                                                                          \
        if (row.step == 1)                                                                                             \
          memcpy(to + row.begin, in, (size_t)row.count * sizeof *to);                                                  \
        else                                                                                                           \
          for (nnd_size i = 0; i < row.count; i++) to[row.begin + i] = in[i * row.step];                               \
        zeros(to + end, row.size - end);                                                                               \
      }                                                                                                                \
      for (int axis = 1; axis < t->rank; axis++) {                                                                     \
        const struct nnd_pad_axis *one = &t->axes[axis];                                                               \
        outside -= index[axis] < 0 || index[axis] >= one->count;                                                       \
        const int is_done = ++index[axis] == one->size - one->begin;                                                   \
        from += one->step;                                                                                             \
        if (is_done) index[axis] = -one->begin, from -= one->size * one->step;                                         \
        outside += index[axis] < 0 || index[axis] >= one->count;                                                       \
        if (!is_done) break;                                                                                           \
      }                                                                                                                \
    }                                                                                                                  \
  }
NND_PADDED_ROWS(nnd_run_pad_1, nnd_zeros_1, int8_t)
NND_PADDED_ROWS(nnd_run_pad_4, nnd_zeros_4, int32_t)
NND_PADDED_ROWS(nnd_run_pad_8, nnd_zeros_8, int64_t)

static int nnd_make_pad(struct nnd_maker *m) {
  const struct nnd_pad_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pad_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->offset = nnd_size_of(m, own->offset);
  nnd_size low = t->offset, high = t->offset, whole = 1;
  for (int axis = own->rank - 1; axis >= 0; axis--) {
    const struct nnd_pad_axis *rules = &own->axes[axis];
    const struct nnd_pad_axis one = {nnd_size_of(m, rules->size), nnd_size_of(m, rules->begin),
                                     nnd_size_of(m, rules->count), nnd_size_of(m, rules->step)};
    nnd_size reach, span;
    if (one.size < 1 || one.size > out->count / whole || one.begin < 0 || one.count < 1 || one.begin > one.size ||
        one.count > one.size - one.begin)
      return nnd_fail(m->message, "zeros around a view do not fit what is made of it");
    if (__builtin_mul_overflow(one.count - 1, one.step, &reach) || __builtin_mul_overflow(one.size, one.step, &span) ||
        span > NND_MOST_SPAN || span < -NND_MOST_SPAN)
      return nnd_fail(m->message, "a view goes beyond its tensor");
    whole *= one.size;
    if (reach < 0)
      low += reach;
    else
      high += reach;
    if (low < 0 || high >= in->count) return nnd_fail(m->message, "a view goes beyond its tensor");
    if (one.size == 1) continue;
    struct nnd_pad_axis *before = t->rank ? &t->axes[t->rank - 1] : NULL;
    if (before && before->count == before->size && one.step == before->step * before->size)
      *before = (struct nnd_pad_axis){one.size * before->size, one.begin * before->size, one.count * before->size,
                                      before->step};
    else
      t->axes[t->rank++] = one;
  }
  if (low < 0 || high >= in->count || whole != out->count) return nnd_fail(m->message, "a view goes beyond its tensor");
  if (!t->rank) t->axes[t->rank++] = (struct nnd_pad_axis){1, 0, 1, 1};
  t->rows = whole / t->axes[0].size;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  const nnd_size each = nnd_element_bytes[in->element];
  m->instance->run = each == 1 ? nnd_run_pad_1 : each == 4 ? nnd_run_pad_4 : nnd_run_pad_8;
  return 1;
}

const struct nnd_op nnd_op_padded_copy = {"padded_copy", nnd_open_pad, nnd_make_pad};
