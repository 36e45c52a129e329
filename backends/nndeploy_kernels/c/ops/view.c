/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies.
 *
 * Of float16 whole rows are copied. Where the elements of the last axis lie apart and those of another one together, these two are turned as matrices;
 * else rows are copied. Workers share pieces of matrices, or rows.
 */
#include <stdio.h>

#include "kernels/rows.h"
#include "kernels/turning.h"
#include "model/words.h"
#include "ops/indices.h"
#include "ops/reach.h"

#define NND_VIEW_AXES 16
#define NND_VIEW_ROWS 256         /* of a piece of a matrix */
#define NND_VIEW_COLUMNS 1024     /* of a piece of a matrix */
#define NND_VIEW_SIDE 64          /* of the smallest pieces */
#define NND_VIEW_UNITS 16         /* pieces that there are at least, where they do not become tiny */
#define NND_VIEW_LEAST 256        /* elements of a matrix that is worth turning */
#define NND_VIEW_FEW 4            /* elements of a side: whole vectors are interleaved */
#define NND_VIEW_CACHED (1 << 20) /* bytes that stay in a cache */
#define NND_VIEW_SHORT 8          /* rows: an outer axis goes first */
#define NND_VIEW_LONG 16          /* that is at least so long */
#define NND_VIEW_NEAR (1 << 14)   /* and all of it within so many bytes of the output */
#define NND_VIEW_MEETING 1024     /* lines that lie multiples of so many bytes apart meet in a cache */

NND_RECORD(strided_axis)
NND_RECORD(view_move)

NND_RECORD(view_at)
NND_READER(view_copy, struct nnd_view_at)

/* Steps in the input and in the output, in bytes. */
struct nnd_view_axis {
  nnd_size size, step, out;
};

/* The last axis first. An element of `width` bytes may be several that go together. Moves are by numbers and bytes. */
struct nnd_view_fields {
  int rank, turned; /* the axis that is turned with the last one, else 0 */
  int is_wide, num_moves;
  struct nnd_view_move moves[NND_MOST_RANK];
  nnd_size offset, width, units, row_pieces, column_pieces;
  struct nnd_view_axis axes[NND_VIEW_AXES];
};

static int nnd_fits_view(struct nnd_opener *o, const struct nnd_view_at *own) {
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  return (!in->is_blocked && !out->is_blocked && in->element == out->element) ||
         nnd_fail(o->message, "a view of another layout or type");
}

static int nnd_open_view(struct nnd_opener *o) {
  struct nnd_view_at *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->numbers = -1;
  return nnd_read_view_copy(o, own) && nnd_fits_view(o, own);
}

static int nnd_open_view_at(struct nnd_opener *o) {
  struct nnd_view_at *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_view_at(o, own) || !nnd_fits_view(o, own)) return 0;
  return nnd_has_places(o, own->numbers) || nnd_fail(o->message, "a view is moved by what is no whole number");
}

/* A walk over the axes from the second on, but that which is turned. */
struct nnd_view_walk {
  nnd_size index[NND_VIEW_AXES], from, to;
};

static struct nnd_view_walk nnd_view_begin(const struct nnd_view_fields *t, nnd_size number) {
  struct nnd_view_walk walk = {{0}, 0, 0};
  for (int axis = 1; axis < t->rank; axis++) {
    if (axis == t->turned) continue;
    walk.index[axis] = number % t->axes[axis].size;
    number /= t->axes[axis].size;
    walk.from += walk.index[axis] * t->axes[axis].step, walk.to += walk.index[axis] * t->axes[axis].out;
  }
  return walk;
}

/* Goes on by `count` places of the second axis, which stay within it, and over to the next axes at its end. */
static void nnd_view_next(const struct nnd_view_fields *t, struct nnd_view_walk *walk, nnd_size count) {
  for (int axis = 1; axis < t->rank; axis++) {
    const struct nnd_view_axis one = t->axes[axis];
    if (axis == t->turned) continue;
    walk->index[axis] += count, walk->from += count * one.step, walk->to += count * one.out;
    if (walk->index[axis] < one.size) return;
    walk->index[axis] = 0, walk->from -= one.size * one.step, walk->to -= one.size * one.out;
    count = 1;
  }
}

/* Rows along the last axis: those along the second one at once. */
static void nnd_view_rows(const struct nnd_view_fields *t, const char *in, char *out, struct nnd_part part) {
  const struct nnd_view_axis row = t->axes[0];
  const struct nnd_view_axis next = t->rank > 1 ? t->axes[1] : (struct nnd_view_axis){1, 0, 0};
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  struct nnd_view_walk walk = nnd_view_begin(t, first);
  while (first < last) {
    const nnd_size count = nnd_min(last - first, next.size - walk.index[1]);
    const char *from = in + walk.from;
    char *to = out + walk.to;
    if (row.step == t->width)
      nnd_copy_rows(to, next.out, from, next.step, row.size * t->width, count);
    else
      switch (t->width) {
        case 1: nnd_copy_lines_1(from, to, row.step, row.size, count, next.step, next.out); break;
        case 4: nnd_copy_lines_4(from, to, row.step, row.size, count, next.step, next.out); break;
        case 8: nnd_copy_lines_8(from, to, row.step, row.size, count, next.step, next.out); break;
        default: nnd_copy_lines_16(from, to, row.step, row.size, count, next.step, next.out);
      }
    nnd_view_next(t, &walk, count);
    first += count;
  }
}

