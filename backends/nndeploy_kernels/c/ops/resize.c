/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing of images in channel blocks: each output place is a weighted sum of few rows and few columns.
 *
 * An output row sums its rows into a buffer first, and the buffer's columns then; where every place is one input place,
 * vectors are copied. Workers share output rows (input rows where all are repeated) of all channel blocks and images.
 */
#include "model/words.h"
#include "ops/resize_table.h"

#include <stdio.h>

#define NND_RESIZE_TILE 4 /* vectors at a time: an addition waits for the one before */

NND_RECORD(resize)

struct nnd_resize_fields {
  struct nnd_resize_axis y, x;
  nnd_size planes, in_h, in_w;
  float beyond;
};

typedef nnd_elem nnd_line __attribute__((vector_size(NND_LANES * sizeof(nnd_elem))));

static int nnd_open_resize(struct nnd_opener *o) {
  struct nnd_resize *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_resize(o, own)) return 0;
  if (!o->model->tensors[own->in].is_blocked || !o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "a resize of a tensor that is not in blocks");
  return 1;
}

static void nnd_run_resize_copy(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_resize_fields *t = fields;
  const nnd_size out_h = t->y.out_size, out_w = t->x.out_size;
  const int32_t *columns = t->x.places;
  nnd_size unit, last;
  nnd_share(t->planes * out_h, part, &unit, &last);
  nnd_line *to = (nnd_line *)at[0] + unit * out_w;
  for (; unit < last; unit++, to += out_w) {
    const nnd_line *row = (const nnd_line *)at[1] + (unit / out_h * t->in_h + t->y.places[unit % out_h]) * t->in_w;
    for (nnd_size x = 0; x < out_w; x++) to[x] = row[columns[x]];
  }
}

/* The rows of an output row as one; `taps` is a compile-time constant where it is the usual number. */
NND_INLINE void nnd_resize_rows(nnd_size taps, const int32_t *places, const float *weights, nnd_size width,
                                const nnd_elem *plane, float *buffer) {
  nnd_size x = 0;
  for (; x + NND_RESIZE_TILE <= width; x += NND_RESIZE_TILE) {
    vf sums[NND_RESIZE_TILE];
    NND_UNROLL
    for (int i = 0; i < NND_RESIZE_TILE; i++) sums[i] = nnd_splat(0.0f);
    for (nnd_size tap = 0; tap < taps; tap++) {
      const nnd_elem *from = plane + (places[tap] * width + x) * NND_LANES;
      const vf weight = nnd_splat(weights[tap]);
      NND_UNROLL
      for (int i = 0; i < NND_RESIZE_TILE; i++) sums[i] += weight * nnd_read(from + i * NND_LANES);
    }
    NND_UNROLL
    for (int i = 0; i < NND_RESIZE_TILE; i++) nnd_store(buffer + (x + i) * NND_LANES, sums[i]);
  }
  for (; x < width; x++) {
    vf sum = nnd_splat(0.0f);
    for (nnd_size tap = 0; tap < taps; tap++)
      sum += weights[tap] * nnd_read(plane + (places[tap] * width + x) * NND_LANES);
    nnd_store(buffer + x * NND_LANES, sum);
  }
}

NND_INLINE void nnd_resize_columns(nnd_size taps, const int32_t *places, const float *weights, nnd_size width,
                                   const float *buffer, nnd_elem *to) {
  for (nnd_size x = 0; x < width; x++, places += taps, weights += taps) {
    vf sum = nnd_splat(0.0f);
    for (nnd_size tap = 0; tap < taps; tap++)
      sum += weights[tap] * nnd_load(buffer + (nnd_size)places[tap] * NND_LANES);
    nnd_write(to + x * NND_LANES, sum);
  }
}

NND_INLINE void nnd_resize_any(const struct nnd_resize_fields *t, nnd_size taps_h, nnd_size taps_w, nnd_elem *out,
                               const nnd_elem *in, struct nnd_part part) {
  const nnd_size out_h = t->y.out_size, out_w = t->x.out_size;
  float *buffer = (float *)part.scratch;
  nnd_size unit, last;
  nnd_share(t->planes * out_h, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size row = unit % out_h * taps_h;
    nnd_resize_rows(taps_h, t->y.places + row, t->y.weights + row, t->in_w,
                    in + unit / out_h * t->in_h * t->in_w * NND_LANES, buffer);
    nnd_resize_columns(taps_w, t->x.places, t->x.weights, out_w, buffer, out + unit * out_w * NND_LANES);
  }
}

