/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of strips of rows by a panel of weights, as the tiles of AMX do them, of bytes or of bfloat16; and the
 * registers of tiles, which a thread has from its first product to nnd_amx_let_go().
 */
#ifndef NND_AMX_BLOCKS_H
#define NND_AMX_BLOCKS_H

#include "base/vector.h"

#define NND_AMX_ROWS 16      /* of a tile, which are those of a strip at most */
#define NND_AMX_FAST_ROWS 10 /* fewer take as long */
#define NND_AMX_BYTES 64     /* of a row of a tile */
#define NND_AMX_GROUP 4      /* bytes of a row that meet a lane of a vector of weights */

/* How the pixels of a line are cut into strips, each of `each` rows, of which the last one may have fewer, or none. */
struct nnd_amx_strips {
  nnd_size count, each;
};
NND_INLINE struct nnd_amx_strips nnd_amx_strips_of(nnd_size pixels, nnd_size multiple) {
  const nnd_size count = multiple * nnd_ceil_div(pixels, multiple * NND_AMX_ROWS);
  return (struct nnd_amx_strips){count, nnd_ceil_div(pixels, count)};
}

/* Strips of pixels by themselves are an even number, or two of a pair would be of other heights. */
NND_INLINE struct nnd_amx_strips nnd_amx_pairs_of(nnd_size pixels) { return nnd_amx_strips_of(pixels, 2); }

/* Sums of a strip of rows, or of two, whose k are whole blocks of `size` bytes, by a panel of the weights:
 *
 *   sums[strip][r][c] = first[c] + sum over taps, blocks and k of row * weights[tap][block][k][c]
 *
 * where row r of a block lies at rows[strip] + offsets[tap] + block * `block` + r * step. */
struct nnd_amx_blocks {
  const char *rows[2];
  const nnd_size *offsets;
  nnd_size taps, count, size, step, block; /* blocks of a tap; bytes */
  int strips, height, vectors;             /* 0 strips: there are only those that end; rows of a strip; of all */
  int wide;                                /* vectors of the panel, of which the first ones are met */
  const void *weights;
  const void *first; /* of whole vectors; null: zeros */
  void *sums[2];     /* whole vectors */
  nnd_size sums_row; /* sums, of 4 bytes, from row to row */
};

/* Does some of what ends the sums of the tile before, on ports that tiles leave idle; returns 0 where all is done. */
typedef int (*nnd_amx_ender)(void *ending);

#if NND_LANES == 16
/* Gives this thread's registers of tiles back to the system, where a kernel took them. */
void nnd_amx_let_go(void);
#else
NND_INLINE void nnd_amx_let_go(void) {}
#endif

#endif