/* The piece `number` of an axis that is cut into `pieces`: its first element, and how many it has. */
static nnd_size nnd_view_piece(nnd_size size, nnd_size pieces, nnd_size number, nnd_size *count) {
  const nnd_size first = size * number / pieces;
  *count = size * (number + 1) / pieces - first;
  return first;
}

static void nnd_view_turned(const struct nnd_view_fields *t, const char *in, char *out, struct nnd_part part) {
  const struct nnd_view_axis columns = t->axes[0], rows = t->axes[t->turned];
  const nnd_size pieces = t->row_pieces * t->column_pieces;
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  struct nnd_view_walk walk = nnd_view_begin(t, first / pieces);
  for (nnd_size unit = first; unit < last; unit++) {
    struct nnd_matrix matrix = {.in_step = columns.step, .out_step = rows.out};
    const nnd_size piece = unit % pieces;
    const nnd_size row = nnd_view_piece(rows.size, t->row_pieces, piece / t->column_pieces, &matrix.rows);
    const nnd_size column = nnd_view_piece(columns.size, t->column_pieces, piece % t->column_pieces, &matrix.columns);
    const char *from = in + walk.from + row * t->width + column * columns.step;
    char *to = out + walk.to + row * rows.out + column * t->width;
    switch (t->width) {
      case 1: nnd_turn_1(from, to, matrix); break;
      case 4: nnd_turn_4(from, to, matrix); break;
      case 8: nnd_turn_8(from, to, matrix); break;
      default: nnd_turn_16(from, to, matrix);
    }
    if (piece + 1 == pieces) nnd_view_next(t, &walk, 1);
  }
}

static void nnd_run_view(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_view_fields *t = fields;
  const char *in = (const char *)at[1] + t->offset;
  for (int i = 0; i < t->num_moves; i++) {
    const struct nnd_view_move *one = &t->moves[i];
    const int64_t said = nnd_whole_at(at[2], t->is_wide, one->number), from_end = said < 0 ? said + one->size : said;
    in += (from_end < one->low ? one->low : from_end > one->high ? one->high : (nnd_size)from_end) * one->stride;
  }
  if (t->turned)
    nnd_view_turned(t, in, at[0], part);
  else
    nnd_view_rows(t, in, at[0], part);
}

/* Adds an axis, outside of those that are there; those that go on alike are one. */
static void nnd_view_add(struct nnd_view_fields *t, nnd_size size, nnd_size step, nnd_size out) {
  struct nnd_view_axis *before = t->rank ? &t->axes[t->rank - 1] : NULL;
  if (size == 1) return;
  if (before && step == before->step * before->size)
    before->size *= size;
  else
    t->axes[t->rank++] = (struct nnd_view_axis){size, step, out};
}

/* Rows of 4, 8 or 16 bytes are elements. */
static void nnd_view_widen(struct nnd_view_fields *t) {
  const nnd_size bytes = t->axes[0].size * t->width;
  if (t->rank < 2 || t->axes[0].step != t->width || (bytes != 4 && bytes != 8 && bytes != 16)) return;
  t->width = bytes;
  memmove(t->axes, t->axes + 1, (size_t)--t->rank * sizeof *t->axes);
}

/* Whether a matrix is turned faster than its columns are walked along, one row of the output after the other: where a
 * side is so short that whole vectors are interleaved; where both are long; where what is walked over again and again
 * does not stay in a cache, be it by its size or since its lines meet in few places of it. */
static int nnd_view_is_turned(struct nnd_view_axis columns, struct nnd_view_axis rows, nnd_size width) {
  const nnd_size bytes = columns.size * rows.size * width;
  const int is_few = (columns.size <= NND_VIEW_FEW && rows.out == columns.size * width) ||
                     (rows.size <= NND_VIEW_FEW && columns.step == rows.size * width);
  if (columns.step == 0 && columns.size > NND_VIEW_FEW) return 0; /* repeated */
  if (is_few) return 1;
  if (columns.size < NND_LANES || columns.size * rows.size < NND_VIEW_LEAST) return 0;
  return bytes > NND_VIEW_CACHED || columns.step % NND_VIEW_MEETING == 0 || (width <= 4 && rows.size >= NND_LANES);
}

/* Walks first along an outer axis where few rows lie along the second one: patches of an image, whose next ones lie side
 * by side. */
