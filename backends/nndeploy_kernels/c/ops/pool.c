/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of images in channel blocks: the largest, the mean or the sum of a window, or of the whole image.
 *
 * Pads after an axis say how far a window that counts its padding may reach. Workers share output rows of all channel
 * blocks and images. Where windows overlap much, the rows of an output row are joined into one first, in scratch.
 */
#include <stdio.h>

#include "model/words.h"

#define NND_POOL_TILE 4 /* windows side by side, or parts of a wide one: an addition waits for the one before */

NND_SET(pooling);
enum nnd_counting { NND_COUNTS_INSIDE, NND_COUNTS_PADDING, NND_COUNTS_ONE }; /* what a sum is divided by */

NND_RECORD(pool_window)

struct nnd_pool_own {
  NND_FIELDS(pool)
  int counts;
};
NND_READER(pool, struct nnd_pool_own)

struct nnd_pool_fields {
  struct nnd_axis y, x;
  nnd_size planes, end_pad[2];
  nnd_size begin, end; /* output columns whose windows lie inside */
  int counts;
};

/* Vector `at` of an image, or of the scratch where rows are joined. */
NND_INLINE vf nnd_pool_read(int is_buffer, const void *from, nnd_size at) {
  if (is_buffer) return nnd_load((const float *)from + at * NND_LANES);
  return nnd_read((const nnd_elem *)from + at * NND_LANES);
}

/* `unordered` is set where a value is no number: the comparison alone would lose it. */
NND_INLINE void nnd_pool_take(int is_max, vf value, vf *found, vi *unordered) {
  *found = is_max ? nnd_at_least(value, *found) : *found + value;
  if (is_max) *unordered |= value != value;
}

NND_INLINE void nnd_pool_take_two(int is_max, vf a, vf b, vf *found, vi *unordered) {
  *found = is_max ? nnd_at_least(a, nnd_at_least(b, *found)) : *found + (a + b);
  if (is_max) *unordered |= (a != a) | (b != b); /* one comparison */
}

NND_INLINE vf nnd_pool_result(int is_max, vf found, vi unordered, vf scale) {
  return is_max ? nnd_select(unordered, nnd_splat(__builtin_nanf("")), found) : found * scale;
}

/* The taps of a window, or of several side by side: `rows` rows that lie `row_step` vectors apart, of `taps` vectors
 * that lie `tap_step` apart. */
struct nnd_pool_taps {
  nnd_size rows, row_step, taps, tap_step;
};

/* NND_POOL_TILE windows that lie `stride` vectors apart; `wide` is their number of taps where it is compiled in,
 * else 0. */
NND_INLINE void nnd_pool_tile(int is_max, int is_buffer, nnd_size wide, nnd_size stride, struct nnd_pool_taps t,
                              const void *from, nnd_size at, vf scale, vf *result) {
  const nnd_size taps = wide ? wide : t.taps;
  vf found[NND_POOL_TILE];
  vi unordered[NND_POOL_TILE];
  NND_UNROLL
  for (int i = 0; i < NND_POOL_TILE; i++) {
    found[i] = nnd_splat(is_max ? -__builtin_inff() : 0.0f);
    unordered[i] = (vi){0};
  }
  for (nnd_size row = 0; row < t.rows; row++, at += t.row_step) {
    nnd_size tap = 0;
    for (; tap + 1 < taps; tap += 2) NND_UNROLL
    for (int i = 0; i < NND_POOL_TILE; i++)
      nnd_pool_take_two(is_max, nnd_pool_read(is_buffer, from, at + i * stride + tap * t.tap_step),
                        nnd_pool_read(is_buffer, from, at + i * stride + (tap + 1) * t.tap_step), &found[i],
                        &unordered[i]);
    if (tap < taps) NND_UNROLL
    for (int i = 0; i < NND_POOL_TILE; i++)
      nnd_pool_take(is_max, nnd_pool_read(is_buffer, from, at + i * stride + tap * t.tap_step), &found[i],
                    &unordered[i]);
  }
  NND_UNROLL
  for (int i = 0; i < NND_POOL_TILE; i++) result[i] = nnd_pool_result(is_max, found[i], unordered[i], scale);
}

