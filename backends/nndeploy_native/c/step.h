/* SPDX-License-Identifier: Apache-2.0
 *
 * What every step is given: its sizes (compile-time constants, but for what depends on the shapes of inputs), how its sums end, and which part of it to do.
 */
#ifndef NND_STEP_H
#define NND_STEP_H

#include "operators.h"

/* What becomes of a sum, given the residual at its place and a number of its channel (zeros where there is none).
 * The two flags say whether there is one. */
struct nnd_end {
  vf (*then)(vf sum, vf residual, vf number);
  int residual, number;
};

/* One axis of a window: `size` of the input, `pad` before it. */
struct nnd_axis {
  nnd_size size, out_size, kernel, stride, dilation, pad;
  nnd_size over; /* how far the last window reaches beyond the end; set where sizes are not known here */
};

#define NND_FEW_PIXELS 4 /* of a tile where there are too few for a large one, and their number is not known here */
#define NND_MOST_OVER 2  /* columns beyond the end that there are variants of tiles for */

/* Part `number` of `count` of a step, each of them done once, by any thread; `scratch` is that thread's own. */
struct nnd_part {
  int number, count;
  char *scratch;
};

/* The units [*first, *last) of a part. */
NND_INLINE void nnd_share(nnd_size units, struct nnd_part part, nnd_size *first, nnd_size *last) {
  *first = units * part.number / part.count;
  *last = units * (part.number + 1) / part.count;
}

/* The axis of a kernel that begins at `at` (which may be negative): its taps [begin, end) that lie inside. */
NND_INLINE nnd_size nnd_tap_begin(struct nnd_axis axis, nnd_size at) {
  return at >= 0 ? 0 : nnd_min(axis.kernel, nnd_ceil_div(-at, axis.dilation));
}

NND_INLINE nnd_size nnd_tap_end(struct nnd_axis axis, nnd_size at) {
  return at >= axis.size ? 0 : nnd_min(axis.kernel, nnd_ceil_div(axis.size - at, axis.dilation));
}

/* How far the window of output `last` reaches beyond the end of an axis. */
NND_INLINE nnd_size nnd_overhang(struct nnd_axis axis, nnd_size last) {
  return nnd_max(0, last * axis.stride - axis.pad + (axis.kernel - 1) * axis.dilation - axis.size + 1);
}

/* Rows of the input that `rows` output rows in a row read; the first of them for output row `row`, and the one behind
 * the last for the output rows before `end`. */
NND_INLINE nnd_size nnd_window_rows(struct nnd_axis y, nnd_size rows) {
  return nnd_min(y.size, (rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1);
}

NND_INLINE nnd_size nnd_first_row(struct nnd_axis y, nnd_size row) { return nnd_max(0, row * y.stride - y.pad); }

NND_INLINE nnd_size nnd_end_row(struct nnd_axis y, nnd_size end) {
  return nnd_min(y.size, nnd_max(0, (end - 1) * y.stride - y.pad + (y.kernel - 1) * y.dilation + 1));
}

/* The number of block `block`'s channels; zeros where the end reads none. */
NND_INLINE vf nnd_end_number(const struct nnd_end *end, const float *numbers, nnd_size block) {
  return end->number ? nnd_load(numbers + block * NND_LANES) : nnd_splat(0.0f);
}

/* Ends a sum whose residual, where there is one, lies at `at`. */
NND_INLINE vf nnd_end_sum(const struct nnd_end *end, vf sum, const nnd_elem *residual, nnd_size at, vf number) {
  return end->then(sum, end->residual ? nnd_read(residual + at) : nnd_splat(0.0f), number);
}

#endif
