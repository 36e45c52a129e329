/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of 4 or 8 bits: w = (number - zero) * scale, with a scale and a zero of each piece of a column. And weights of
 * float16, without both: [vector of columns][k][c].
 *
 * Numbers lie as words of 32 bits, one a lane, so that a vector of them holds the next 8 or 4 numbers of NND_LANES
 * columns: [vector of columns][piece][word][c], the first number in the lowest bits. A number is taken out of a word
 * where it lies, by a mask alone, and becomes a float that is too large by a power of two; the last one is moved down by
 * one number first, because a word has a sign. Few rows are multiplied by such floats: they were divided by the powers
 * before. For more rows a part of a panel is unpacked to floats.
 *
 * Where the model lets rows be rounded, and the processor multiplies four bytes at once, rows by numbers of 4 bits are
 * made bytes, however many they are, piece by piece, of a scale of their own: the largest of a piece becomes 127.
 *
 * A block of the model is one piece, or several of the same scale where it is long: what a zero takes from a sum is then
 * not much larger than the sum.
 */
#ifndef NND_BITS_H
#define NND_BITS_H

#include "base/elements.h"

#define NND_BITS_ROWS (NND_LANES == 16 ? 14 : 4) /* by which a word is multiplied at once: registers hold their sums */

struct nnd_bits {
  nnd_size inner, columns;
  nnd_size piece, pieces, words; /* numbers of a piece, pieces of a column, words of a piece */
  int bits;                      /* 4, 8, or 16: float16 */
  const void *numbers;           /* words of 32 bits, or float16 */
  const float *scales;           /* [vector][piece][c] */
  const uint8_t *zeros;          /* the same; null where there are others */
  const float *float_zeros;      /* the same; null where `zero` is that of all */
  float zero;
  int rounds_rows; /* rows become bytes; only of 4 bits */
};

/* Where numbers and their scales and zeros come from: element k of column c is number k * k_step + c * column_step,
 * 4 bits each from the low ones on, a byte or a float16; that of block b is b * block_step + c * column_step of its own. `flip` is
 * what is changed of a number to make it unsigned. */
struct nnd_bits_source {
  const void *numbers;
  const uint8_t *zeros;
  const float *scales, *float_zeros;
  nnd_size k_step, column_step, scale_step, scale_column, zero_step, zero_column, block;
  uint32_t flip;
};

NND_INLINE nnd_size nnd_bits_a_word(int bits) { return bits == 16 ? 1 : 32 / bits; }

NND_INLINE nnd_size nnd_bits_word_bytes(int bits) { return bits == 16 ? 2 : 4; }

#define NND_BITS_STREAMS 2

/* Numbers of a piece of blocks of so many of `inner`; 0 where they cannot be cut into pieces. */
nnd_size nnd_bits_piece(int bits, nnd_size block, nnd_size inner);

/* Packs the vectors of columns [first, last): numbers, or scales and zeros. */
void nnd_bits_pack_numbers(const struct nnd_bits *b, const struct nnd_bits_source *from, nnd_size first, nnd_size last,
                           void *to);
void nnd_bits_pack_scales(const struct nnd_bits *b, const struct nnd_bits_source *from, float *scales, uint8_t *zeros,
                          float *float_zeros);

/* Floats that `rows` rows of `a`, up to NND_BITS_ROWS, take that are made ready for nnd_bits_sums. */
nnd_size nnd_bits_ready_floats(const struct nnd_bits *b, nnd_size rows);
void nnd_bits_make_ready(const struct nnd_bits *b, nnd_size rows, const float *a, nnd_size a_row, nnd_size a_step,
                         float *to);

/* Adds the products of `rows` rows by vector `vector` of columns to `sums`. */
void nnd_bits_sums(const struct nnd_bits *b, nnd_size vector, nnd_size rows, const float *ready, vf *sums);

/* The same of one row and NND_BITS_STREAMS vectors of columns, so many `apart`: memory gives more where it is read at
 * several places. */
void nnd_bits_streams(const struct nnd_bits *b, nnd_size vector, nnd_size apart, const float *ready, vf *sums);

/* Makes floats of `k` numbers of a vector of columns, from the beginning of a piece on: those of each k lie `step` floats
 * behind those before it. */
void nnd_bits_unpack(const struct nnd_bits *b, nnd_size vector, nnd_size piece, nnd_size k, float *to, nnd_size step);

#endif
