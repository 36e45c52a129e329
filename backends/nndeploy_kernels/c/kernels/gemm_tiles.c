/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_tiles.h"

#ifdef NND_BF16
#include "kernels/gemm_pairs.h"
#include "kernels/layout.h"

#define NND_GEMM_PANELS_BYTES ((nnd_size)512 << 10) /* of panels that pairs of strips meet in turn: they stay in L2 */

NND_INLINE nnd_size nnd_gemm_blocks(nnd_size inner) { return nnd_ceil_div(inner, NND_DEPTH); }

int nnd_gemm_has_tiles(nnd_size inner, nnd_size columns) {
  return !nnd_gemm_is_narrow(columns) && nnd_bf16_takes_tiles(NND_MOST_TILED_ROWS, inner, columns);
}

nnd_size nnd_gemm_tiled_floats(nnd_size inner, nnd_size columns) {
  return nnd_gemm_blocks(inner) * NND_DEPTH * nnd_blocks(columns) * NND_LANES / NND_GROUP;
}

/* Pairs of k of the columns of a vector, from k `first` on, as many as are in a vector; `to` goes `step` from pair to pair. */
static void nnd_pack_pairs(nnd_size count, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column,
                           nnd_elem *to, nnd_size step) {
  vf rows[NND_LANES];
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i++) {
    rows[i] = nnd_splat(0.0f);
    if (b_step == 1 && i < columns)
      rows[i] = nnd_load_first(b + i * b_column, count);
    else if (b_step != 1 && b_column == 1 && i < count)
      rows[i] = nnd_load_first(b + i * b_step, columns);
    else if (b_step != 1 && i < count)
      for (nnd_size c = 0; c < columns; c++) rows[i][c] = b[i * b_step + c * b_column];
  }
  if (b_step == 1) nnd_transpose(rows);
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i += NND_GROUP, to += step)
    if (i < count) nnd_write_group(to, rows[i], rows[i + 1]);
}

void nnd_gemm_pack_tiled(nnd_size inner, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column,
                         nnd_size first, nnd_size last, float *to) {
  const nnd_size padded = nnd_gemm_blocks(inner) * NND_DEPTH;
  for (nnd_size k = first; k < last; k += NND_LANES)
    for (nnd_size c = 0; c < columns; c += NND_LANES) {
      const nnd_size panel = c / NND_GEMM_COLUMNS * NND_GEMM_COLUMNS;
      const nnd_size wide = nnd_min(NND_PANEL, nnd_blocks(columns - panel)) * NND_LANES;
      nnd_pack_pairs(nnd_min(NND_LANES, last - k), nnd_min(NND_LANES, columns - c), b + k * b_step + c * b_column,
                     b_step, b_column, (nnd_elem *)to + panel * padded + k * wide + (c - panel) * NND_GROUP,
                     wide * NND_GROUP);
    }
}

nnd_size nnd_gemm_plan_tiles(struct nnd_gemm *g, struct nnd_gemm_caches caches, int threads, nnd_size products) {
  const nnd_size row_bytes = nnd_gemm_blocks(g->inner) * NND_AMX_BYTES;
  const nnd_size held = nnd_max(1, caches.rows / 4 / (row_bytes * NND_GEMM_PAIR)); /* pairs of strips */
  g->b_kind = NND_B_TILES;
  g->parts = 1, g->part = g->inner;
  g->panels = nnd_ceil_div(g->columns, NND_GEMM_COLUMNS);
  g->tiles = nnd_ceil_div(g->rows, NND_GEMM_PAIR);
  g->groups = nnd_ceil_div(g->tiles, held);
  if (threads > 1) /* as many units as let threads share them evenly */
    g->groups = nnd_max(g->groups, nnd_min(g->tiles, nnd_ceil_div(8 * threads, nnd_max(1, g->panels * products))));
  g->tile_floats = 0;
  return nnd_ceil_div(g->tiles, g->groups) * NND_GEMM_PAIR * row_bytes;
}