/* One window, of any size. */
NND_INLINE vf nnd_pool_window(int is_max, int is_buffer, struct nnd_pool_taps t, const void *from, nnd_size at,
                              vf scale) {
  vf found[NND_POOL_TILE];
  vi unordered[NND_POOL_TILE];
  NND_UNROLL
  for (int i = 0; i < NND_POOL_TILE; i++) {
    found[i] = nnd_splat(is_max ? -__builtin_inff() : 0.0f);
    unordered[i] = (vi){0};
  }
  if (t.row_step == t.taps * t.tap_step) t.taps *= t.rows, t.rows = t.rows > 0;
  for (nnd_size row = 0; row < t.rows; row++, at += t.row_step) {
    nnd_size tap = 0;
    for (; tap + 2 * NND_POOL_TILE <= t.taps; tap += 2 * NND_POOL_TILE) NND_UNROLL
    for (int i = 0; i < NND_POOL_TILE; i++)
      nnd_pool_take_two(is_max, nnd_pool_read(is_buffer, from, at + (tap + 2 * i) * t.tap_step),
                        nnd_pool_read(is_buffer, from, at + (tap + 2 * i + 1) * t.tap_step), &found[i], &unordered[i]);
    for (; tap < t.taps; tap++)
      nnd_pool_take(is_max, nnd_pool_read(is_buffer, from, at + tap * t.tap_step), &found[0], &unordered[0]);
  }
  for (int i = 1; i < NND_POOL_TILE; i++) {
    found[0] = is_max ? nnd_at_least(found[i], found[0]) : found[0] + found[i];
    unordered[0] |= unordered[i];
  }
  return nnd_pool_result(is_max, found[0], unordered[0], scale);
}

/* How many taps of a window at `at` count for a mean. */
NND_INLINE nnd_size nnd_pool_counted(struct nnd_axis axis, nnd_size at, int counts, nnd_size pad_after) {
  if (counts == NND_COUNTS_ONE) return 1;
  if (counts == NND_COUNTS_INSIDE) return nnd_tap_end(axis, at) - nnd_tap_begin(axis, at);
  return nnd_min(axis.kernel, nnd_ceil_div(axis.size + pad_after - at, axis.dilation));
}

/* The windows of one output row from `from`, whose `rows` rows lie `row_step` vectors apart. */
NND_INLINE void nnd_pool_row(const struct nnd_pool_fields *t, int is_max, int is_buffer, nnd_size wide, nnd_size stride,
                             nnd_size rows, nnd_size row_step, float counted_rows, const void *from, nnd_elem *to) {
  const nnd_size by = stride ? stride : t->x.stride, tap_step = wide ? 1 : t->x.dilation;
  const nnd_size begin = nnd_min(t->begin, t->x.out_size), end = nnd_max(begin, t->end);
  for (nnd_size x = 0; x < t->x.out_size; x++) { /* the edges, and all where a tile is too wide */
    if (x == begin && end - begin >= NND_POOL_TILE) x = end;
    if (x >= t->x.out_size) break;
    const nnd_size left = x * by - t->x.pad, first = nnd_tap_begin(t->x, left), last = nnd_tap_end(t->x, left);
    const struct nnd_pool_taps taps = {rows, row_step, nnd_max(0, last - first), t->x.dilation};
    const float counted = (float)nnd_pool_counted(t->x, left, t->counts, t->end_pad[1]);
    nnd_write(to + x * NND_LANES, nnd_pool_window(is_max, is_buffer, taps, from, left + first * t->x.dilation,
                                                  nnd_splat(1.0f / (counted_rows * counted))));
  }
  if (end - begin < NND_POOL_TILE) return;
  const struct nnd_pool_taps taps = {rows, row_step, t->x.kernel, tap_step};
  const vf scale = nnd_splat(1.0f / (counted_rows * (t->counts == NND_COUNTS_ONE ? 1.0f : (float)t->x.kernel)));
  for (nnd_size next = begin; next < end; next += NND_POOL_TILE) {
    const nnd_size x = nnd_min(next, end - NND_POOL_TILE); /* the last tile may overlap the one before */
    vf result[NND_POOL_TILE];
    nnd_pool_tile(is_max, is_buffer, wide, by, taps, from, x * by - t->x.pad, scale, result);
    NND_UNROLL
    for (int i = 0; i < NND_POOL_TILE; i++) nnd_write(to + (x + i) * NND_LANES, result[i]);
  }
}

