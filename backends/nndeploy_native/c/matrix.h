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
    const nnd_size here = at + r * t->outputs;
    const vf sum = (sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]);
    const vf added = t->end.residual ? nnd_spread(residual + here, 1, count) : nnd_splat(0.0f);
    nnd_store_some(out + here, t->end.then(sum, added, nnd_splat(0.0f)), count);
  }
}

#define NND_STREAMS 4 /* of weights at once: one row takes as long as its weights take to come */

/* One row, NND_STREAMS blocks of outputs. */
NND_INLINE void nnd_fully_connected_streams(const struct nnd_fully_connected_step *t, nnd_size row, nnd_size block,
                                            float *out, const float *in, const float *weights, const float *bias,
                                            const float *residual) {
  vf sums[NND_STREAMS][2];
  const float *x = in + row * t->inputs, *w = weights + block * t->inputs * NND_LANES;
  NND_UNROLL for (int s = 0; s < NND_STREAMS; s++) {
    sums[s][0] = nnd_load(bias + (block + s) * NND_LANES);
    sums[s][1] = nnd_splat(0.0f);
  }
  nnd_size i = 0;
  for (; i + 2 <= t->inputs; i += 2)
    NND_UNROLL for (int s = 0; s < NND_STREAMS; s++) {
      const float *line = w + (s * t->inputs + i) * NND_LANES;
      __builtin_prefetch(line + 64 * NND_LANES, 0, 3);
      __builtin_prefetch(line + 65 * NND_LANES, 0, 3);
      NND_UNROLL for (int k = 0; k < 2; k++) sums[s][k] += nnd_load(line + k * NND_LANES) * x[i + k];
    }
  NND_UNROLL for (int s = 0; s < NND_STREAMS; s++) {
    if (i < t->inputs) sums[s][0] += nnd_load(w + (s * t->inputs + i) * NND_LANES) * x[i];
    const nnd_size at = row * t->outputs + (block + s) * NND_LANES;
    const nnd_size count = nnd_min(NND_LANES, t->outputs - (block + s) * NND_LANES);
    const vf added = t->end.residual ? nnd_spread(residual + at, 1, count) : nnd_splat(0.0f);
    nnd_store_some(out + at, t->end.then(sums[s][0] + sums[s][1], added, nnd_splat(0.0f)), count);
  }
}

/* Workers share blocks of outputs. Weights: [blocks of outputs][inputs][c]. */
NND_INLINE void nnd_fully_connected_step(const struct nnd_fully_connected_step *t, float *out, const float *in,
                                         const float *weights, const float *bias, const float *residual,
                                         struct nnd_part part) {
  nnd_size first, last;
  nnd_share(nnd_blocks(t->outputs), part, &first, &last);
  for (; t->rows < NND_ROWS && first + NND_STREAMS <= last; first += NND_STREAMS)
    for (nnd_size row = 0; row < t->rows; row++)
      nnd_fully_connected_streams(t, row, first, out, in, weights, bias, residual);
  for (nnd_size block = first; block < last; block++) {
    nnd_size row = 0;
    for (; row + NND_ROWS <= t->rows; row += NND_ROWS)
      nnd_fully_connected_tile(t, NND_ROWS, row, block, out, in, weights, bias, residual);
    for (; row < t->rows; row++) nnd_fully_connected_tile(t, 1, row, block, out, in, weights, bias, residual);
  }
}

struct nnd_product_step {
  nnd_size batch, rows, inner, columns;
  int b_is_shared;
};

#define NND_PRODUCT_VECTORS 2

/* `rows` x `vectors` of a product; `count` columns are less than a vector only where that is all there are. */
NND_INLINE void nnd_product_tile(const struct nnd_product_step *t, int rows, int vectors, nnd_size count, float *out,
                                 const float *a, const float *b) {
  vf sums[NND_ROWS][NND_PRODUCT_VECTORS];
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = nnd_splat(0.0f);
  for (nnd_size k = 0; k < t->inner; k++)
    NND_UNROLL for (int v = 0; v < vectors; v++) {
      const vf line = nnd_spread(b + k * t->columns + v * NND_LANES, 1, count);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r][v] += line * a[r * t->inner + k];
    }
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int v = 0; v < vectors; v++)
      nnd_store_some(out + r * t->columns + v * NND_LANES, sums[r][v], count);
}

/* `rows` whole rows; the last vector may overlap the one before. */
NND_INLINE void nnd_product_rows(const struct nnd_product_step *t, int rows, float *out, const float *a,
                                 const float *b) {
  const nnd_size wide = NND_PRODUCT_VECTORS * NND_LANES;
  nnd_size j = 0;
  if (t->columns < NND_LANES) {
    nnd_product_tile(t, rows, 1, t->columns, out, a, b);
    return;
  }
  for (; j + wide <= t->columns; j += wide)
    nnd_product_tile(t, rows, NND_PRODUCT_VECTORS, NND_LANES, out + j, a, b + j);
  for (; j < t->columns; j += NND_LANES) {
    const nnd_size at = nnd_min(j, t->columns - NND_LANES);
    nnd_product_tile(t, rows, 1, NND_LANES, out + at, a, b + at);
  }
}

/* Workers share rows of all products, NND_ROWS at a time. */
NND_INLINE void nnd_product_step(const struct nnd_product_step *t, float *out, const float *a, const float *b,
                                 struct nnd_part part) {
  const nnd_size groups = nnd_ceil_div(t->rows, NND_ROWS);
  nnd_size unit, last;
  nnd_share(t->batch * groups, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size number = unit / groups, row = unit % groups * NND_ROWS, at = number * t->rows + row;
    const float *from = b + (t->b_is_shared ? 0 : number) * t->inner * t->columns;
    if (row + NND_ROWS <= t->rows) {
      nnd_product_rows(t, NND_ROWS, out + at * t->columns, a + at * t->inner, from);
      continue;
    }
    for (nnd_size i = at; i < (number + 1) * t->rows; i++)
      nnd_product_rows(t, 1, out + i * t->columns, a + i * t->inner, from);
  }
}

#endif
