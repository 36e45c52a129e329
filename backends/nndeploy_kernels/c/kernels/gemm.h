/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain float32 matrices: out (rows, columns) = end(a (rows, inner) by b (inner, columns) + bias).
 *
 * The micro-kernel keeps a tile of sums in registers: NND_GEMM_ROWS rows by one panel of NND_PANEL vectors of columns;
 * fewer rows by two or four panels. Rows of `a` are packed: [k / 16][row][16]. `b` lies in panels, one after the other,
 * each [inner][vectors][c], the last one of as many vectors as it has columns for; or it is packed so by the first tile
 * of each group; or it is read in place, where rows are too few to pay for that, and row by row where there is only one
 * of `a`. Few rows by columns that are contiguous along k, and few such columns, are products of vectors instead. Few
 * rows by weights of 4 or 8 bits read these as they are; for more rows a panel is unpacked for each group of tiles.
 *
 * Work is cut in units: a group of tiles, whose packed rows stay in the second cache, by a panel. Long sums are taken
 * in parts, which are added up in the output.
 */
#ifndef NND_GEMM_H
#define NND_GEMM_H

#include "base/step.h"
#include "kernels/bits.h"

#define NND_GEMM_ROWS (NND_ACCUMULATORS / NND_PANEL)
#define NND_GEMM_COLUMNS (NND_PANEL * NND_LANES)
#define NND_GEMM_K 16 /* of a packed row that lie side by side */
#define NND_GEMM_MOST_COLUMNS_OF_DOTS (NND_LANES / 4)

enum nnd_gemm_b {
  NND_B_PANELS,
  NND_B_IN_PLACE,
  NND_B_TO_PACK,
  NND_B_DOTS,
  NND_B_STREAMS,
  NND_B_FEW_BITS,
  NND_B_BITS,
  NND_B_TILES
};

struct nnd_gemm {
  nnd_size rows, inner, columns;
  nnd_size a_row, a_step;      /* floats from row to row, from k to k */
  nnd_size b_step, b_column;   /* floats from k to k, from column to column; of panels nothing */
  nnd_size out_row;            /* floats from row to row; columns lie side by side */
  int b_kind;                  /* enum nnd_gemm_b */
  int a_is_packed;             /* whole rows, as nnd_gemm_row_at says */
  int has_tiles;               /* the panels are those of gemm_tiles.h */
  int by_thirds;               /* as gemm_thirds.h says, where all numbers are finite */
  const struct nnd_bits *bits; /* which are `b`; null where it is floats */
  struct nnd_end end;
  nnd_size tiles, groups, panels; /* of rows, of tiles, of columns */
  nnd_size parts, part;           /* of the sums, and the most k of one */
  nnd_size tile_floats;           /* of scratch: one group of packed rows; a panel of `b` is behind it */
};

/* `bias` and `numbers`: whole vectors, null where there are none; `residual` lies as the output does. `held`: the group
 * whose packed rows lie in scratch, of all groups of the products that share it, this one's beginning with
 * `first_group`; null where scratch is for one call alone. */
struct nnd_gemm_data {
  const float *a, *b, *bias, *numbers, *residual;
  float *out;
  nnd_size *held, first_group;
};

/* Whether few columns are kept contiguous along k: [column][inner]. */
NND_INLINE int nnd_gemm_is_narrow(nnd_size columns) { return columns <= NND_GEMM_MOST_COLUMNS_OF_DOTS; }

/* Floats of all panels, and the panels of (inner, columns). */
nnd_size nnd_gemm_packed_floats(nnd_size inner, nnd_size columns);
void nnd_gemm_pack(nnd_size inner, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column, nnd_size first,
                   nnd_size last, float *to);

/* Bytes of the second cache: of the machine, with which parts of sums are counted; as groups of rows are. */
struct nnd_gemm_caches {
  nnd_size machine, rows;
};

/* Says how a product is done, from its sizes and strides (and `b_kind` where that is NND_B_PANELS), for so many threads
 * that share `products` of them. Returns the bytes of scratch. */
nnd_size nnd_gemm_plan(struct nnd_gemm *g, int is_packed, struct nnd_gemm_caches caches, int threads,
                       nnd_size products);

/* k of a packed row, and the first row of a tile. */
NND_INLINE nnd_size nnd_gemm_padded(nnd_size k) { return nnd_ceil_div(k, NND_GEMM_K) * NND_GEMM_K; }
NND_INLINE nnd_size nnd_gemm_at(const struct nnd_gemm *g, nnd_size tile) { return nnd_even(g->rows, g->tiles, tile); }

NND_INLINE nnd_size nnd_gemm_units(const struct nnd_gemm *g) { return g->groups * g->panels; }

/* Does the units [first, last). */
void nnd_gemm_run(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size first, nnd_size last,
                  char *scratch);

#endif
