/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel of products of bytes: exact sums of some rows by one panel of columns,
 *
 *   sums[r][c] = first[c] + sum over taps and k of rows[tap][r][k] * weights[tap][k][c]    in int32, which wraps
 *
 * Rows are uint8 or int8 and lie anywhere, each contiguous along k: pixels of a channels-last image, read through
 * pointers tap after tap, are such rows, and so are those of a matrix. Weights are int8: uint8 ones are packed less 128,
 * as is their zero point. No byte behind a row is read.
 *
 * Weights: panels of NND_PANEL vectors of columns, the last one of what is left, each [tap][k / 4][column][4], with
 * zeros behind the last k and the last column. Of kernels that read more at once it is [tap][k / 8][column][8], the last
 * four k by themselves where the number of fours is odd.
 *
 * The instructions are those of the processor that runs: products of four bytes at once where it has them, pairs of
 * 16-bit numbers or plain multiplications elsewhere. All give the same sums.
 */
#ifndef NND_INT8_TILE_H
#define NND_INT8_TILE_H

#include "kernels/amx_blocks.h"

#define NND_INT8_COLUMNS (NND_PANEL * NND_LANES)
#define NND_INT8_DEPTH 4 /* k that lie side by side */
#define NND_INT8_STRIP NND_AMX_ROWS
#define NND_INT8_BLOCK NND_AMX_BYTES
#if NND_LANES == 16
#define NND_INT8_BEHIND (15 * NND_INT8_COLUMNS * NND_INT8_DEPTH) /* bytes behind all weights that kernels may read */
#else
#define NND_INT8_BEHIND 0
#endif
#if NND_LANES == 16
#define NND_INT8_ROWS 12
#elif NND_LANES == 8
#define NND_INT8_ROWS 6
#elif NND_PANEL == 2
#define NND_INT8_ROWS 4
#else
#define NND_INT8_ROWS 6
#endif

#if NND_LANES == 16
#define NND_INT8_MOST_ROWS NND_INT8_STRIP /* of a tile or a strip */
#else
#define NND_INT8_MOST_ROWS NND_INT8_ROWS
#endif

#if defined(__aarch64__)
#define NND_INT8_EVEN_ROWS 4
#else
#define NND_INT8_EVEN_ROWS ((3 * NND_INT8_ROWS + 3) / 4)
#endif

typedef uint32_t nnd_vu __attribute__((vector_size(4 * NND_LANES)));
typedef uint32_t nnd_vu_any __attribute__((vector_size(4 * NND_LANES), aligned(4)));

struct nnd_int8_end;
struct nnd_int8_ended;

struct nnd_int8_job {
  const void *const *rows; /* of the first tap; those of the next tap lie `tap_rows` further on */
  nnd_size tap_rows, taps, k;
  nnd_size step;                      /* of even rows: bytes from one to the next; the first alone is in `rows` */
  int is_signed;                      /* rows are int8 */
  const int8_t *weights;              /* of the panel */
  const int32_t *column_sums;         /* of the panel's weights, over all taps */
  const int32_t *first;               /* of whole vectors; null: zeros */
  const struct nnd_int8_end *end;     /* a quick one: kernels make bytes of the sums; null: they store them */
  const struct nnd_int8_ended *ended; /* where such bytes go, and what they are made with */
  int32_t *sums;                      /* whole vectors */
  nnd_size sums_row;                  /* int32 from row to row */
};

typedef void (*nnd_int8_kernel)(const struct nnd_int8_job *job);

/* The kernels by vectors of the panel and by rows, at most NND_INT8_ROWS. */
struct nnd_int8_kernels {
  const char *name;
  int depth;      /* k that lie side by side in weights: NND_INT8_DEPTH, or twice as many */
  int turns_int8; /* rows of int8 take longer than those of uint8 */
  nnd_int8_kernel of[NND_PANEL + 1][NND_INT8_ROWS + 1];
  /* Of even rows whose k are whole groups, NND_INT8_EVEN_ROWS or more; null: there is none. */
  nnd_int8_kernel even[NND_PANEL + 1][NND_INT8_ROWS + 1];
};

/* Whether this machine multiplies four bytes at once; never with `plain`. */
int nnd_int8_is_quick(int plain);

/* The kernels of this machine; with `plain`, those that use nothing but what the level has. */
const struct nnd_int8_kernels *nnd_int8_kernels_here(int plain);

/* Sums of strips of rows by a panel of the weights. Rows are read where they lie, in the blocks of nnd_int8_block_of();
 * or packed, by nnd_int8_pack_strip(), in blocks of NND_INT8_BLOCK, with zeros behind their k, by which weights behind the
 * panel's last are multiplied. */
