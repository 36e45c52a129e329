/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/resize_table.h"

#define NND_MOST_PLACES ((nnd_size)1 << 24) /* of an axis */
#define NND_MOST_TAPS ((nnd_size)1 << 26)   /* of a table */
#define NND_BESIDE 1e-9                     /* of an axis: a place so near its end is none beyond it */

/* The place of the input that output place `i` stands for. With given scales ONNX takes the output's length before it
 * is rounded down. */
static double nnd_resize_coordinate(const struct nnd_resize_mode *mode, const struct nnd_resize_rule *rule,
                                    const struct nnd_resize_axis *axis, double i, double scale) {
  const double size = (double)axis->size, last = size - 1;
  const double length = rule->scale > 0 ? scale * size : (double)axis->out_size;
  switch (mode->coordinates) {
    case NND_HALF_PIXEL_SYMMETRIC: return size / 2 * (1 - (double)axis->out_size / length) + (i + 0.5) / scale - 0.5;
    case NND_PYTORCH_HALF_PIXEL: return axis->out_size > 1 ? (i + 0.5) / scale - 0.5 : 0;
    case NND_ALIGN_CORNERS: return length == 1 ? 0 : i * last / (length - 1);
    case NND_ASYMMETRIC: return i / scale;
    case NND_CROP_AND_RESIZE: {
      const double span = (rule->end - rule->begin) * last;
      return rule->begin * last + (length == 1 ? span / 2 : i * span / (length - 1));
    }
    default: return (i + 0.5) / scale - 0.5;
  }
}

/* Compares what is left of `x`: adding a half to it would round. */
static double nnd_nearest_place(double x, int nearest) {
  const double whole = __builtin_floor(x), rest = x - whole;
  switch (nearest) {
    case NND_PREFER_FLOOR: return whole + (rest > 0.5);
    case NND_PREFER_CEIL: return whole + (rest >= 0.5);
    case NND_FLOOR: return whole;
    default: return whole + (rest > 0);
  }
}

static double nnd_resize_weight(const struct nnd_resize_mode *mode, double distance) {
  const double d = __builtin_fabs(distance), a = mode->cubic;
  if (mode->kind == NND_LINEAR) return d < 1 ? 1 - d : 0;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* A weight of zero takes nothing, not even from an infinity: such a tap takes half of what another one does. */
static void nnd_halve_taps(int32_t *places, float *weights, nnd_size taps) {
  nnd_size some = 0;
  while (some < taps && weights[some] == 0.0f) some++;
  for (nnd_size i = 0; i < taps && some < taps; i++) {
    if (weights[i] != 0.0f) continue;
    weights[some] *= 0.5f;
    weights[i] = weights[some];
    places[i] = places[some];
  }
}

/* The taps around `x`: places beyond the edge stand for the edge. `narrow` is 1, less where a filter is widened. */
static void nnd_make_taps(const struct nnd_resize_mode *mode, const struct nnd_resize_axis *axis, double x,
                          double narrow, double *sums, int32_t *places, float *weights) {
  const nnd_size first = (nnd_size)__builtin_floor(x) - axis->taps / 2 + 1;
  double total = 0;
  for (nnd_size k = 0; k < axis->taps; k++) {
    const nnd_size place = first + k;
    const int is_left_out = mode->excludes_outside && (place < 0 || place >= axis->size);
    sums[k] = is_left_out ? 0 : nnd_resize_weight(mode, ((double)place - x) * narrow);
    total += sums[k];
    places[k] = (int32_t)nnd_max(0, nnd_min(axis->size - 1, place));
  }
  const int is_scaled = (mode->excludes_outside || mode->antialias) && total != 0;
  for (nnd_size k = 0; k < axis->taps; k++) weights[k] = (float)(is_scaled ? sums[k] / total : sums[k]);
  nnd_halve_taps(places, weights, axis->taps);
}

/* How many places a filter reaches over, and into `narrow` how much it is widened; -1 where the scale is another one
 * than that of the sizes: tables are as large as their tensors. */
static nnd_size nnd_resize_reach(const struct nnd_resize_mode *mode, const struct nnd_resize_axis *axis, double scale,
                                 double *narrow) {
  const double reach = mode->kind == NND_LINEAR ? 1 : 2;
  *narrow = 1;
  if (!mode->antialias || scale >= 1) return (nnd_size)reach;
  if (scale * (double)axis->size < (double)axis->out_size - 0.75) return -1;
  *narrow = scale;
  return (nnd_size)__builtin_ceil(reach / scale);
}

int nnd_make_resize_axis(struct nnd_maker *m, const struct nnd_resize_mode *mode, const struct nnd_resize_rule *rule,
                         nnd_size size, nnd_size out_size, struct nnd_resize_axis *axis) {
  const double scale = rule->scale > 0 ? rule->scale : (double)out_size / (double)size;
  const int is_crop = mode->coordinates == NND_CROP_AND_RESIZE;
  const int is_same = size == out_size && scale == 1 && (!is_crop || (rule->begin == 0 && rule->end == 1));
  double narrow = 1;
  *axis = (struct nnd_resize_axis){.size = size, .out_size = out_size, .taps = 1};
  axis->is_copy = is_same || mode->kind == NND_NEAREST;
  if (!axis->is_copy) axis->taps = 2 * nnd_resize_reach(mode, axis, scale, &narrow);
  if (axis->taps < 1) return nnd_fail(m->message, "a resize by a scale that does not fit its sizes");
  if (size > NND_MOST_PLACES || out_size > NND_MOST_PLACES || axis->taps > NND_MOST_TAPS / out_size)
    return nnd_fail(m->message, "a resize of an axis of more than %lld elements", (long long)NND_MOST_PLACES);
  axis->places = nnd_memory_take(&m->table->memory, out_size * axis->taps * (nnd_size)sizeof *axis->places);
  axis->weights = nnd_memory_take(&m->table->memory, out_size * axis->taps * (nnd_size)sizeof *axis->weights);
  double *sums = nnd_memory_take(&m->table->memory, axis->taps * (nnd_size)sizeof *sums);
  if (!axis->places || !axis->weights || !sums) return nnd_fail(m->message, "no memory for a resize");
  const double low = (double)-axis->taps, high = (double)(size + axis->taps); /* farther on all taps are the edge */
  const double beside = NND_BESIDE * (double)size;
  for (nnd_size i = 0; i < out_size; i++) {
    int32_t *places = axis->places + i * axis->taps;
    float *weights = axis->weights + i * axis->taps;
    double x = is_same ? (double)i : nnd_resize_coordinate(mode, rule, axis, (double)i, scale);
    const int is_beyond = is_crop && !is_same && !(x >= -beside && x <= (double)(size - 1) + beside);
    x = x >= low ? (x <= high ? x : high) : low;
    weights[0] = 1;
    if (is_beyond)
      places[0] = -1, axis->has_beyond = 1;
    else if (axis->is_copy)
      places[0] = (int32_t)nnd_max(0, nnd_min(size - 1, (nnd_size)nnd_nearest_place(x, mode->nearest)));
    else
      nnd_make_taps(mode, axis, x, narrow, sums, places, weights);
  }
  return 1;
}

nnd_size nnd_resize_times(const struct nnd_resize_axis *axis) {
  const nnd_size times = axis->out_size / axis->size;
  if (!axis->is_copy || axis->has_beyond || axis->out_size != times * axis->size) return 0;
  for (nnd_size i = 0; i < axis->out_size; i++)
    if (axis->places[i] != i / times) return 0;
  return times;
}
