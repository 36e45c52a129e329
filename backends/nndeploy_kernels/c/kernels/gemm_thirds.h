/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain float32 matrices by the tiles of AMX: rows and panels are cut in thirds (thirds.h) where they are
 * met, so that weights stay in memory once, as floats.
 */
#ifndef NND_GEMM_THIRDS_H
#define NND_GEMM_THIRDS_H

#include "kernels/gemm_pairs.h"
#include "kernels/thirds.h"

#if NND_HAS_THIRDS
/* Floats of scratch of a group of at most so many rows, in parts of so many k. */
nnd_size nnd_gemm_thirds_floats(nnd_size rows, nnd_size k);

/* A part of the sums of a group of rows, on its way through the panels. */
struct nnd_gemm_thirds {
  const struct nnd_gemm *g;
  const struct nnd_gemm_data *d;
  nnd_size begin, rows, part, k;
  struct nnd_amx_strips strips;
  int is_quad;
  char *thirds, *weights;        /* of the rows; the ring, or two panels, which are cut in turn */
  struct nnd_gemm_pair pairs[2]; /* what is multiplied, and what ends meanwhile */
  int now;
  struct nnd_thirds_cut cut; /* of the next panel */
};

/* Cuts the rows, where scratch does not hold them yet. Returns 0 where a number is not finite. */
int nnd_gemm_begin_thirds(struct nnd_gemm_thirds *t, const struct nnd_gemm *g, const struct nnd_gemm_data *d,
                          nnd_size group, nnd_size part, char *scratch);

/* Multiplies by a panel of floats, [k][vectors][c], and cuts the `next` one, which is null where it is not there yet.
 * Returns 0 where a float is not finite: no output is changed then. */
int nnd_gemm_panel_in_thirds(struct nnd_gemm_thirds *t, nnd_size panel, const float *floats, const float *next);

/* Ends what is still under way. */
void nnd_gemm_end_thirds(struct nnd_gemm_thirds *t);
#else
NND_INLINE nnd_size nnd_gemm_thirds_floats(nnd_size rows, nnd_size k) { return 0 * rows * k; }
#endif

#endif
