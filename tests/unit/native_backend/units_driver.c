/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products of random shapes, strides and forms by their tables, each array an allocation of exactly its floats: for
 * sanitizers, and for machines that only an emulator runs. Ends with 0 where all results equal sums in double.
 */
#include <stdio.h>

#include "units/library.h"

static uint32_t state = 1;
static nnd_size drawn(nnd_size most) { return (nnd_size)((state = state * 1664525u + 1013904223u) >> 8) % most + 1; }
static float *made(nnd_size floats) {
  float *data = malloc((size_t)floats * sizeof(float));
  for (nnd_size i = 0; i < floats; i++) data[i] = (float)drawn(2000) / 1000 - 1;
  return data;
}
/* A matrix in an allocation of its own: rows or columns side by side, `gap` floats between them. */
static struct nnd_bound matrix(nnd_size rows, nnd_size columns, int transposed, nnd_size gap) {
  const nnd_size outer = transposed ? columns : rows, inner = transposed ? rows : columns;
  struct nnd_bound bound = {made((outer - 1) * (inner + gap) + inner), {0, 0}};
  nnd_bind_buffer(&bound, transposed, inner + gap, 0);
  nnd_bind_buffer(&bound, !transposed, 1, 0);
  return bound;
}

static int is_right(const struct nnd_matmul *op, nnd_size m, nnd_size n, nnd_size k) {
  for (nnd_size i = 0; i < m; i++)
    for (nnd_size j = 0; j < n; j++) {
      double sum = op->bias ? op->bias[j] : 0;
      for (nnd_size l = 0; l < k; l++) sum += (double)*nnd_at(&op->in, i, l) * *nnd_at(&op->weights, l, j);
      const double difference = *nnd_at(&op->out, i, j) - (sum > 0 ? sum : 0);
      if (!(difference < 1e-4 && difference > -1e-4)) return 0;
    }
  return 1;
}

static int product(const struct nnd_costs *costs) {
  const nnd_size m = drawn(60), n = drawn(drawn(3) == 1 ? 8 : 100), k = drawn(40);
  const int constant = drawn(2) == 1, strided_in = drawn(3) == 1, strided = drawn(3) == 1;
  struct nnd_matmul op = {.in = matrix(m, k, strided_in, drawn(4) - 1), .weights = matrix(k, n, strided, drawn(4) - 1)};
  op.out = matrix(m, n, 0, drawn(4) - 1);
  const struct nnd_form form = {constant ? n : 0, constant ? k : 0, NND_RELU, strided_in, constant, strided};
  float *packed = 0, *bias = made(nnd_ceil_div(n, NND_PANEL_COLUMNS) * NND_PANEL_COLUMNS), *scratch = 0;
  if (constant) {
    packed = malloc((size_t)nnd_units_pack(&op.weights, k, n, 0) * sizeof(float));
    nnd_units_pack(&op.weights, k, n, packed);
  }
  op.packed = packed;
  op.bias = drawn(2) == 1 ? bias : 0;
  struct nnd_product *opened = nnd_units_open(&form, costs);
  int right = opened != 0;
  for (int time = 0; right && time < 2; time++) { /* composed, then out of the cache */
    const nnd_size needed = nnd_units_call(opened, &op, m, n, k, 0);
    free(scratch);
    if (posix_memalign((void **)&scratch, 64, (size_t)(needed + 1) * sizeof(float))) return 0;
    op.scratch = scratch;
    right = !nnd_units_call(opened, &op, m, n, k, needed);
    right &= is_right(&op, m, n, k);
  }
  if (!right) fprintf(stderr, "wrong: %td x %td x %td, constant %d\n", m, n, k, constant);
  nnd_units_close(opened);
  free(scratch);
  free(packed);
  free(bias);
  free(op.in.data);
  free(op.weights.data);
  free(op.out.data);
  return right;
}

int main(void) {
  struct nnd_costs costs;
  nnd_units_default_costs(&costs);
  int right = 1;
  for (int time = 0; time < 200; time++) right &= product(&costs);
  return !right;
}