/* `rows` rows as one, vector by vector. */
NND_INLINE void nnd_pool_joined(const struct nnd_pool_fields *t, int is_max, nnd_size rows, nnd_size row_step,
                                const nnd_elem *from, float *to) {
  const struct nnd_pool_taps taps = {1, 0, rows, row_step};
  const vf one = nnd_splat(1.0f);
  for (nnd_size next = 0; next < t->x.size; next += NND_POOL_TILE) {
    if (t->x.size < NND_POOL_TILE) {
      for (nnd_size x = 0; x < t->x.size; x++)
        nnd_store(to + x * NND_LANES, nnd_pool_window(is_max, 0, taps, from, x, one));
      return;
    }
    const nnd_size x = nnd_min(next, t->x.size - NND_POOL_TILE);
    vf result[NND_POOL_TILE];
    nnd_pool_tile(is_max, 0, 0, 1, taps, from, x, one, result);
    NND_UNROLL
    for (int i = 0; i < NND_POOL_TILE; i++) nnd_store(to + (x + i) * NND_LANES, result[i]);
  }
}

/* `wide` and `stride`: the window's width, without dilation, and stride where they are compiled in, else 0. */
NND_INLINE void nnd_pool_any(const struct nnd_pool_fields *t, int is_max, int joins, nnd_size wide, nnd_size stride,
                             nnd_elem *out, const nnd_elem *in, struct nnd_part part) {
  const nnd_size row_step = t->y.dilation * t->x.size;
  nnd_size unit, finish;
  nnd_share(t->planes * t->y.out_size, part, &unit, &finish);
  for (; unit < finish; unit++) {
    const nnd_size top = unit % t->y.out_size * t->y.stride - t->y.pad;
    const nnd_size first = nnd_tap_begin(t->y, top), rows = nnd_max(0, nnd_tap_end(t->y, top) - first);
    const nnd_size row = rows ? top + first * t->y.dilation : 0; /* a window of padding alone reads nothing */
    const nnd_elem *from = in + (unit / t->y.out_size * t->y.size + row) * t->x.size * NND_LANES;
    nnd_elem *to = out + unit * t->x.out_size * NND_LANES;
    const float counted = (float)nnd_pool_counted(t->y, top, t->counts, t->end_pad[0]);
    if (joins) {
      nnd_pool_joined(t, is_max, rows, row_step, from, (float *)part.scratch);
      nnd_pool_row(t, is_max, 1, wide, stride, 1, 0, counted, part.scratch, to);
    } else
      nnd_pool_row(t, is_max, 0, wide, stride, rows, row_step, counted, from, to);
  }
}

#define NND_POOL_KINDS(X) X(any, 0, 0, 0) X(2_2, 0, 2, 2) X(3_2, 0, 3, 2) X(joined, 1, 0, 0) X(joined_3_1, 1, 3, 1)
#define NND_POOL(name, joins, wide, stride)                                                                            \
  static void nnd_pool_max_##name(const void *fields, void *const *at, struct nnd_part part) {                         \
    nnd_pool_any(fields, 1, joins, wide, stride, at[0], at[1], part);                                                  \
  }                                                                                                                    \
  static void nnd_pool_mean_##name(const void *fields, void *const *at, struct nnd_part part) {                        \
    nnd_pool_any(fields, 0, joins, wide, stride, at[0], at[1], part);                                                  \
  }
NND_POOL_KINDS(NND_POOL)

/* Windows that are the image: one after the other, without any edge. */
NND_INLINE void nnd_pool_whole(const struct nnd_pool_fields *t, int is_max, nnd_elem *out, const nnd_elem *in,
                               struct nnd_part part) {
  const struct nnd_pool_taps taps = {1, 0, t->y.size * t->x.size, 1};
  const vf scale = nnd_splat(t->counts == NND_COUNTS_ONE ? 1.0f : 1.0f / ((float)t->y.size * (float)t->x.size));
  nnd_size plane, last;
  nnd_share(t->planes, part, &plane, &last);
  for (; plane < last; plane++)
    nnd_write(out + plane * NND_LANES, nnd_pool_window(is_max, 0, taps, in, plane * taps.taps, scale));
}

static void nnd_pool_max_whole(const void *fields, void *const *at, struct nnd_part part) {
  nnd_pool_whole(fields, 1, at[0], at[1], part);
}
static void nnd_pool_mean_whole(const void *fields, void *const *at, struct nnd_part part) {
  nnd_pool_whole(fields, 0, at[0], at[1], part);
}

