/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of float32 by the tiles of AMX, which multiply bfloat16. The 24 bits of a float are three times eight, so it is
 * the sum of three bfloat16, its thirds, exactly; of the nine products of the thirds of two floats the six largest are
 * added up. What is left out is below 2^-23 of the product, and a float has 2^-24; sums are rounded less often than
 * elsewhere, because tiles add pairs. Six products by tiles take less than half of the time of one multiply-add.
 *
 * What is no finite number has no thirds: who makes them says so, and such products are left to other kernels.
 */
#ifndef NND_THIRDS_H
#define NND_THIRDS_H

#include "kernels/amx_blocks.h"

#if NND_LANES == 16 && !defined(NND_BF16)
#define NND_HAS_THIRDS 1
#else
#define NND_HAS_THIRDS 0
#endif

#define NND_THIRDS 3
#define NND_THIRDS_K 32 /* k of a block, which is a row of a tile */

NND_INLINE nnd_size nnd_thirds_blocks(nnd_size k) { return nnd_ceil_div(k, NND_THIRDS_K); }

/* Bytes of the thirds of so many rows. */
NND_INLINE nnd_size nnd_thirds_bytes(nnd_size rows, nnd_size k) {
  return rows * nnd_thirds_blocks(k) * NND_THIRDS * NND_AMX_BYTES;
}

#if NND_HAS_THIRDS
/* The bits of each float, of which the upper half is its first third: the nearest bfloat16, whose difference is exact. The
 * largest floats have none: infinity is nearer. */
typedef uint32_t nnd_lane_bits __attribute__((vector_size(4 * NND_LANES)));
NND_INLINE nnd_lane_bits nnd_rounded_third(vf x) { return (nnd_lane_bits)x + 0x8000u; }
NND_INLINE vf nnd_third_of(nnd_lane_bits rounded) { return (vf)(rounded & 0xffff0000u); }

/* Whether this machine has such tiles, and products of `rows` x `k` x `columns` are quicker by them. */
int nnd_thirds_pay(nnd_size rows, nnd_size k, nnd_size columns);

/* The same of an image's pixels: fewer are quicker where they lie. */
int nnd_thirds_pay_for_pixels(nnd_size pixels, nnd_size channels, nnd_size out_channels);

/* 32 floats as one row of a tile for each third, which lie `third` bytes apart; `odd` becomes NaN where one is not finite. */
NND_INLINE void nnd_thirds_of(vf *x, nnd_size third, char *to, vf *odd) {
  typedef uint16_t sixteens __attribute__((vector_size(NND_AMX_BYTES)));
  NND_UNROLL
  for (int i = 0; i < NND_THIRDS; i++) {
    const nnd_lane_bits low = nnd_rounded_third(x[0]), high = nnd_rounded_third(x[1]);
    *(sixteens *)(to + i * third) =
        __builtin_shufflevector((sixteens)low, (sixteens)high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63);
    x[0] -= nnd_third_of(low), x[1] -= nnd_third_of(high);
    if (i == 0) *odd += (x[0] + x[1]) * 0.0f;
  }
}

/* The thirds of `k` floats `step` apart, in blocks [third][NND_THIRDS_K] whose thirds lie `third` bytes apart, and blocks
 * three times as many; zeros behind the last one. Returns 0 where a float is not finite. */
int nnd_thirds_of_row(nnd_size k, const float *from, nnd_size step, nnd_size third, char *to);

/* Four strips of rows by one vector of a panel of floats, which are cut just before they are met:
 *
 *   sums[row][c] = first[c] + sum over k of row * floats[k][c]
 *
 * Rows of all strips follow each other in the sums. Cut floats wait in a ring of blocks, which stays in the first cache. */
struct nnd_thirds_quad {
  const char *rows; /* thirds of the first strip: [block][third][row][NND_THIRDS_K] */
  int height;       /* rows of a strip */
  nnd_size k;
  const float *floats, *first; /* from k to k as many floats as the panel has columns; null: sums begin with zeros */
  int vectors, vector;         /* of the panel, and which */
  char *ring;
  int is_finite; /* is set: whether the vector is, and of the first one all of the panel */
  float *sums;
};

#define NND_THIRDS_RING (4 * NND_THIRDS * NND_AMX_ROWS * NND_AMX_BYTES) /* bytes */

/* Few rows are one quad. Of more rows, two strips meet two vectors: then each panel is cut once, to the second cache,
 * while the one before is multiplied. */
NND_INLINE int nnd_thirds_are_a_quad(nnd_size rows) { return rows <= 4 * NND_AMX_ROWS; }
NND_INLINE struct nnd_amx_strips nnd_thirds_strips(nnd_size rows) {
  return nnd_amx_strips_of(rows, nnd_thirds_are_a_quad(rows) ? 4 : 2);
}

/* A panel of weights on its way to [block][third][vector][k / 2][c][2], some pairs of k after the other. */
struct nnd_thirds_cut {
  const float *floats;
  char *to;
  nnd_size k, done, all, each; /* pairs of k: those that are cut, of how many; each time */
  int vectors, is_finite;      /* as far as it is cut */
};
NND_INLINE struct nnd_thirds_cut nnd_thirds_cut_of(const float *floats, nnd_size k, int vectors, char *to) {
  return (struct nnd_thirds_cut){.floats = floats,
                                 .to = to,
                                 .k = k,
                                 .all = nnd_thirds_blocks(k) * NND_THIRDS_K / 2,
                                 .vectors = vectors,
                                 .is_finite = 1};
}
void nnd_thirds_cut_some(struct nnd_thirds_cut *cut, nnd_size pairs);

/* Spreads what is left of a cut over so many products of pairs of strips, of `blocks` blocks, each of which ends the one
 * before in `ends` turns too. Returns how many turns to take after each block. */
nnd_size nnd_thirds_spread(struct nnd_thirds_cut *cut, nnd_size products, nnd_size blocks, nnd_size ends);

/* Two strips of rows by one vector or two of a cut panel; a row's thirds lie `height` rows apart. */
void nnd_thirds_multiply_pair(const struct nnd_amx_blocks *blocks, nnd_amx_ender end_some, void *ending,
                              nnd_size at_once);

/* Multiplies a quad, with `at_once` turns of what ends after each block. */
void nnd_thirds_multiply_quad(struct nnd_thirds_quad *quad, nnd_amx_ender end_some, void *ending, nnd_size at_once);
#else
NND_INLINE int nnd_thirds_pay(nnd_size rows, nnd_size k, nnd_size columns) {
  (void)rows, (void)k, (void)columns;
  return 0;
}
NND_INLINE int nnd_thirds_pay_for_pixels(nnd_size pixels, nnd_size channels, nnd_size out_channels) {
  return nnd_thirds_pay(pixels, channels, out_channels);
}
#endif

#endif
