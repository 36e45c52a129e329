/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels of images in channel blocks at places that are data, and grids of such places.
 *
 * Places are between -1 and 1, the last axis first; what stands beyond is as the padding says. A place that is no number
 * is far outside. Workers share output pixels.
 * Source: ONNX GridSample, opset 20; AffineGrid, opset 20; cubic coefficients: Keys, 1981.
 */
#include "model/words.h"

#define NND_MOST_AXES 3
#define NND_AXIS_TAPS 4
#define NND_PIXEL_TAPS 64
#define NND_FAR 1e9f /* places beyond are as far as this: whole numbers hold them */

NND_SET(sample_kind);
NND_SET(sample_padding);

NND_RECORD(grid_sample)

/* `sizes` and `steps`, elements from place to place, in the order of the grid: the last axis first. */
struct nnd_grid_fields {
  int axes, kind, padding, is_aligned;
  nnd_size sizes[NND_MOST_AXES], steps[NND_MOST_AXES];
  nnd_size images, blocks, pixels, in_plane;
};

static int nnd_open_grid_sample(struct nnd_opener *o) {
  struct nnd_grid_sample *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_grid_sample(o, own)) return 0;
  const struct nnd_tensor *tensors = o->model->tensors;
  if (!tensors[own->in].is_blocked || tensors[own->grid].is_blocked || !tensors[own->out].is_blocked)
    return nnd_fail(o->message, "pixels are sampled from a tensor of another layout");
  return 1;
}

/* A place beyond [low, high] by reflection at both; `low` where these are one. */
static float nnd_reflected(float x, float low, float high) {
  const double span = (double)high - low, beyond = x < low ? (double)low - x : (double)x - high;
  if (beyond <= 0) return x;
  if (span <= 0) return low;
  const double times = __builtin_floor(beyond / span), rest = beyond - times * span;
  const int is_even = times - 2 * __builtin_floor(times / 2) == 0;
  return (float)((x < low) == is_even ? low + rest : high - rest);
}

/* The taps of one axis: how many lie inside, with their places and weights. */
struct nnd_axis_taps {
  int count;
  nnd_size places[NND_AXIS_TAPS];
  float weights[NND_AXIS_TAPS];
};

static void nnd_cubic_weights(float x, float *weights) {
  const float a = -0.75f, y = 1 - x;
  weights[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  weights[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  weights[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
  weights[3] = ((a * (y + 1) - 5 * a) * (y + 1) + 8 * a) * (y + 1) - 4 * a;
}

static void nnd_sample_axis(const struct nnd_grid_fields *t, float at, nnd_size size, struct nnd_axis_taps *taps) {
  const float length = (float)size, low = t->is_aligned ? 0 : -0.5f, high = length - (t->is_aligned ? 1 : 0.5f);
  float x = t->is_aligned ? (at + 1) / 2 * (length - 1) : ((at + 1) * length - 1) / 2;
  x = x >= -NND_FAR ? (x <= NND_FAR ? x : NND_FAR) : -NND_FAR;
  if (t->kind == NND_SAMPLE_NEAREST) x = __builtin_rintf(x);
  /* a cubic place beyond the border stays where it is, as ONNX Runtime and PyTorch have it: its taps do not */
  if (t->padding == NND_PAD_BORDER && t->kind != NND_SAMPLE_CUBIC) x = x < 0 ? 0 : x > length - 1 ? length - 1 : x;
  if (t->padding == NND_PAD_REFLECTION) x = nnd_reflected(x, low, high);
  const int many = t->kind == NND_SAMPLE_CUBIC ? 4 : t->kind == NND_SAMPLE_LINEAR ? 2 : 1;
  const float whole = __builtin_floorf(x), rest = x - whole;
  const nnd_size first = (nnd_size)whole - (many == 4);
  float weights[NND_AXIS_TAPS] = {many == 2 ? 1 - rest : 1, rest};
  if (many == 4) nnd_cubic_weights(rest, weights);
  taps->count = 0;
  for (int tap = 0; tap < many; tap++) {
    nnd_size place = first + tap;
    if (place < 0 || place >= size) {
      if (t->padding == NND_PAD_ZEROS) continue;
      if (t->padding == NND_PAD_REFLECTION) place = (nnd_size)nnd_reflected((float)place, low, high);
      place = nnd_max(0, nnd_min(size - 1, place));
    }
    taps->places[taps->count] = place;
    taps->weights[taps->count++] = weights[tap];
  }
}

/* The taps of a pixel: how many there are, the elements where they lie, and their weights. */
static int nnd_sample_taps(const struct nnd_grid_fields *t, const float *grid, nnd_size *places, float *weights) {
  struct nnd_axis_taps axes[NND_MOST_AXES];
  for (int axis = 0; axis < t->axes; axis++) nnd_sample_axis(t, grid[axis], t->sizes[axis], &axes[axis]);
  if (t->axes < NND_MOST_AXES) axes[NND_MOST_AXES - 1] = (struct nnd_axis_taps){1, {0}, {1}};
  int count = 0;
  for (int z = 0; z < axes[2].count; z++)
    for (int y = 0; y < axes[1].count; y++)
      for (int x = 0; x < axes[0].count; x++, count++) {
        places[count] =
            axes[2].places[z] * t->steps[2] + axes[1].places[y] * t->steps[1] + axes[0].places[x] * t->steps[0];
        weights[count] = axes[2].weights[z] * axes[1].weights[y] * axes[0].weights[x];
      }
  return count;
}

static void nnd_run_grid_sample(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_grid_fields *t = fields;
  const nnd_size out_plane = t->pixels * NND_LANES;
  nnd_size unit, last, places[NND_PIXEL_TAPS];
  float weights[NND_PIXEL_TAPS];
  nnd_share(t->images * t->pixels, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size image = unit / t->pixels, pixel = unit % t->pixels;
    const int count = nnd_sample_taps(t, (const float *)at[1] + unit * t->axes, places, weights);
    const nnd_elem *from = (const nnd_elem *)at[2] + image * t->blocks * t->in_plane;
    nnd_elem *to = (nnd_elem *)at[0] + image * t->blocks * out_plane + pixel * NND_LANES;
    for (nnd_size block = 0; block < t->blocks; block++, from += t->in_plane, to += out_plane) {
      vf sum = nnd_splat(0.0f);
      for (int tap = 0; tap < count; tap++) sum += weights[tap] * nnd_read(from + places[tap]);
      nnd_write(to, sum);
    }
  }
}

static int nnd_make_grid_sample(struct nnd_maker *m) {
  const struct nnd_grid_sample *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const struct nnd_shape *grid = nnd_shape_of(m, own->grid);
  const nnd_size depth = nnd_size_of(m, own->depth);
  struct nnd_grid_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1] || depth < 1 || in->sizes[2] % depth ||
      (own->axes == 2 && depth != 1) || in->sizes[2] * in->sizes[3] > NND_MOST_BYTES / NND_LANES ||
      grid->count % own->axes || grid->count / own->axes / in->sizes[0] != out->sizes[2] * out->sizes[3] ||
      grid->count / own->axes % in->sizes[0])
    return nnd_fail(m->message, "images, places and what is sampled do not fit each other");
  const nnd_size height = in->sizes[2] / depth, width = in->sizes[3];
  *t = (struct nnd_grid_fields){.axes = own->axes,
                                .kind = own->kind,
                                .padding = own->padding,
                                .is_aligned = own->is_aligned,
                                .sizes = {width, height, depth},
                                .steps = {NND_LANES, width * NND_LANES, height * width * NND_LANES},
                                .images = in->sizes[0],
                                .blocks = nnd_blocks(in->sizes[1]),
                                .pixels = out->sizes[2] * out->sizes[3],
                                .in_plane = in->sizes[2] * width * NND_LANES};
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->grid);
  nnd_give_tensor(m, own->in);
  m->instance->run = nnd_run_grid_sample;
  return 1;
}

