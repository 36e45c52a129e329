/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an output place of a resized axis reads, and with what weights: made for the sizes of a call.
 *
 * Source: ONNX Resize, opset 19; cubic coefficients: Keys, 1981. Weights are computed in double and rounded once.
 */
#ifndef NND_RESIZE_TABLE_H
#define NND_RESIZE_TABLE_H

#include "model/words.h"

NND_SET(resize_kind);
NND_SET(resize_coordinates);
NND_SET(resize_nearest);

#define NND_MOST_NUMBER 1e12 /* of scales, places and coefficients */
NND_RECORD(resize_mode)
NND_RECORD(resize_rule)

/* Output place i is the sum of the `taps` places from places[i * taps] on, each with its weight; `beyond` where the
 * first of them is negative. */
struct nnd_resize_axis {
  nnd_size size, out_size, taps;
  int32_t *places;
  float *weights;
  int is_copy, has_beyond; /* every place is one place of the input; some are beyond */
};

/* Makes the table of an axis; 0 with a message where its scale does not fit its sizes. */
int nnd_make_resize_axis(struct nnd_maker *m, const struct nnd_resize_mode *mode, const struct nnd_resize_rule *rule,
                         nnd_size size, nnd_size out_size, struct nnd_resize_axis *axis);

/* How often each place is there, one after the other, where an axis does nothing else; else 0. */
nnd_size nnd_resize_times(const struct nnd_resize_axis *axis);

#endif
