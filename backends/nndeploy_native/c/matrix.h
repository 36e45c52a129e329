/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain matrices: by constant weights in panels, or of two values.
 */
#ifndef NND_MATRIX_H
#define NND_MATRIX_H

#include "elementwise.h"
#include "pointwise.h"

/* The residual is plain. */
struct nnd_fully_connected_step {
  nnd_size rows, inputs, outputs;
  struct nnd_end end;
};

#define NND_ROWS 4 /* rows that share a load of the weights */

NND_INLINE void nnd_fully_connected_tile(const struct nnd_fully_connected_step *t, int rows, nnd_size row,
                                         nnd_size block, float *out, const float *in, const float *weights,
                                         const float *bias, const float *residual) {
  vf sums[NND_ROWS][4]; /* four sums a row: the multipliers' latency */
  const nnd_size at = row * t->outputs + block * NND_LANES, count = nnd_min(NND_LANES, t->outputs - block * NND_LANES);
  const float *w = weights + block * t->inputs * NND_LANES;
  NND_UNROLL for (int r = 0; r < rows; r++) {
    sums[r][0] = nnd_load(bias + block * NND_LANES);
    NND_UNROLL for (int k = 1; k < 4; k++) sums[r][k] = nnd_splat(0.0f);
  }
  nnd_size i = 0;
  for (; i + 4 <= t->inputs; i += 4)
    NND_UNROLL for (int k = 0; k < 4; k++) {
      const vf line = nnd_load(w + (i + k) * NND_LANES);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r][k] += line * in[(row + r) * t->inputs + i + k];
    }
  for (; i < t->inputs; i++) {
    const vf line = nnd_load(w + i * NND_LANES);
    NND_UNROLL for (int r = 0; r < rows; r++) sums[r][0] += line * in[(row + r) * t->inputs + i];
  }
  NND_UNROLL for (int r = 0; r < rows; r++) {
    const float *added = residual + at + r * t->outputs;
    const vf sum = (sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]);
    nnd_store_some(out + at + r * t->outputs,
                   t->end.then(sum, t->end.residual ? nnd_spread(added, 1, count) : nnd_splat(0.0f), nnd_splat(0.0f)),
                   count);
  }
}

/* Workers share blocks of outputs. Weights: [blocks of outputs][inputs][c]. */
NND_INLINE void nnd_fully_connected_step(const struct nnd_fully_connected_step *t, float *out, const float *in,
                                         const float *weights, const float *bias, const float *residual,
                                         struct nnd_part part) {
  nnd_size first, last;
  nnd_share(nnd_blocks(t->outputs), part, &first, &last);
  for (nnd_size block = first; block < last; block++) {
    nnd_size row = 0;
    for (; row + NND_ROWS <= t->rows; row += NND_ROWS)
      nnd_fully_connected_tile(t, NND_ROWS, row, block, out, in, weights, bias, residual);
    for (; row < t->rows; row++) nnd_fully_connected_tile(t, 1, row, block, out, in, weights, bias, residual);
  }
}

/* Workers share rows of all products. */
struct nnd_product_step {
  nnd_size batch, rows, inner, columns;
  int b_is_shared;
};

NND_INLINE void nnd_product_step(const struct nnd_product_step *t, float *out, const float *a, const float *b,
                                 struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->batch * t->rows, part, &first, &last);
  for (nnd_size row = first; row < last; row++)
    for (nnd_size j = 0; j < t->columns; j += NND_LANES) {
      const nnd_size count = nnd_min(NND_LANES, t->columns - j);
      const float *from = b + (t->b_is_shared ? 0 : row / t->rows) * t->inner * t->columns + j;
      vf sum = nnd_splat(0.0f);
      for (nnd_size k = 0; k < t->inner; k++) sum += a[row * t->inner + k] * nnd_spread(from + k * t->columns, 1, count);
      nnd_store_some(out + row * t->columns + j, sum, count);
    }
}

#endif