const struct nnd_op nnd_op_grid_sample = {"grid_sample", nnd_open_grid_sample, nnd_make_grid_sample};

NND_RECORD(affine_grid)

/* `sizes` in the order of the output. */
struct nnd_affine_fields {
  int axes, is_aligned;
  nnd_size images, pixels, sizes[NND_MOST_AXES];
};

static int nnd_open_affine_grid(struct nnd_opener *o) {
  struct nnd_affine_grid *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_affine_grid(o, own)) return 0;
  const struct nnd_tensor *matrices = &o->model->tensors[own->matrices], *out = &o->model->tensors[own->out];
  if (matrices->is_blocked || out->is_blocked || matrices->rank != 3 || out->rank != own->axes + 2)
    return nnd_fail(o->message, "a grid of another layout or rank");
  return 1;
}

static void nnd_run_affine_grid(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_affine_fields *t = fields;
  const int axes = t->axes;
  nnd_size unit, last;
  nnd_share(t->images * t->pixels, part, &unit, &last);
  float *to = (float *)at[0] + unit * axes;
  for (; unit < last; unit++) {
    const float *matrix = (const float *)at[1] + unit / t->pixels * axes * (axes + 1);
    double places[NND_MOST_AXES]; /* the last axis first, as the rows of a matrix are */
    nnd_size rest = unit % t->pixels;
    for (int axis = 0; axis < axes; axis++) {
      const nnd_size size = t->sizes[axes - 1 - axis], number = rest % size;
      const double step = 2.0 / (double)nnd_max(1, size - t->is_aligned);
      places[axis] = -1 + (t->is_aligned ? 0 : step / 2) + (double)number * step;
      rest /= size;
    }
    for (int row = 0; row < axes; row++, matrix += axes + 1) {
      double sum = matrix[axes];
      for (int axis = 0; axis < axes; axis++) sum += matrix[axis] * places[axis];
      *to++ = (float)sum;
    }
  }
}

static int nnd_make_affine_grid(struct nnd_maker *m) {
  const struct nnd_affine_grid *own = m->step->own;
  const struct nnd_shape *matrices = nnd_shape_of(m, own->matrices), *out = nnd_shape_of(m, own->out);
  struct nnd_affine_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->axes = own->axes, t->is_aligned = own->is_aligned, t->images = out->sizes[0];
  t->pixels = 1;
  for (int axis = 0; axis < t->axes; axis++) t->sizes[axis] = out->sizes[1 + axis], t->pixels *= t->sizes[axis];
  if (matrices->sizes[0] != t->images || matrices->sizes[1] != t->axes || matrices->sizes[2] != t->axes + 1 ||
      out->sizes[t->axes + 1] != t->axes)
    return nnd_fail(m->message, "matrices and their grids do not fit each other");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->matrices);
  m->instance->run = nnd_run_affine_grid;
  return 1;
}

const struct nnd_op nnd_op_affine_grid = {"affine_grid", nnd_open_affine_grid, nnd_make_affine_grid};
