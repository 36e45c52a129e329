/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain float32 matrices by constant ones, as bfloat16 by the tiles of AMX: rows become bfloat16 when they are
 * packed, sums and what becomes of them stay float32. Panels are [inner / 2][vectors][c][2], zeros behind the last k.
 */
#ifndef NND_GEMM_TILES_H
#define NND_GEMM_TILES_H

#include "kernels/bf16_tiles.h"
#include "kernels/gemm.h"

#ifdef NND_BF16
/* Whether constant (inner, columns) are packed for tiles: however few rows meet them, they are read fastest so. */
int nnd_gemm_has_tiles(nnd_size inner, nnd_size columns);

/* Floats that all panels take, and the rows [first, last) of (inner, columns) in them; `first` is a multiple of 32. */
nnd_size nnd_gemm_tiled_floats(nnd_size inner, nnd_size columns);
void nnd_gemm_pack_tiled(nnd_size inner, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column,
                         nnd_size first, nnd_size last, float *to);

/* As nnd_gemm_plan() and nnd_gemm_run(), of which one group of rows by panels [panel, end). */
nnd_size nnd_gemm_plan_tiles(struct nnd_gemm *g, struct nnd_gemm_caches caches, int threads, nnd_size products);
void nnd_gemm_run_tiles(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group, nnd_size panel,
                        nnd_size end, char *scratch);
#else
NND_INLINE int nnd_gemm_has_tiles(nnd_size inner, nnd_size columns) {
  (void)inner, (void)columns;
  return 0;
}
NND_INLINE nnd_size nnd_gemm_tiled_floats(nnd_size inner, nnd_size columns) { return 0 * inner * columns; }
NND_INLINE void nnd_gemm_pack_tiled(nnd_size inner, nnd_size columns, const float *b, nnd_size b_step,
                                    nnd_size b_column, nnd_size first, nnd_size last, float *to) {
  (void)inner, (void)columns, (void)b, (void)b_step, (void)b_column, (void)first, (void)last, (void)to;
}
NND_INLINE nnd_size nnd_gemm_plan_tiles(struct nnd_gemm *g, struct nnd_gemm_caches caches, int threads,
                                        nnd_size products) {
  (void)g, (void)caches, (void)threads, (void)products;
  return 0;
}
NND_INLINE void nnd_gemm_run_tiles(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group,
                                   nnd_size panel, nnd_size end, char *scratch) {
  (void)g, (void)d, (void)group, (void)panel, (void)end, (void)scratch;
}
#endif

#endif
