/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bfloat16 by the tiles of AMX: pixels of NCHWc, packed in strips, by panels of weights,
 *
 *   out[o][p] = end(bias[o] + sum over taps and input channels of weights[tap][i][o] * in[tap][i][p], residual[o][p])
 *
 * A row of a tile wants 32 channels of a pixel side by side, and a blocked tensor has 16, so pixels are packed first:
 * [pixel][32], zeros behind the last channel. To copy a tile takes as long as one product, and each panel reads it.
 *
 * Strips go in pairs, all as high: what a pixel sums up to does not depend on those beside it.
 */
#ifndef NND_BF16_TILES_H
#define NND_BF16_TILES_H

#include "base/step.h"
#include "kernels/amx_blocks.h"
#include "kernels/pixel_job.h"

#define NND_PIXEL_BLOCK 32 /* channels of a packed pixel that lie side by side */

NND_INLINE nnd_size nnd_pixel_blocks(nnd_size channels) { return nnd_ceil_div(channels, NND_PIXEL_BLOCK); }

/* Bytes of so many pixels, packed by nnd_bf16_pack_pixels(). */
NND_INLINE nnd_size nnd_bf16_packed_bytes(nnd_size pixels, nnd_size channels) {
  return nnd_amx_pairs_of(pixels).count * nnd_pixel_blocks(channels) * NND_AMX_ROWS * NND_AMX_BYTES;
}

/* Of other levels what asks for tiles is left out. */
#ifdef NND_BF16
#define NND_HAS_TILES 1
/* Whether this machine has such tiles, and products of `rows` x `k` x `columns` are quicker by them. */
#define NND_MOST_TILED_ROWS ((nnd_size)1 << 20) /* so many that only k and columns count */
int nnd_bf16_takes_tiles(nnd_size rows, nnd_size k, nnd_size columns);

/* Packs `pixels` pixels side by side, whose blocks of 16 channels lie `plane` elements apart; those of 32 that are made
 * of them `block_step` apart. */
void nnd_bf16_pack_run(const nnd_elem *in, nnd_size plane, nnd_size channels, nnd_size pixels, nnd_size block_step,
                       nnd_elem *to);

/* Packs `pixels` pixels in pairs of strips, [strip][block][NND_AMX_ROWS][NND_PIXEL_BLOCK]. */
void nnd_bf16_pack_pixels(const nnd_elem *in, nnd_size plane, nnd_size channels, nnd_size pixels, nnd_elem *to);

void nnd_bf16_multiply(const struct nnd_pixel_job *job);

/* Two strips of rows by one vector or two, `at_once` turns of what ends after each block. */
void nnd_bf16_blocks(const struct nnd_amx_blocks *blocks, nnd_amx_ender end_some, void *ending, nnd_size at_once);
#else
#define NND_HAS_TILES 0
NND_INLINE int nnd_bf16_takes_tiles(nnd_size rows, nnd_size k, nnd_size columns) {
  (void)rows, (void)k, (void)columns;
  return 0;
}
NND_INLINE void nnd_bf16_pack_pixels(const nnd_elem *in, nnd_size plane, nnd_size channels, nnd_size pixels,
                                     nnd_elem *to) {
  (void)in, (void)plane, (void)channels, (void)pixels, (void)to;
}
NND_INLINE void nnd_bf16_multiply(const struct nnd_pixel_job *job) { (void)job; }
#endif

#endif
