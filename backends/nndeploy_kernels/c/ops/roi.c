/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of images in channel blocks, pooled to one size.
 *
 * A region of an image that there is not is told, and gives zeros. Workers share output rows of all regions.
 * Source: ONNX RoiAlign, opset 16; MaxRoiPool, opset 1.
 */
#include "base/operators.h"
#include "model/words.h"

#define NND_MOST_SAMPLES 64 /* along each side of a bin, where they are given */
#define NND_FARTHEST 1e15   /* scales, and samples before the image: beyond there are none inside */

NND_RECORD(roi_align)
NND_READER(roi_max_pool, struct nnd_roi_align)

struct nnd_roi_fields {
  nnd_size images, blocks, height, width, rois, out_h, out_w;
  float scale, offset;
  int is_max, samples, is_least_one, has_long_numbers;
};

static int nnd_check_roi_layout(struct nnd_opener *o, const struct nnd_roi_align *own) {
  const struct nnd_tensor *tensors = o->model->tensors;
  if (tensors[own->in].is_blocked && tensors[own->out].is_blocked && !tensors[own->rois].is_blocked) return 1;
  return nnd_fail(o->message, "regions of a tensor of another layout");
}

static int nnd_open_roi_align(struct nnd_opener *o) {
  struct nnd_roi_align *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_roi_align(o, own) || !nnd_check_roi_layout(o, own)) return 0;
  const struct nnd_tensor *images = &o->model->tensors[own->images];
  if (images->is_blocked || (images->element != NND_INT64 && images->element != NND_INT32))
    return nnd_fail(o->message, "regions of images that are no whole numbers");
  return 1;
}

static int nnd_open_roi_max_pool(struct nnd_opener *o) {
  struct nnd_roi_align *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->images = -1;
  return nnd_read_roi_max_pool(o, own) && nnd_check_roi_layout(o, own);
}

/* One side of a bin: `count` samples from `begin` on, `step` apart; those [first, last) may lie inside. */
struct nnd_bin_side {
  float begin, step;
  double count;
  nnd_size first, last;
};

/* Of many samples only those near the image are looked at. */
static struct nnd_bin_side nnd_side_of(float begin, float bin, int samples, nnd_size size) {
  struct nnd_bin_side side = {.begin = begin, .count = samples > 0 ? samples : __builtin_ceil((double)bin)};
  if (!(side.count > 0)) return (struct nnd_bin_side){0};
  side.step = bin / (float)side.count;
  side.last = (nnd_size)(side.count < NND_MOST_SAMPLES ? side.count : NND_MOST_SAMPLES);
  if (side.count <= NND_MOST_SAMPLES) return side;
  const double low = (-1 - (double)begin) / side.step - 1, high = ((double)size - begin) / side.step + 1;
  if (!(high > 0 && low < side.count && low < NND_FARTHEST)) return (struct nnd_bin_side){.count = side.count};
  side.first = low > 0 ? (nnd_size)low : 0;
  side.last = (nnd_size)(high < side.count ? high : side.count);
  return side;
}

/* The two places of a sample along a side and the weight of the second; 0 where it lies outside. */
static int nnd_bin_sample(float at, nnd_size size, nnd_size *low, nnd_size *high, float *weight) {
  if (!(at >= -1.0f && at <= (float)size)) return 0;
  at = at > 0 ? at : 0;
  *low = nnd_min(size - 1, (nnd_size)at);
  *high = nnd_min(size - 1, *low + 1);
  *weight = *low == size - 1 ? 0 : at - (float)*low;
  return 1;
}

