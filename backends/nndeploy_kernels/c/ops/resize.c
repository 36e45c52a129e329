/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing of images in channel blocks: each output place is a weighted sum of few rows and few columns.
 *
 *   resize   input, output (tensors), for rows, then for columns: places (int32) and weights (float32), each of shape
 *            (output, taps)
 *   repeat   input, output (tensors), how often every row and every column is there (2)
 *
 * An output row sums its rows into a buffer first, and the buffer's columns then; where every place is one input place,
 * vectors are copied. Workers share output rows (input rows of a repeat) of all channel blocks and images.
 */
#include <stdio.h>

#include "model/model.h"

#define NND_RESIZE_TILE 4 /* vectors at a time: an addition waits for the one before */

/* One axis: output place i is the sum of taps[i * taps + k]. `reach` is one more than the largest place. */
struct nnd_resize_axis {
  nnd_size out_size, taps, reach;
  int32_t *places;
  float *weights;
};

struct nnd_resize_own {
  int in, out, copies; /* every output place is one input place */
  struct nnd_resize_axis y, x;
};

struct nnd_resize_fields {
  struct nnd_resize_axis y, x;
  nnd_size planes, in_h, in_w;
};

typedef nnd_elem nnd_line __attribute__((vector_size(NND_LANES * sizeof(nnd_elem))));

/* A weight of zero takes nothing, not even from an infinity: such a tap takes half of what another one does. */
static void nnd_resize_halve(int32_t *places, float *weights, nnd_size taps) {
  nnd_size some = 0;
  while (some < taps && weights[some] == 0.0f) some++;
  for (nnd_size i = 0; i < taps && some < taps; i++) {
    if (weights[i] != 0.0f) continue;
    weights[some] *= 0.5f;
    weights[i] = weights[some];
    places[i] = places[some];
  }
}

/* Reads a table into private memory: what was checked must not change. */
static int nnd_open_resize_axis(struct nnd_opener *o, struct nnd_resize_axis *axis) {
  const struct nnd_weight_data *places = nnd_read_weight_of(o, NND_INT32), *weights = nnd_read_weight(o);
  if (o->message->failed) return 0;
  if (!places || !weights || places->rank != 2 || weights->rank != 2 || places->sizes[0] != weights->sizes[0] ||
      places->sizes[1] != weights->sizes[1])
    return nnd_fail(o->message, "a resize without tables that fit each other");
  axis->out_size = places->sizes[0], axis->taps = places->sizes[1];
  axis->places = nnd_packed(o, places->count * (nnd_size)sizeof *axis->places);
  axis->weights = nnd_packed(o, places->count * (nnd_size)sizeof *axis->weights);
  if (!axis->places || !axis->weights) return 0;
  memcpy(axis->places, places->data, (size_t)places->count * sizeof *axis->places);
  memcpy(axis->weights, weights->data, (size_t)places->count * sizeof *axis->weights);
  for (nnd_size i = 0; i < places->count; i++) {
    if (axis->places[i] < 0) return nnd_fail(o->message, "a resize reads place %d", (int)axis->places[i]);
    axis->reach = nnd_max(axis->reach, (nnd_size)axis->places[i] + 1);
  }
  for (nnd_size i = 0; i < axis->out_size; i++)
    nnd_resize_halve(axis->places + i * axis->taps, axis->weights + i * axis->taps, axis->taps);
  return 1;
}

static int nnd_resize_is_copy(const struct nnd_resize_axis *axis) {
  for (nnd_size i = 0; i < axis->out_size; i++)
    if (axis->taps != 1 || axis->weights[i] != 1.0f) return 0;
  return 1;
}

static int nnd_open_resize(struct nnd_opener *o) {
  struct nnd_resize_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_tensor(o);
  own->out = nnd_write_tensor(o);
  if (o->message->failed || !nnd_open_resize_axis(o, &own->y) || !nnd_open_resize_axis(o, &own->x)) return 0;
  if (!o->model->tensors[own->in].is_blocked || !o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "a resize of a tensor that is not in blocks");
  own->copies = nnd_resize_is_copy(&own->y) && nnd_resize_is_copy(&own->x);
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

static int nnd_make_resize(struct nnd_maker *m) {
  const struct nnd_resize_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_resize_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_resize_fields){own->y, own->x, in->sizes[0] * nnd_blocks(in->sizes[1]), in->sizes[2], in->sizes[3]};
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1] || out->sizes[2] != t->y.out_size ||
      out->sizes[3] != t->x.out_size)
    return nnd_fail(m->message, "the images of a resize do not fit its tables");
  if (t->y.reach > t->in_h || t->x.reach > t->in_w) return nnd_fail(m->message, "a resize reads beyond its image");
  m->scratch_bytes = own->copies ? 0 : t->in_w * NND_LANES * (nnd_size)sizeof(float);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = nnd_run_resize_any;
  if (t->y.taps == 2 && t->x.taps == 2) m->instance->run = nnd_run_resize_two;
  if (own->copies) m->instance->run = nnd_run_resize_copy;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lldx%lld to %lldx%lld, %lldx%lld taps", (long long)t->in_h,
           (long long)t->in_w, (long long)t->y.out_size, (long long)t->x.out_size, (long long)t->y.taps,
           (long long)t->x.taps);
  return 1;
}

const struct nnd_op nnd_op_resize = {"resize", nnd_open_resize, nnd_make_resize};

#define NND_MOST_TIMES 65536

struct nnd_repeat_own {
  int in, out;
  nnd_size times[2];
};

struct nnd_repeat_fields {
  nnd_size rows, in_w, times_h, times_w;
};

static int nnd_open_repeat(struct nnd_opener *o) {
  struct nnd_repeat_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_tensor(o);
  own->out = nnd_write_tensor(o);
  for (int i = 0; i < 2; i++) own->times[i] = nnd_word(o, 1, NND_MOST_TIMES);
  if (o->message->failed) return 0;
  if (!o->model->tensors[own->in].is_blocked || !o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "pixels of a tensor that is not in blocks are repeated");
  return 1;
}

/* One output row after the other: writing to several at once takes 1.05 times as long. */
NND_INLINE void nnd_repeat_any(const struct nnd_repeat_fields *t, nnd_size times_h, nnd_size times_w, nnd_line *out,
                               const nnd_line *in, struct nnd_part part) {
  nnd_size unit, last;
  nnd_share(t->rows, part, &unit, &last);
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
  const struct nnd_repeat_fields *t = fields;
  nnd_repeat_any(t, t->times_h, t->times_w, at[0], at[1], part);
}

static int nnd_make_repeat(struct nnd_maker *m) {
  const struct nnd_repeat_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_repeat_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_repeat_fields){in->sizes[0] * nnd_blocks(in->sizes[1]) * in->sizes[2], in->sizes[3], own->times[0],
                                  own->times[1]};
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1] || out->sizes[2] != in->sizes[2] * t->times_h ||
      out->sizes[3] != in->sizes[3] * t->times_w)
    return nnd_fail(m->message, "pixels are repeated to an image of another size");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = t->times_h == 2 && t->times_w == 2 ? nnd_run_repeat_two : nnd_run_repeat_any;
  return 1;
}

const struct nnd_op nnd_op_repeat = {"repeat", nnd_open_repeat, nnd_make_repeat};
