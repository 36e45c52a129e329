/* SPDX-License-Identifier: Apache-2.0
 *
 * The compute units of a matrix product, which are micro-kernels: of one block they compute
 *   out[r][c] = relu(bias[c] + sum_k in[r][k] * weights[k][c])
 *
 * A unit is compiled for a number of rows and of columns (panels of NND_PANEL vectors); K, strides and the columns that
 * are stored vary. The sums of a block stay in registers. Four families:
 *   wide  P panels side by side: each k loads P * NND_PANEL vectors of weights and broadcasts one float a row
 *   lane  one vector of columns
 *   dot   few columns: vectors lie along K
 *   thin  small K, compiled in; any columns: little but stores, which begin at whole vectors
 */
#ifndef NND_UNITS_TILE_H
#define NND_UNITS_TILE_H

#include "some.h"

#define NND_UNIT_K 16                                  /* of a packed row that lie side by side */
#define NND_PANEL_COLUMNS (NND_PANEL * NND_LANES)      /* 32, aarch64 and AVX2 16 */
#define NND_UNIT_ROWS (NND_ACCUMULATORS / NND_PANEL)   /* 14, 6, 5 */
#define NND_DOT_ROWS 4
#define NND_DOT_COLUMNS 6
#define NND_THIN_K 8
#define NND_THIN_ROWS 24
#define NND_THIN_AT_ONCE 4 /* rows that share what is loaded of weights, at most, where k is more than: */
#define NND_THIN_ALONE 3
#define NND_THIN_ALIGNED (8 * NND_LANES) /* columns; fewer are not worth a partial vector in front */

/* One block. Of a packed input row r of the k from b * NND_UNIT_K on lies at in + (b * rows + r) * NND_UNIT_K. */
struct nnd_tile_call {
  const float *in;
  nnd_size in_row, in_step; /* floats from row to row, where rows lie apart; for thin: from one k to the next */
  const float *weights;
  nnd_size weight_step;  /* floats from one k to the next */
  nnd_size weight_panel; /* floats from one panel to the next; for dot: from one column to the next */
  const float *bias;     /* whole vectors; null: none */
  float *out;
  nnd_size out_row;
  nnd_size k, rows; /* rows: for thin */
  nnd_size columns; /* that are stored: the last vectors may be left out, or be partial */
  float low;           /* the least result: 0 for relu, else -infinity */
  const char *next;    /* to fetch while this is computed, `next_step` bytes for each k */
  nnd_size next_step;
};

typedef void (*nnd_unit)(const struct nnd_tile_call *t);

NND_INLINE void nnd_tile_store(const struct nnd_tile_call *t, int rows, int vectors, const vf *sums) {
  const vf low = nnd_splat(t->low);
  if (t->columns == vectors * NND_LANES) {
    NND_UNROLL for (int r = 0; r < rows; r++)
      NND_UNROLL for (int v = 0; v < vectors; v++)
        nnd_store_any(t->out + r * t->out_row + v * NND_LANES, nnd_at_least(low, sums[r * vectors + v]));
    return;
  }
  float kept[NND_ACCUMULATORS * NND_LANES]; /* a copy: an index that is not constant would take the sums to memory */
  NND_UNROLL for (int i = 0; i < rows * vectors; i++)
    nnd_store_any(kept + i * NND_LANES, nnd_at_least(low, sums[i]));
  NND_NO_UNROLL for (int r = 0; r < rows; r++)
    memcpy(t->out + r * t->out_row, kept + r * vectors * NND_LANES, (size_t)t->columns * sizeof(float));
}

NND_INLINE void nnd_tile_begin(const struct nnd_tile_call *t, int rows, int vectors, vf *sums) {
  NND_UNROLL for (int v = 0; v < vectors; v++) {
    const vf first = t->bias ? nnd_load_any(t->bias + v * NND_LANES) : nnd_splat(0.0f);
    NND_UNROLL for (int r = 0; r < rows; r++) sums[r * vectors + v] = first;
  }
}

