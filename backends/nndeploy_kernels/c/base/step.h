/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels share: axes of windows, how sums end, and which part of a step to do.
 */
#ifndef NND_STEP_H
#define NND_STEP_H

#include "base/program.h"

/* What becomes of sums, x: first a residual may be added, then
 *   bounded   low <= x * scale + shift <= high
 *   gated     x * (the same) * factor, as hard-swish is
 *   program   of the sum (operand 0), the residual (1) and a number of the channel (2) */
enum nnd_end_kind { NND_END_PLAIN, NND_END_BOUNDED, NND_END_LINE, NND_END_GATED, NND_END_PROGRAM };

struct nnd_end {
  int kind;
  int adds;             /* the residual is added first; a program adds it itself */
  int residual, number; /* whether there is one */
  float low, high, scale, shift, factor;
  const struct nnd_program *program;
};

/* One axis of a window: `size` of the input, `pad` before it. */
struct nnd_axis {
  nnd_size size, out_size, kernel, stride, dilation, pad;
};

struct nnd_faults;

/* Part `number` of `count` of a step, each of them done once, by any thread; `scratch` is that thread's own, and keeps
 * between parts of a step what lies there. `held` is that step's to say what does: -1 before the thread's first part.
 * `faults`, `step`: for nnd_out_of_range(). */
struct nnd_part {
  int number, count;
  char *scratch;
  nnd_size *held;
  struct nnd_faults *faults;
  nnd_size step;
};

/* Tells that element `at` of the indices that a step reads is `index`, which is no place in an axis of `size`. */
void nnd_out_of_range(const struct nnd_part *part, nnd_size at, int64_t index, nnd_size size);

/* The units [*first, *last) of a part. */
NND_INLINE void nnd_share(nnd_size units, struct nnd_part part, nnd_size *first, nnd_size *last) {
  *first = units * part.number / part.count;
  *last = units * (part.number + 1) / part.count;
}

/* Where part `number` of `parts` begins that share `count` evenly, the first ones with one more. */
NND_INLINE nnd_size nnd_even(nnd_size count, nnd_size parts, nnd_size number) {
  return count / parts * number + nnd_min(number, count % parts);
}

/* The axis of a kernel that begins at `at` (which may be negative): its taps [begin, end) that lie inside. */
NND_INLINE nnd_size nnd_tap_begin(struct nnd_axis axis, nnd_size at) {
  return at >= 0 ? 0 : nnd_min(axis.kernel, nnd_ceil_div(-at, axis.dilation));
}

NND_INLINE nnd_size nnd_tap_end(struct nnd_axis axis, nnd_size at) {
  return at >= axis.size ? 0 : nnd_min(axis.kernel, nnd_ceil_div(axis.size - at, axis.dilation));
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

/* Ends `count` sums, a compile-time constant, of neighbouring pixels; their residuals lie at `residual`. */
NND_INLINE void nnd_end_sums(const struct nnd_end *end, vf *sums, int count, const nnd_elem *residual, vf number) {
  const vf low = nnd_splat(end->low), high = nnd_splat(end->high), scale = nnd_splat(end->scale);
  const vf shift = nnd_splat(end->shift), factor = nnd_splat(end->factor);
  if (end->adds) NND_UNROLL
  for (int i = 0; i < count; i++) sums[i] += nnd_read(residual + i * NND_LANES);
  if (end->kind == NND_END_PLAIN) return;
  if (end->kind == NND_END_LINE) NND_UNROLL
  for (int i = 0; i < count; i++) sums[i] = sums[i] * scale + shift;
  if (end->kind == NND_END_BOUNDED || end->kind == NND_END_LINE) {
    NND_UNROLL
    for (int i = 0; i < count; i++) sums[i] = nnd_at_most(high, nnd_at_least(low, sums[i]));
  } else if (end->kind == NND_END_GATED) {
    NND_UNROLL
    for (int i = 0; i < count; i++) sums[i] *= nnd_at_most(high, nnd_at_least(low, sums[i] * scale + shift)) * factor;
  } else { /* copies: an address that leaves this function would take the sums to memory on the other ways too */
    vf kept[count];
    NND_UNROLL
    for (int i = 0; i < count; i++) kept[i] = sums[i];
    nnd_end_program(end->program, kept, count, end->residual ? residual : NULL, number);
    NND_UNROLL
    for (int i = 0; i < count; i++) sums[i] = kept[i];
  }
}

#endif