struct nnd_int8_blocks {
  struct nnd_amx_blocks tiles;
  int is_signed;
  /* Sums that were made before, of as many strips by a panel of as many vectors, which become bytes meanwhile by a quick
   * end. */
  int num_ended;
  const struct nnd_int8_end *end;
  const struct nnd_int8_ended *ended;
};
typedef void (*nnd_int8_multiplier)(const struct nnd_int8_blocks *blocks);

#if NND_LANES == 16
/* What multiplies blocks on this machine; null: nothing does, or products of `rows` x `k` x `columns` are quicker by rows.
 */
nnd_int8_multiplier nnd_int8_multiplier_here(int plain, nnd_size rows, nnd_size k, nnd_size columns);

/* Whether there is one: libraries that know of none leave out what asks for it. */
NND_INLINE int nnd_int8_by_blocks(nnd_int8_multiplier multiply) { return multiply != NULL; }

/* Packs a strip of `count` rows, [block][NND_INT8_STRIP][NND_INT8_BLOCK], zeros behind their k. Rows are as those of
 * struct nnd_int8_job; those behind `count` are left as they are. */
void nnd_int8_pack_strip(const void *const *rows, nnd_size tap_rows, nnd_size taps, nnd_size k, nnd_size count,
                         char *to);

/* Multiplies tiles, as many times as is said, and returns the operations of each time, 0 where this machine has none. */
double nnd_int8_multiply_tiles(nnd_size times);
#else
NND_INLINE nnd_int8_multiplier nnd_int8_multiplier_here(int plain, nnd_size rows, nnd_size k, nnd_size columns) {
  (void)plain, (void)rows, (void)k, (void)columns;
  return NULL;
}
NND_INLINE int nnd_int8_by_blocks(nnd_int8_multiplier multiply) {
  (void)multiply;
  return 0;
}
NND_INLINE void nnd_int8_pack_strip(const void *const *rows, nnd_size tap_rows, nnd_size taps, nnd_size k,
                                    nnd_size count, char *to) {
  (void)rows, (void)tap_rows, (void)taps, (void)k, (void)count, (void)to;
}
NND_INLINE double nnd_int8_multiply_tiles(nnd_size times) { return 0.0 * (double)times; }
#endif

/* The most k, whole groups and NND_INT8_BLOCK at most, of which `k` is a multiple, where that takes hardly more blocks
 * than there would be of NND_INT8_BLOCK; else 0. */
NND_INLINE nnd_size nnd_int8_block_of(nnd_size k) {
  const nnd_size least = nnd_ceil_div(k, NND_INT8_BLOCK);
  for (nnd_size count = least; count <= least + 1 + least / 8; count++)
    if (k % (NND_INT8_DEPTH * count) == 0) return k / count;
  return 0;
}

/* Groups of k, bytes of a strip that is packed, and the vectors of the panel that begins at `column`. */
NND_INLINE nnd_size nnd_int8_groups(nnd_size k) { return nnd_ceil_div(k, NND_INT8_DEPTH); }
NND_INLINE nnd_size nnd_int8_strip_bytes(nnd_size taps, nnd_size k) {
  return nnd_ceil_div(taps * nnd_int8_groups(k) * NND_INT8_DEPTH, NND_INT8_BLOCK) * NND_INT8_STRIP * NND_INT8_BLOCK;
}
NND_INLINE int nnd_int8_vectors(nnd_size columns, nnd_size column) {
  return (int)nnd_min(NND_PANEL, nnd_blocks(columns - column));
}

/* Bytes of all panels of one tap; panels before `column` hold nnd_int8_packed_bytes(k, column) of them. */
NND_INLINE nnd_size nnd_int8_packed_bytes(nnd_size k, nnd_size columns) {
  return nnd_int8_groups(k) * NND_INT8_DEPTH * nnd_blocks(columns) * NND_LANES;
}

/* Packs one tap of a panel of `columns`, and adds what its columns sum up to to `column_sums`, of whole vectors.
 * Bytes are int8, or uint8, of which 128 are taken; `k_step` and `column_step` of them lie from each to the next. */
void nnd_int8_pack(const void *from, int is_unsigned, nnd_size k, nnd_size columns, nnd_size k_step,
                   nnd_size column_step, int8_t *to, int32_t *column_sums);

/* Puts one tap of a panel of `columns`, packed, in the order that the kernels read. */
void nnd_int8_settle(const struct nnd_int8_kernels *kernels, nnd_size k, nnd_size columns, int8_t *panel);

#endif