/* wide and lane; `vectors` of a panel. */
NND_INLINE void nnd_wide_unit(int rows, int panels, int vectors, const struct nnd_tile_call *t) {
  const int all = panels * vectors;
  vf sums[NND_ACCUMULATORS];
  nnd_tile_begin(t, rows, all, sums);
  const float *in = t->in, *weights = t->weights;
  const nnd_size step = t->weight_step, panel = t->weight_panel;
  const char *next = t->next;
  for (nnd_size left = t->k; left > 0; left -= NND_UNIT_K) {
    const nnd_size count = nnd_min(left, NND_UNIT_K);
    NND_NO_UNROLL for (nnd_size i = 0; i < count; i++) {
      __builtin_prefetch(next, 0, 2);
      next += t->next_step;
      vf w[4 * NND_PANEL];
      NND_UNROLL for (int p = 0; p < panels; p++)
        NND_UNROLL for (int v = 0; v < vectors; v++)
          w[p * vectors + v] = nnd_load_any(weights + p * panel + v * NND_LANES);
      NND_UNROLL for (int r = 0; r < rows; r++) {
        const vf x = nnd_splat(in[r * NND_UNIT_K + i]);
        NND_UNROLL for (int v = 0; v < all; v++) sums[r * all + v] += w[v] * x;
      }
      weights += step;
    }
    in += rows * NND_UNIT_K;
  }
  nnd_tile_store(t, rows, all, sums);
}

#define NND_SHARING 3 /* rows that share a pointer: more pointers would not stay in registers */

/* The same, rows apart: for few columns, which would not pay for packing. */
NND_INLINE void nnd_apart_unit(int rows, int panels, int vectors, const struct nnd_tile_call *t) {
  const int all = panels * vectors;
  vf sums[NND_ACCUMULATORS];
  nnd_tile_begin(t, rows, all, sums);
  const float *weights = t->weights, *in[(NND_UNIT_ROWS + NND_SHARING - 1) / NND_SHARING];
  const nnd_size step = t->weight_step, panel = t->weight_panel, in_row = t->in_row;
  const char *next = t->next;
  NND_UNROLL for (int r = 0; r < rows; r += NND_SHARING) in[r / NND_SHARING] = t->in + r * in_row;
  NND_NO_UNROLL for (nnd_size i = 0; i < t->k; i++) {
    __builtin_prefetch(next, 0, 2);
    next += t->next_step;
    vf w[4 * NND_PANEL];
    NND_UNROLL for (int p = 0; p < panels; p++)
      NND_UNROLL for (int v = 0; v < vectors; v++)
        w[p * vectors + v] = nnd_load_any(weights + p * panel + v * NND_LANES);
    NND_UNROLL for (int r = 0; r < rows; r++) {
      const vf x = nnd_splat(in[r / NND_SHARING][r % NND_SHARING * in_row]);
      NND_UNROLL for (int v = 0; v < all; v++) sums[r * all + v] += w[v] * x;
    }
    NND_UNROLL for (int r = 0; r < rows; r += NND_SHARING) {
      in[r / NND_SHARING]++;
      __asm__("" : "+r"(in[r / NND_SHARING])); /* or the compiler makes a pointer for each row */
    }
    weights += step;
  }
  nnd_tile_store(t, rows, all, sums);
}