/* What the samples of a bin give for one block of channels. */
static vf nnd_bin_value(const struct nnd_roi_fields *t, const nnd_elem *plane, const struct nnd_bin_side *y,
                        const struct nnd_bin_side *x) {
  vf sum = nnd_splat(0.0f), largest = nnd_splat(-__builtin_inff());
  double inside = 0;
  for (nnd_size i = y->first; i < y->last; i++) {
    nnd_size top, bottom, left, right;
    float v, u;
    if (!nnd_bin_sample(y->begin + ((float)i + 0.5f) * y->step, t->height, &top, &bottom, &v)) continue;
    for (nnd_size k = x->first; k < x->last; k++) {
      if (!nnd_bin_sample(x->begin + ((float)k + 0.5f) * x->step, t->width, &left, &right, &u)) continue;
      const vf a = (1 - v) * (1 - u) * nnd_read(plane + (top * t->width + left) * NND_LANES);
      const vf b = (1 - v) * u * nnd_read(plane + (top * t->width + right) * NND_LANES);
      const vf c = v * (1 - u) * nnd_read(plane + (bottom * t->width + left) * NND_LANES);
      const vf d = v * u * nnd_read(plane + (bottom * t->width + right) * NND_LANES);
      inside += 1;
      sum += a + b + c + d;
      largest = nnd_op_max(nnd_op_max(nnd_op_max(a, b), nnd_op_max(c, d)), largest); /* as ONNX defines it */
    }
  }
  const double count = y->count * x->count;
  if (!t->is_max) return sum * (float)(1 / (count > 1 ? count : 1));
  return inside < count || inside == 0 ? nnd_op_max(largest, nnd_splat(0.0f)) : largest; /* outside are zeros */
}

static void nnd_fill_row(const struct nnd_roi_fields *t, nnd_elem *to) {
  for (nnd_size block = 0; block < t->blocks; block++, to += t->out_h * t->out_w * NND_LANES)
    memset(to, 0, (size_t)(t->out_w * NND_LANES) * sizeof *to);
}

static void nnd_run_roi_align(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_roi_fields *t = fields;
  const nnd_size in_plane = t->height * t->width * NND_LANES, out_plane = t->out_h * t->out_w * NND_LANES;
  nnd_size unit, last;
  nnd_share(t->rois * t->out_h, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size number = unit / t->out_h, row = unit % t->out_h;
    const int64_t image = t->has_long_numbers ? ((const int64_t *)at[3])[number] : ((const int32_t *)at[3])[number];
    const float *roi = (const float *)at[2] + number * 4;
    nnd_elem *out = (nnd_elem *)at[0] + number * t->blocks * out_plane + row * t->out_w * NND_LANES;
    if (image < 0 || image >= t->images) {
      nnd_out_of_range(&part, number, image, t->images);
      nnd_fill_row(t, out);
      continue;
    }
    const float left = roi[0] * t->scale - t->offset, top = roi[1] * t->scale - t->offset;
    float width = roi[2] * t->scale - t->offset - left, height = roi[3] * t->scale - t->offset - top;
    if (t->is_least_one) width = width > 1 ? width : 1, height = height > 1 ? height : 1;
    const float bin_h = height / (float)t->out_h, bin_w = width / (float)t->out_w;
    const struct nnd_bin_side y = nnd_side_of(top + (float)row * bin_h, bin_h, t->samples, t->height);
    for (nnd_size column = 0; column < t->out_w; column++) {
      const struct nnd_bin_side x = nnd_side_of(left + (float)column * bin_w, bin_w, t->samples, t->width);
      const nnd_elem *plane = (const nnd_elem *)at[1] + image * t->blocks * in_plane;
      for (nnd_size block = 0; block < t->blocks; block++, plane += in_plane)
        nnd_write(out + block * out_plane + column * NND_LANES, nnd_bin_value(t, plane, &y, &x));
    }
  }
}

/* To the nearest, halves away from zero. */
static double nnd_rounded(float x) { return x < 0 ? __builtin_ceil(x - 0.5) : __builtin_floor(x + 0.5); }

/* The pixels [*begin, *end) of bin `number` of `count`, of a region that begins at `first` and is so long. */
static void nnd_bin_pixels(double first, double length, nnd_size number, nnd_size count, nnd_size size, nnd_size *begin,
                           nnd_size *end) {
  const double bin = length / (double)count, last = (double)size;
  const double low = __builtin_floor((double)number * bin) + first;
  const double high = __builtin_ceil((double)(number + 1) * bin) + first;
  *begin = low > 0 ? (nnd_size)(low < last ? low : last) : 0;
  *end = high > 0 ? (nnd_size)(high < last ? high : last) : 0;
}

