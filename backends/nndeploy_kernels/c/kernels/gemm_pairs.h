/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs of strips of a product of plain matrices by the tiles of AMX: while a pair is multiplied, the one before ends.
 */
#ifndef NND_GEMM_PAIRS_H
#define NND_GEMM_PAIRS_H

#include "kernels/amx_blocks.h"
#include "kernels/gemm.h"
#include "kernels/gemm_end.h"

#define NND_GEMM_PAIR (2 * NND_AMX_ROWS)
#define NND_GEMM_ENDED 4 /* rows at once */

/* Rows of a tile on their way to the output. */
struct nnd_gemm_ending {
  struct nnd_gemm_tile tile;
  const vf *sums;
  nnd_size left;
  int vectors;
};

/* Sums of two strips by the vectors of a panel, and where they end: strips follow each other. */
struct nnd_gemm_pair {
  vf sums[2][NND_AMX_ROWS * NND_PANEL];
  struct nnd_gemm_ending endings[2];
};

#define NND_GEMM_END(rows)                                                                                             \
  {                                                                                                                    \
    vf sums[(rows) * NND_PANEL];                                                                                       \
    NND_UNROLL                                                                                                         \
    for (int i = 0; i < (rows) * NND_PANEL; i++) sums[i] = i < (rows) * e->vectors ? e->sums[i] : nnd_splat(0.0f);     \
    if (e->vectors == NND_PANEL)                                                                                       \
      nnd_gemm_end(&e->tile, rows, NND_PANEL, sums);                                                                   \
    else                                                                                                               \
      nnd_gemm_end(&e->tile, rows, 1, sums);                                                                           \
    done = rows;                                                                                                       \
  }

static int nnd_gemm_end_some(void *ending) {
  struct nnd_gemm_ending *endings = ending, *e = endings[0].left ? &endings[0] : &endings[1];
  nnd_size done;
  if (!e->left) return 0;
  if (e->left >= NND_GEMM_ENDED)
    NND_GEMM_END(NND_GEMM_ENDED)
  else
    NND_GEMM_END(1)
  e->left -= done, e->sums += done * e->vectors;
  e->tile.out += done * e->tile.out_row;
  if (e->tile.residual) e->tile.residual += done * e->tile.out_row;
  return 1;
}

/* What the sums of `rows` rows from `row` on by a panel, in a part of all k, become. */
NND_INLINE struct nnd_gemm_ending nnd_gemm_ending_of(const struct nnd_gemm *g, const struct nnd_gemm_data *d,
                                                     nnd_size row, nnd_size rows, nnd_size panel, nnd_size part,
                                                     const vf *sums) {
  const nnd_size column = panel * NND_GEMM_COLUMNS, at = row * g->out_row + column;
  const nnd_size columns = nnd_min(NND_GEMM_COLUMNS, g->columns - column);
  return (struct nnd_gemm_ending){{.columns = columns,
                                   .numbers = d->numbers ? d->numbers + column : NULL,
                                   .residual = d->residual ? d->residual + at : NULL,
                                   .out = d->out + at,
                                   .out_row = g->out_row,
                                   .adds = part > 0,
                                   .end = part + 1 < g->parts ? NULL : &g->end},
                                  sums,
                                  rows,
                                  (int)nnd_blocks(columns)};
}

#endif