/* One row as bfloat16, blocks of which lie `block` elements apart. */
NND_INLINE void nnd_gemm_pack_tiled_row(nnd_size inner, const float *a, nnd_size a_step, nnd_size block, nnd_elem *to) {
  for (nnd_size k = 0; k < inner; k += NND_DEPTH, to += block)
    for (nnd_size half = 0; half < NND_DEPTH; half += NND_LANES) {
      const nnd_size count = nnd_max(0, nnd_min(NND_LANES, inner - k - half));
      const float *from = a + (k + half) * a_step;
      vf x = nnd_splat(0.0f);
      if (a_step == 1)
        x = nnd_load_first(from, count);
      else
        for (nnd_size i = 0; i < count; i++) x[i] = from[i * a_step];
      nnd_write(to + half, x);
    }
}

void nnd_gemm_run_tiles(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group, nnd_size panel,
                        nnd_size end, char *scratch) {
  static const nnd_size nowhere = 0;
  const nnd_size begin = nnd_even(g->rows, g->groups, group), rows = nnd_even(g->rows, g->groups, group + 1) - begin;
  const struct nnd_amx_strips strips = nnd_amx_pairs_of(rows);
  const nnd_size blocks = nnd_gemm_blocks(g->inner), of_block = strips.each * NND_DEPTH;
  const nnd_size number = d->first_group + group;
  if (!d->held || *d->held != number)
    for (nnd_size r = 0; r < rows; r++)
      nnd_gemm_pack_tiled_row(g->inner, d->a + (begin + r) * g->a_row, g->a_step, of_block,
                              (nnd_elem *)scratch + r / strips.each * blocks * of_block + r % strips.each * NND_DEPTH);
  if (d->held) *d->held = number;
  const nnd_size of_vector = blocks * NND_DEPTH * NND_LANES; /* weights */
  const nnd_size at_once = nnd_max(1, NND_GEMM_PANELS_BYTES / (NND_PANEL * of_vector * (nnd_size)sizeof(nnd_weight)));
  struct nnd_gemm_pair pairs[2];
  int now = 0;
  pairs[1].endings[0].left = pairs[1].endings[1].left = 0;
  struct nnd_amx_blocks b = {.offsets = &nowhere,
                             .taps = 1,
                             .count = blocks,
                             .size = NND_AMX_BYTES,
                             .step = NND_AMX_BYTES,
                             .block = of_block * (nnd_size)sizeof(nnd_elem),
                             .strips = 2,
                             .height = (int)strips.each};
  for (; panel < end; panel += at_once)
    for (nnd_size strip = 0; strip < strips.count; strip += 2)
      for (nnd_size i = panel; i < nnd_min(end, panel + at_once); i++, now = !now) {
        const nnd_size column = i * NND_GEMM_COLUMNS;
        struct nnd_gemm_pair *pair = &pairs[now];
        for (int s = 0; s < 2; s++) {
          const nnd_size row = (strip + s) * strips.each;
          b.rows[s] = scratch + (strip + s) * blocks * of_block * (nnd_size)sizeof(nnd_elem);
          b.sums[s] = pair->sums[s];
          pair->endings[s] =
              nnd_gemm_ending_of(g, d, begin + row, nnd_max(0, nnd_min(strips.each, rows - row)), i, 0, pair->sums[s]);
        }
        b.vectors = b.wide = pair->endings[0].vectors;
        b.sums_row = b.wide * NND_LANES;
        b.weights = (const nnd_weight *)d->b + i * NND_PANEL * of_vector;
        b.first = d->bias ? d->bias + column : NULL;
        nnd_bf16_blocks(&b, nnd_gemm_end_some, pairs[!now].endings,
                        nnd_ceil_div(2 * NND_AMX_ROWS / NND_GEMM_ENDED, blocks));
      }
  while (nnd_gemm_end_some(pairs[!now].endings)) {
  }
}
#endif
