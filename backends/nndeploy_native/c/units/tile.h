/* SPDX-License-Identifier: Apache-2.0
 *
 * The compute units of a matrix product: out[r][c] = relu(bias[c] + sum_k in[r][k] * weights[k][c]) of one block.
 *
 * A unit is compiled for a number of rows and of columns (panels of NND_PANEL vectors); K, strides and the columns that
 * are stored vary. The sums of a block stay in registers. Three families:
 *   wide  P panels side by side: each k loads P * NND_PANEL vectors of weights and broadcasts one float a row
 *   lane  one vector of columns
 *   dot   few columns: vectors lie along K
 */
#ifndef NND_UNITS_TILE_H
#define NND_UNITS_TILE_H

#include "../elementwise.h"

#define NND_UNIT_K 16                                  /* of a packed row that lie side by side */
#define NND_PANEL_COLUMNS (NND_PANEL * NND_LANES)      /* 32, aarch64 and AVX2 16 */
#define NND_UNIT_ROWS (NND_ACCUMULATORS / NND_PANEL)   /* 14, 6, 5 */
#define NND_DOT_ROWS 4
#define NND_DOT_COLUMNS 6

/* One block. Of a packed input row r of the k from b * NND_UNIT_K on lies at in + (b * rows + r) * NND_UNIT_K. */
struct nnd_tile_call {
  const float *in;
  nnd_size in_row; /* floats from row to row, where rows lie apart */
  const float *weights;
  nnd_size weight_step;  /* floats from one k to the next */
  nnd_size weight_panel; /* floats from one panel to the next; for dot: from one column to the next */
  const float *bias;     /* whole vectors; null: none */
  float *out;
  nnd_size out_row;
  nnd_size k, columns; /* columns that are stored: the last vectors may be left out, or be partial */
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

NND_INLINE float nnd_sum_of_lanes(vf x) {
  float sums[NND_LANES];
  memcpy(sums, &x, sizeof x);
  NND_UNROLL for (int half = NND_LANES / 2; half; half /= 2)
    NND_UNROLL for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

/* Rows lie apart; weights: [column][K], `weight_panel` floats apart. */
NND_INLINE void nnd_dot_unit(int rows, int columns, const struct nnd_tile_call *t) {
  vf sums[NND_DOT_ROWS * NND_DOT_COLUMNS];
  NND_UNROLL for (int s = 0; s < rows * columns; s++) sums[s] = nnd_splat(0.0f);
  nnd_size i = 0;
  NND_NO_UNROLL for (; i + NND_LANES <= t->k; i += NND_LANES) {
    vf x[NND_DOT_ROWS];
    NND_UNROLL for (int r = 0; r < rows; r++) x[r] = nnd_load_any(t->in + r * t->in_row + i);
    NND_UNROLL for (int c = 0; c < columns; c++) {
      const vf w = nnd_load_any(t->weights + c * t->weight_panel + i);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r * columns + c] += w * x[r];
    }
  }
  NND_UNROLL for (int r = 0; r < rows; r++)
    NND_UNROLL for (int c = 0; c < columns; c++) {
      const float *x = t->in + r * t->in_row, *w = t->weights + c * t->weight_panel;
      float sum = nnd_sum_of_lanes(sums[r * columns + c]) + (t->bias ? t->bias[c] : 0.0f);
      NND_NO_UNROLL for (nnd_size rest = i; rest < t->k; rest++) sum += x[rest] * w[rest];
      t->out[r * t->out_row + c] = sum < t->low ? t->low : sum;
    }
}

#endif