struct nnd_pool_kind {
  int joins;
  nnd_size wide, stride;
  void (*run[2])(const void *fields, void *const *at, struct nnd_part part);
};

#define NND_POOL_LISTED(name, joins, wide, stride) {joins, wide, stride, {nnd_pool_max_##name, nnd_pool_mean_##name}},
static const struct nnd_pool_kind nnd_pool_kinds[] = {NND_POOL_KINDS(NND_POOL_LISTED)};

static int nnd_open_pool(struct nnd_opener *o) {
  struct nnd_pool_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_pool(o, own)) return 0;
  own->counts = own->kind == NND_POOL_SUM ? NND_COUNTS_ONE : own->includes_padding;
  if (!o->model->tensors[own->in].is_blocked || !o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "pooling of a tensor that is not in blocks");
  return 1;
}

/* Whether it takes fewer loads to join the rows of an output row first. */
static int nnd_pool_joins(const struct nnd_pool_fields *t) {
  const double rows = (double)nnd_min(t->y.kernel, t->y.size), taps = (double)nnd_min(t->x.kernel, t->x.size);
  const double in = (double)t->x.size, out = (double)t->x.out_size;
  return in * (rows + 1) + out * taps < out * rows * taps;
}

static int nnd_make_pool(struct nnd_maker *m) {
  const struct nnd_pool_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_pool_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size depth = nnd_size_of(m, own->depth);
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1] || depth < 1 || in->sizes[2] % depth ||
      out->sizes[2] % depth)
    return nnd_fail(m->message, "pooling makes other images or channels");
  struct nnd_axis *axes[2] = {&t->y, &t->x};
  for (int i = 0; i < 2; i++) { /* sizes are at most NND_MOST_BYTES: their products by a stride or dilation fit */
    const nnd_size kernel = nnd_size_of(m, own->window.kernel[i]), pad = nnd_size_of(m, own->window.pads[i]);
    const nnd_size below = i == 0 ? depth : 1;
    *axes[i] = (struct nnd_axis){in->sizes[2 + i] / below, out->sizes[2 + i] / below, kernel,
                                 own->window.strides[i],   own->window.dilations[i],  pad};
    t->end_pad[i] = nnd_size_of(m, own->end_pads[i]);
    if (kernel < 1 || pad < 0 || t->end_pad[i] < 0)
      return nnd_fail(m->message, "pooling by a window of %lld with %lld before it", (long long)kernel, (long long)pad);
  }
  t->planes = in->sizes[0] * nnd_blocks(in->sizes[1]) * depth;
  t->counts = own->counts;
  /* how far the first column of a window that lies inside may be from that of the first window */
  const nnd_size room = t->x.size - 1 - (t->x.kernel - 1) * t->x.dilation + t->x.pad;
  t->begin = nnd_ceil_div(t->x.pad, t->x.stride);
  t->end = room < 0 ? 0 : nnd_min(t->x.out_size, room / t->x.stride + 1);
  const int joins = nnd_pool_joins(t);
  const struct nnd_pool_kind *found = NULL;
  for (size_t i = 0; i < sizeof nnd_pool_kinds / sizeof *nnd_pool_kinds; i++) {
    const struct nnd_pool_kind *kind = &nnd_pool_kinds[i];
    const int fits = kind->wide == t->x.kernel && kind->stride == t->x.stride && t->x.dilation == 1;
    if (kind->joins == joins && (!kind->wide || fits)) found = kind;
  }
  m->scratch_bytes = joins ? t->x.size * NND_LANES * (nnd_size)sizeof(float) : 0;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = found->run[own->kind != NND_POOL_MAX];
  int is_whole = 1;
  for (int i = 0; i < 2; i++)
    is_whole &= axes[i]->kernel == axes[i]->size && axes[i]->out_size == 1 && !axes[i]->pad && axes[i]->dilation == 1;
  if (is_whole) m->instance->run = own->kind == NND_POOL_MAX ? nnd_pool_max_whole : nnd_pool_mean_whole;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%s %lldx%lld",
           own->kind == NND_POOL_MAX    ? "max"
           : own->kind == NND_POOL_MEAN ? "mean"
                                        : "sum",
           (long long)t->y.kernel, (long long)t->x.kernel);
  return 1;
}

const struct nnd_op nnd_op_pool = {"pool", nnd_open_pool, nnd_make_pool};
