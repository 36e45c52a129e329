/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the largest element of each window lies: the second output of ONNX's MaxPool.
 *
 * Places count the elements of the whole input. The first of equal elements counts, a NaN before all others; a window
 * that lies in padding alone has the place 0. Workers share output rows.
 */
#include "model/words.h"

NND_RECORD(places_axis)

NND_RECORD(pool_places)

/* Axes that there are not have one element. `steps`: by how much a place grows along each. */
struct nnd_places_fields {
  struct nnd_axis axes[NND_POOLED_AXES];
  nnd_size planes, steps[NND_POOLED_AXES];
};

static int nnd_open_pool_places(struct nnd_opener *o) {
  struct nnd_pool_places *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_pool_places(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || out->element != NND_INT64 || in->rank != out->rank || in->rank < 3 ||
      in->rank != 2 + own->num_axes)
    return nnd_fail(o->message, "places of windows of another kind of tensor");
  return 1;
}

/* The place of the largest element of the window whose first tap is at `at`. */
static nnd_size nnd_largest_place(const struct nnd_places_fields *t, const float *plane, const nnd_size *at) {
  const struct nnd_axis z = t->axes[0], y = t->axes[1], x = t->axes[2];
  const nnd_size first = nnd_tap_begin(x, at[2]), end = nnd_tap_end(x, at[2]);
  nnd_size found = -1;
  float largest = 0;
  for (nnd_size kz = nnd_tap_begin(z, at[0]); kz < nnd_tap_end(z, at[0]); kz++)
    for (nnd_size ky = nnd_tap_begin(y, at[1]); ky < nnd_tap_end(y, at[1]); ky++) {
      const nnd_size iz = at[0] + kz * z.dilation, iy = at[1] + ky * y.dilation;
      const float *row = plane + (iz * y.size + iy) * x.size;
      for (nnd_size kx = first; kx < end; kx++) {
        const nnd_size ix = at[2] + kx * x.dilation;
        const float value = row[ix];
        if (found >= 0 && !(value > largest) && (value == value || largest != largest)) continue;
        largest = value, found = iz * t->steps[0] + iy * t->steps[1] + ix * t->steps[2];
      }
    }
  return nnd_max(0, found);
}

static void nnd_run_pool_places(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_places_fields *t = fields;
  const struct nnd_axis z = t->axes[0], y = t->axes[1], x = t->axes[2];
  const nnd_size of_plane = z.size * y.size * x.size;
  nnd_size row, last;
  nnd_share(t->planes * z.out_size * y.out_size, part, &row, &last);
  int64_t *to = (int64_t *)at[0] + row * x.out_size;
  for (; row < last; row++) {
    const nnd_size plane = row / y.out_size / z.out_size * of_plane;
    nnd_size first[3] = {row / y.out_size % z.out_size * z.stride - z.pad, row % y.out_size * y.stride - y.pad, -x.pad};
    for (nnd_size i = 0; i < x.out_size; i++, first[2] += x.stride)
      *to++ = plane + nnd_largest_place(t, (const float *)at[1] + plane, first);
  }
}

static int nnd_make_pool_places(struct nnd_maker *m) {
  const struct nnd_pool_places *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_places_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1])
    return nnd_fail(m->message, "places of windows of other images");
  t->planes = in->sizes[0] * in->sizes[1];
  for (int i = 0; i < NND_POOLED_AXES; i++) {
    const int number = i - (NND_POOLED_AXES - own->num_axes);
    t->axes[i] = (struct nnd_axis){1, 1, 1, 1, 1, 0};
    if (number < 0) continue;
    const struct nnd_places_axis *axis = &own->axes[number];
    const nnd_size kernel = nnd_size_of(m, axis->kernel), pad = nnd_size_of(m, axis->pad);
    if (kernel < 1 || pad < 0) return nnd_fail(m->message, "places of a window that is none");
    t->axes[i] =
        (struct nnd_axis){in->sizes[2 + number], out->sizes[2 + number], kernel, axis->stride, axis->dilation, pad};
  }
  const nnd_size depth = t->axes[0].size, height = t->axes[1].size, width = t->axes[2].size;
  const nnd_size rows[3] = {height * width, width, 1}, columns[3] = {1, depth, depth * height};
  for (int i = 0; i < NND_POOLED_AXES; i++) t->steps[i] = own->is_column_major ? columns[i] : rows[i];
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->instance->run = nnd_run_pool_places;
  return 1;
}

const struct nnd_op nnd_op_pool_places = {"pool_places", nnd_open_pool_places, nnd_make_pool_places};