static void nnd_run_resize_two(const void *fields, void *const *at, struct nnd_part part) {
  nnd_resize_any(fields, 2, 2, at[0], at[1], part);
}
static void nnd_run_resize_any(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_resize_fields *t = fields;
  nnd_resize_any(t, t->y.taps, t->x.taps, at[0], at[1], part);
}

static void nnd_run_resize_beyond(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_resize_fields *t = fields;
  nnd_elem beyond[NND_LANES];
  for (int lane = 0; lane < NND_LANES; lane++) beyond[lane] = nnd_to_elem(t->beyond);
  float *buffer = (float *)part.scratch;
  nnd_size unit, last;
  nnd_share(t->planes * t->y.out_size, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size row = unit % t->y.out_size * t->y.taps;
    const int is_beyond = t->y.places[row] < 0;
    nnd_elem *to = (nnd_elem *)at[0] + unit * t->x.out_size * NND_LANES;
    if (!is_beyond)
      nnd_resize_rows(t->y.taps, t->y.places + row, t->y.weights + row, t->in_w,
                      (const nnd_elem *)at[1] + unit / t->y.out_size * t->in_h * t->in_w * NND_LANES, buffer);
    for (nnd_size x = 0; x < t->x.out_size; x++, to += NND_LANES) {
      const nnd_size column = x * t->x.taps;
      if (is_beyond || t->x.places[column] < 0)
        memcpy(to, beyond, sizeof beyond);
      else
        nnd_resize_columns(t->x.taps, t->x.places + column, t->x.weights + column, 1, buffer, to);
    }
  }
}

/* Every row `times_h` times, every column `times_w` times. One output row after the other: writing to several at once
 * takes 1.05 times as long. */
NND_INLINE void nnd_repeat_any(const struct nnd_resize_fields *t, nnd_size times_h, nnd_size times_w, nnd_line *out,
                               const nnd_line *in, struct nnd_part part) {
  nnd_size unit, last;
  nnd_share(t->planes * t->in_h, part, &unit, &last);
  nnd_line *to = out + unit * times_h * t->in_w * times_w;
  for (; unit < last; unit++) {
    const nnd_line *row = in + unit * t->in_w;
    for (nnd_size y = 0; y < times_h; y++)
      for (nnd_size x = 0; x < t->in_w; x++)
        for (nnd_size i = 0; i < times_w; i++) *to++ = row[x];
  }
}

static void nnd_run_repeat_two(const void *fields, void *const *at, struct nnd_part part) {
  nnd_repeat_any(fields, 2, 2, at[0], at[1], part);
}
static void nnd_run_repeat_any(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_resize_fields *t = fields;
  nnd_repeat_any(t, t->y.out_size / t->in_h, t->x.out_size / t->in_w, at[0], at[1], part);
}

static int nnd_make_resize(struct nnd_maker *m) {
  const struct nnd_resize *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const nnd_size depth = nnd_size_of(m, own->depth);
  struct nnd_resize_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1] || depth < 1 || in->sizes[2] % depth ||
      out->sizes[2] % depth)
    return nnd_fail(m->message, "images are resized to others");
  t->planes = in->sizes[0] * nnd_blocks(in->sizes[1]) * depth, t->in_h = in->sizes[2] / depth, t->in_w = in->sizes[3];
  t->beyond = own->mode.beyond;
  if (!nnd_make_resize_axis(m, &own->mode, &own->rows, t->in_h, out->sizes[2] / depth, &t->y) ||
      !nnd_make_resize_axis(m, &own->mode, &own->columns, t->in_w, out->sizes[3], &t->x))
    return 0;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  const int copies = t->y.is_copy && t->x.is_copy, has_beyond = t->y.has_beyond || t->x.has_beyond;
  const nnd_size times_h = nnd_resize_times(&t->y), times_w = nnd_resize_times(&t->x);
  if (has_beyond || !copies) m->scratch_bytes = t->in_w * NND_LANES * (nnd_size)sizeof(float);
  if (has_beyond)
    m->instance->run = nnd_run_resize_beyond;
  else if (times_h && times_w)
    m->instance->run = times_h == 2 && times_w == 2 ? nnd_run_repeat_two : nnd_run_repeat_any;
  else if (copies)
    m->instance->run = nnd_run_resize_copy;
  else
    m->instance->run = t->y.taps == 2 && t->x.taps == 2 ? nnd_run_resize_two : nnd_run_resize_any;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lldx%lld to %lldx%lld, %lldx%lld taps", (long long)t->in_h,
           (long long)t->in_w, (long long)t->y.out_size, (long long)t->x.out_size, (long long)t->y.taps,
           (long long)t->x.taps);
  return 1;
}

const struct nnd_op nnd_op_resize = {"resize", nnd_open_resize, nnd_make_resize};