static void nnd_run_roi_max_pool(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_roi_fields *t = fields;
  const nnd_size in_plane = t->height * t->width * NND_LANES, out_plane = t->out_h * t->out_w * NND_LANES;
  nnd_size unit, last;
  nnd_share(t->rois * t->out_h, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size number = unit / t->out_h, row = unit % t->out_h;
    const float *roi = (const float *)at[2] + number * 5;
    nnd_elem *out = (nnd_elem *)at[0] + number * t->blocks * out_plane + row * t->out_w * NND_LANES;
    double ends[4]; /* left, top, right, bottom, to whole pixels */
    for (int i = 0; i < 4; i++) ends[i] = nnd_rounded(roi[1 + i] * t->scale);
    if (!(roi[0] >= 0 && roi[0] < (float)t->images)) {
      nnd_out_of_range(&part, number * 5, roi[0] < 0 ? -1 : t->images, t->images);
      nnd_fill_row(t, out);
      continue;
    }
    const double width = ends[2] - ends[0] + 1, height = ends[3] - ends[1] + 1;
    nnd_size top, bottom, left, right;
    nnd_bin_pixels(ends[1], height > 1 ? height : 1, row, t->out_h, t->height, &top, &bottom);
    for (nnd_size column = 0; column < t->out_w; column++) {
      nnd_bin_pixels(ends[0], width > 1 ? width : 1, column, t->out_w, t->width, &left, &right);
      const nnd_elem *plane = (const nnd_elem *)at[1] + (nnd_size)roi[0] * t->blocks * in_plane;
      for (nnd_size block = 0; block < t->blocks; block++, plane += in_plane) {
        vf found = nnd_splat(bottom > top && right > left ? -__builtin_inff() : 0.0f);
        for (nnd_size y = top; y < bottom; y++)
          for (nnd_size x = left; x < right; x++)
            found = nnd_op_max(found, nnd_read(plane + (y * t->width + x) * NND_LANES));
        nnd_write(out + block * out_plane + column * NND_LANES, found);
      }
    }
  }
}

static int nnd_make_roi(struct nnd_maker *m, nnd_size columns,
                        void (*run)(const void *fields, void *const *at, struct nnd_part part)) {
  const struct nnd_roi_align *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const nnd_size rois = nnd_shape_of(m, own->rois)->count;
  struct nnd_roi_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_roi_fields){in->sizes[0],
                               nnd_blocks(in->sizes[1]),
                               in->sizes[2],
                               in->sizes[3],
                               out->sizes[0],
                               out->sizes[2],
                               out->sizes[3],
                               (float)own->scale,
                               (float)own->offset,
                               own->is_max,
                               own->samples,
                               own->is_least_one,
                               0};
  if (in->sizes[1] != out->sizes[1] || rois % columns || rois / columns != t->rois)
    return nnd_fail(m->message, "regions and their images do not fit each other");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->rois);
  m->instance->run = run;
  if (own->images < 0) return 1;
  const struct nnd_shape *images = nnd_shape_of(m, own->images);
  if (images->count != t->rois) return nnd_fail(m->message, "there are more or fewer regions than images of them");
  t->has_long_numbers = images->element == NND_INT64;
  nnd_give_tensor(m, own->images);
  return 1;
}

static int nnd_make_roi_align(struct nnd_maker *m) { return nnd_make_roi(m, 4, nnd_run_roi_align); }
static int nnd_make_roi_max_pool(struct nnd_maker *m) { return nnd_make_roi(m, 5, nnd_run_roi_max_pool); }

const struct nnd_op nnd_op_roi_align = {"roi_align", nnd_open_roi_align, nnd_make_roi_align};
const struct nnd_op nnd_op_roi_max_pool = {"roi_max_pool", nnd_open_roi_max_pool, nnd_make_roi_max_pool};