static void nnd_view_order(struct nnd_view_fields *t) {
  if (t->rank < 3 || t->axes[1].size >= NND_VIEW_SHORT) return;
  for (int axis = 2; axis < t->rank; axis++) {
    const struct nnd_view_axis one = t->axes[axis];
    if (one.size < NND_VIEW_LONG || one.size > NND_VIEW_NEAR / one.out) continue;
    t->axes[axis] = t->axes[1], t->axes[1] = one;
    return;
  }
}

/* Finds the axis whose elements lie together, and cuts it and the last one into pieces, enough of them for workers. */
static void nnd_view_turn(struct nnd_view_fields *t, nnd_size lines) {
  const struct nnd_view_axis columns = t->axes[0];
  for (int axis = 1; axis < t->rank && !t->turned && columns.step != t->width; axis++)
    if (t->axes[axis].step == t->width && nnd_view_is_turned(columns, t->axes[axis], t->width)) t->turned = axis;
  t->units = lines;
  if (!t->turned) {
    nnd_view_order(t);
    return;
  }
  const nnd_size rows = t->axes[t->turned].size, matrices = lines / rows;
  const nnd_size wanted = nnd_ceil_div(NND_VIEW_UNITS, matrices);
  t->row_pieces = nnd_max(1, nnd_max(rows / NND_VIEW_ROWS, nnd_min(wanted, rows / NND_VIEW_SIDE)));
  t->column_pieces = nnd_max(columns.size / NND_VIEW_COLUMNS,
                             nnd_min(nnd_ceil_div(wanted, t->row_pieces), columns.size / NND_VIEW_SIDE));
  t->column_pieces = nnd_max(1, t->column_pieces);
  t->units = matrices * t->row_pieces * t->column_pieces;
}

/* Takes what the numbers may move a view by. */
static int nnd_view_moves(struct nnd_maker *m, struct nnd_view_fields *t, struct nnd_reach *reach) {
  const struct nnd_view_at *own = m->step->own;
  const struct nnd_shape *numbers = nnd_shape_of(m, own->numbers);
  t->is_wide = numbers->element == NND_INT64;
  for (int i = 0; i < own->num_moves; i++) {
    const struct nnd_view_move *rules = &own->moves[i];
    const struct nnd_view_move one = {rules->number, nnd_size_of(m, rules->size), nnd_size_of(m, rules->stride),
                                      nnd_size_of(m, rules->low), nnd_size_of(m, rules->high)};
    if (one.number >= numbers->count || one.size < 1 || one.low > one.high ||
        !nnd_reaches(reach, one.low, one.high, one.stride))
      return nnd_fail(m->message, "a view is moved beyond its tensor");
    t->moves[t->num_moves++] = one;
    t->moves[i].stride *= t->width;
  }
  return 1;
}

static int nnd_make_view(struct nnd_maker *m) {
  const struct nnd_view_at *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_view_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->width = nnd_element_bytes[in->element];
  t->offset = nnd_size_of(m, own->offset);
  struct nnd_reach reach = {t->offset, t->offset};
  nnd_size count = 1;
  if (own->numbers >= 0 && !nnd_view_moves(m, t, &reach)) return 0;
  for (int axis = own->num_axes - 1; axis >= 0; axis--) {
    const nnd_size size = nnd_size_of(m, own->axes[axis].size), step = nnd_size_of(m, own->axes[axis].step);
    if (size < 1 || size > out->count / count || !nnd_reaches(&reach, 0, size - 1, step))
      return nnd_fail(m->message, "a view is larger than what is made of it");
    if (!nnd_reach_is_within(reach, in->count)) return nnd_fail(m->message, "a view goes beyond its tensor");
    nnd_view_add(t, size, step * t->width, count * t->width);
    count *= size;
  }
  if (!nnd_reach_is_within(reach, in->count) || count != out->count)
    return nnd_fail(m->message, "a view goes beyond its tensor");
  if (!t->rank) t->axes[t->rank++] = (struct nnd_view_axis){1, t->width, t->width};
  if (in->element == NND_FLOAT16 && t->axes[0].step != t->width)
    return nnd_fail(m->message, "a view of float16 that lies apart");
  t->offset *= t->width;
  nnd_view_widen(t);
  const nnd_size lines = out->num_bytes / t->width / t->axes[0].size;
  nnd_view_turn(t, lines);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->numbers);
  nnd_tell_operations(m, count, 16);
  m->instance->run = nnd_run_view;
  snprintf(m->instance->shown, sizeof m->instance->shown,
           t->turned ? "matrices of %lld x %lld turned" : "%lld rows of %lld",
           (long long)(t->turned ? t->axes[t->turned].size : lines), (long long)t->axes[0].size);
  return 1;
}

const struct nnd_op nnd_op_view_copy = {"view_copy", nnd_open_view, nnd_make_view};
const struct nnd_op nnd_op_view_at = {"view_at", nnd_open_view_at, nnd_make_view};