/* Rows lie apart; weights: [column][K], `weight_panel` floats apart. */
NND_INLINE void nnd_dot_unit(int rows, int columns, const struct nnd_tile_call *t) {
  vf sums[NND_DOT_ROWS * NND_DOT_COLUMNS], x[NND_DOT_ROWS];
  NND_UNROLL for (int s = 0; s < rows * columns; s++) sums[s] = nnd_splat(0.0f);
  nnd_size i = 0;
  NND_NO_UNROLL for (; i + NND_LANES <= t->k; i += NND_LANES) {
    NND_UNROLL for (int r = 0; r < rows; r++) x[r] = nnd_load_any(t->in + r * t->in_row + i);
    NND_UNROLL for (int c = 0; c < columns; c++) {
      const vf w = nnd_load_any(t->weights + c * t->weight_panel + i);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r * columns + c] += w * x[r];
    }
  }
  if (i < t->k) {
    NND_UNROLL for (int r = 0; r < rows; r++) x[r] = nnd_load_first(t->in + r * t->in_row + i, t->k - i, 0.0f);
    NND_UNROLL for (int c = 0; c < columns; c++) {
      const vf w = nnd_load_first(t->weights + c * t->weight_panel + i, t->k - i, 0.0f);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r * columns + c] += w * x[r];
    }
  }
  float all[nnd_vectors_of(NND_DOT_ROWS * NND_DOT_COLUMNS) * NND_LANES];
  nnd_sums_of_lanes(sums, rows * columns, all);
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int c = 0; c < columns; c++) {
      const float sum = all[r * columns + c] + (t->bias ? t->bias[c] : 0.0f);
      t->out[r * t->out_row + c] = sum < t->low ? t->low : sum;
    }
}

/* `rows` rows of the columns from c on, `count` of them: a whole vector or a part of one. */
NND_INLINE void nnd_thin_block(int k, int rows, const struct nnd_tile_call *t, const vf *x, float *out, nnd_size c,
                               nnd_size count) {
  const int whole = count == NND_LANES;
  vf sum[NND_THIN_AT_ONCE];
  vf first = nnd_splat(0.0f);
  if (t->bias) first = whole ? nnd_load_any(t->bias + c) : nnd_load_first(t->bias + c, count, 0.0f);
  NND_UNROLL for (int r = 0; r < rows; r++) sum[r] = first;
  NND_UNROLL for (int i = 0; i < k; i++) {
    const float *at = t->weights + i * t->weight_step + c;
    const vf w = whole ? nnd_load_any(at) : nnd_load_first(at, count, 0.0f);
    NND_UNROLL for (int r = 0; r < rows; r++) sum[r] += x[r * k + i] * w;
  }
  NND_UNROLL for (int r = 0; r < rows; r++) {
    const vf value = nnd_at_least(nnd_splat(t->low), sum[r]);
    if (whole) nnd_store_any(out + r * t->out_row + c, value);
    else nnd_store_first(out + r * t->out_row + c, value, count);
  }
}

/* Some rows, all columns. One row alone begins at a whole vector of the output. */
NND_INLINE void nnd_thin_rows(int k, int rows, const struct nnd_tile_call *t, nnd_size row) {
  const nnd_size end = t->columns, behind = NND_LANES - 1;
  const float *in = t->in + row * t->in_row;
  float *out = t->out + row * t->out_row;
  vf x[NND_THIN_AT_ONCE * NND_THIN_K];
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int i = 0; i < k; i++) x[r * k + i] = nnd_splat(in[r * t->in_row + i * t->in_step]);
  nnd_size c = 0;
  if (rows == 1 && end >= NND_THIN_ALIGNED) {
    c = -((nnd_size)(intptr_t)out / (nnd_size)sizeof(float)) & behind;
    if (c) nnd_thin_block(k, rows, t, x, out, 0, c);
  }
  for (; c + NND_LANES <= end; c += NND_LANES) nnd_thin_block(k, rows, t, x, out, c, NND_LANES);
  if (c < end) nnd_thin_block(k, rows, t, x, out, c, end - c);
}

/* Weights: rows of columns, `weight_step` floats apart. */
NND_INLINE void nnd_thin_unit(int k, const struct nnd_tile_call *t) {
  const int at_once = k <= NND_THIN_ALONE ? 1 : (int)nnd_min(NND_THIN_AT_ONCE, (NND_ACCUMULATORS - 4) / k);
  nnd_size r = 0;
  for (; r + at_once <= t->rows; r += at_once) nnd_thin_rows(k, at_once, t, r);
  for (; r < t->rows; r++) nnd_thin_rows(k, 1, t, r);
}

#endif
