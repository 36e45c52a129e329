/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an output place of a resized axis reads, and with what weights: made for the sizes of a call.
 *
 * Words of how a step resizes: kind, coordinates, nearest (enums below), whether places outside are left out, whether
 * it is smoothed (antialias), the cubic coefficient, what stands beyond the image (bits of doubles).
 * Words of one axis: scale (0: the ratio of the sizes), begin and end of what is resized, as parts of the axis (bits of
 * doubles).
 * Source: ONNX Resize, opset 19; cubic coefficients: Keys, 1981. Weights are computed in double and rounded once.
 */
#ifndef NND_RESIZE_TABLE_H
#define NND_RESIZE_TABLE_H

#include "model/model.h"

enum nnd_resize_kind { NND_NEAREST, NND_LINEAR, NND_CUBIC, NND_NUM_RESIZE_KINDS };

enum nnd_resize_coordinates {
  NND_HALF_PIXEL,
  NND_HALF_PIXEL_SYMMETRIC,
  NND_PYTORCH_HALF_PIXEL,
  NND_ALIGN_CORNERS,
  NND_ASYMMETRIC,
  NND_CROP_AND_RESIZE,
  NND_NUM_RESIZE_COORDINATES
};

enum nnd_resize_nearest { NND_PREFER_FLOOR, NND_PREFER_CEIL, NND_FLOOR, NND_CEIL, NND_NUM_RESIZE_NEAREST };

struct nnd_resize_mode {
  int kind, coordinates, nearest, excludes_outside, is_smooth;
  double cubic;
  float beyond;
};

struct nnd_resize_rule {
  double scale, begin, end;
};

/* Output place i is the sum of the `taps` places from places[i * taps] on, each with its weight; `beyond` where the
 * first of them is negative. */
struct nnd_resize_axis {
  nnd_size size, out_size, taps;
  int32_t *places;
  float *weights;
  int is_copy, has_beyond; /* every place is one place of the input; some are beyond */
};

/* Both keep a message where a word is none. */
void nnd_open_resize_mode(struct nnd_opener *o, struct nnd_resize_mode *mode);
void nnd_open_resize_rule(struct nnd_opener *o, struct nnd_resize_rule *rule);

/* Makes the table of an axis; 0 with a message where its scale does not fit its sizes. */
int nnd_make_resize_axis(struct nnd_maker *m, const struct nnd_resize_mode *mode, const struct nnd_resize_rule *rule,
                         nnd_size size, nnd_size out_size, struct nnd_resize_axis *axis);

/* How often each place is there, one after the other, where an axis does nothing else; else 0. */
nnd_size nnd_resize_times(const struct nnd_resize_axis *axis);

#endif
