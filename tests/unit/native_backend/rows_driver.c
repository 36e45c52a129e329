/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs element-wise chains and units along the last axis at random shapes, broadcasts and strides, each array an
 * allocation of exactly its floats: for sanitizers, and for machines that only an emulator runs. Ends with 0 where all
 * results equal those in double.
 */
#include <math.h>
#include <stdio.h>

#include "units/library.h"

static uint32_t state = 1;
static nnd_size drawn(nnd_size most) { return (nnd_size)((state = state * 1664525u + 1013904223u) >> 8) % most + 1; }

/* Three axes, each broadcast or not, in their order or the last two swapped, gaps between the rows. */
struct tensor {
  float *data;
  nnd_size size[3], stride[3], floats;
};

static struct tensor made(const nnd_size *size, int may_differ) {
  struct tensor t = {.size = {size[0], size[1], size[2]}};
  for (int axis = 0; may_differ && axis < 3; axis++)
    if (drawn(4) == 1) t.size[axis] = 1;
  const int swapped = may_differ && drawn(4) == 1, inner = swapped ? 1 : 2, outer = 3 - inner;
  t.stride[inner] = 1;
  t.stride[outer] = t.size[inner] + drawn(3) - 1;
  t.stride[0] = t.stride[outer] * t.size[outer];
  t.floats = 1;
  for (int axis = 0; axis < 3; axis++) t.floats += t.stride[axis] * (t.size[axis] - 1);
  t.data = malloc((size_t)t.floats * sizeof(float));
  for (nnd_size i = 0; i < t.floats; i++) t.data[i] = (float)drawn(1000) / 500 + 0.5f;
  return t;
}

static int64_t *written(const struct tensor *t, int64_t *to) {
  *to++ = (int64_t)(intptr_t)t->data;
  *to++ = 3;
  for (int axis = 0; axis < 3; axis++) *to++ = t->size[axis];
  for (int axis = 0; axis < 3; axis++) *to++ = t->stride[axis] * (int64_t)sizeof(float);
  return to;
}

static double at(const struct tensor *t, nnd_size a, nnd_size m, nnd_size n) {
  const nnd_size place[3] = {a, m, n};
  nnd_size offset = 0;
  for (int axis = 0; axis < 3; axis++) offset += t->size[axis] == 1 ? 0 : place[axis] * t->stride[axis];
  return t->data[offset];
}

/* max(tanh(x * b), c) + x */
static double of_chain(const struct tensor *t, nnd_size a, nnd_size m, nnd_size n) {
  const double x = at(&t[1], a, m, n);
  return fmax(tanh(x * at(&t[2], a, m, n)), at(&t[3], a, m, n)) + x;
}

static double along(int unit, const struct tensor *t, nnd_size a, nnd_size m, nnd_size n) {
  const nnd_size size = t[1].size[2];
  double sum = 0, powers = 0, squares = 0, most = -1e30;
  for (nnd_size i = 0; i < size; i++) {
    const double x = at(&t[1], a, m, i);
    sum += x;
    powers += exp(x);
    if (x > most) most = x;
  }
  for (nnd_size i = 0; i < size; i++) squares += pow(at(&t[1], a, m, i) - sum / (double)size, 2);
  const double x = at(&t[1], a, m, n);
  switch (unit) {
    case NND_SOFTMAX: return exp(x) / powers;
    case NND_SUM: return sum;
    case NND_MEAN: return sum / (double)size;
    case NND_LARGEST: return most;
    default:
      return (x - sum / (double)size) / sqrt(squares / (double)size + 1e-3) * at(&t[2], a, m, n) + at(&t[3], a, m, n);
  }
}

static int call(int unit) {
  static const struct nnd_operation chain[] = {{66, 1}, {43, 0}, {68, 2}, {64, 0}}; /* mul, tanh, max, add */
  const nnd_size wide = drawn(4) == 1 ? 600 : 150, size[3] = {drawn(3), drawn(9), drawn(wide)};
  nnd_size of_out[3] = {size[0], size[1], unit && unit != NND_SOFTMAX && unit != NND_LAYER_NORM ? 1 : size[2]};
  const int count = unit && unit != NND_LAYER_NORM ? 2 : 4, in_place = !unit && drawn(4) == 1;
  struct tensor t[4] = {made(of_out, 0)}, before;
  for (int i = 1; i < count; i++) t[i] = made(size, i > 1);
  before = t[1];
  if (in_place) { /* what is read is kept, for the comparison */
    for (int axis = 0; axis < 3; axis++) before.stride[axis] = t[0].stride[axis];
    before.floats = t[0].floats;
    before.data = malloc((size_t)before.floats * sizeof(float));
    memcpy(before.data, t[0].data, (size_t)before.floats * sizeof(float));
  }
  int64_t tensors[4 * 8], *to = tensors;
  for (int i = 0; i < count; i++) to = written(in_place && i == 1 ? &t[0] : &t[i], to);
  struct nnd_operation one = {unit, 0};
  struct nnd_rows *rows = nnd_rows_open(unit ? &one : chain, unit ? 1 : 4);
  const int error = rows ? nnd_rows_run(rows, 0, tensors, count, 1e-3f) : -1;
  struct tensor read[4] = {t[0], before, t[2], t[3]};
  int right = error == NND_PLACED || error == NND_TOO_MANY_AXES;
  for (nnd_size a = 0; !error && a < of_out[0]; a++)
    for (nnd_size m = 0; m < of_out[1]; m++)
      for (nnd_size n = 0; n < of_out[2]; n++) {
        const double wanted = unit ? along(unit, read, a, m, n) : of_chain(read, a, m, n);
        right &= fabs(at(&t[0], a, m, n) - wanted) < 1e-4 * fmax(1, fabs(wanted));
      }
  if (!right) fprintf(stderr, "wrong: unit %d, %td x %td x %td, error %d\n", unit, size[0], size[1], size[2], error);
  free(rows);
  if (in_place) free(before.data);
  for (int i = 0; i < count; i++) free(t[i].data);
  return right;
}

int main(void) {
  int right = 1;
  for (int time = 0; time < 150; time++) {
    right &= call(0);
    right &= call(NND_SOFTMAX + time % (NND_END_OF_ALONG - NND_SOFTMAX));
  }
  return !right;
}
