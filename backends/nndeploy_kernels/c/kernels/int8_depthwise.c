/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8_depthwise.h"

#include "base/operators.h"
#include "kernels/int8_bytes.h"
#include "kernels/int8_ways.h"

typedef uint16_t nnd_deep_halves __attribute__((vector_size(NND_INT8_DEEP)));

/* The first or second halves of each 16 bytes of two vectors, interleaved: bytes, and pairs of them. */
#define NND_ZIP_8(at, n)                                                                                               \
  (at), (n) + (at), (at) + 1, (n) + (at) + 1, (at) + 2, (n) + (at) + 2, (at) + 3, (n) + (at) + 3, (at) + 4,            \
      (n) + (at) + 4, (at) + 5, (n) + (at) + 5, (at) + 6, (n) + (at) + 6, (at) + 7, (n) + (at) + 7
#define NND_ZIP_4(at, n)                                                                                               \
  (at), (n) + (at), (at) + 1, (n) + (at) + 1, (at) + 2, (n) + (at) + 2, (at) + 3, (n) + (at) + 3
#if NND_LANES == 16
#define NND_ZIPPED(a, b, i)                                                                                            \
  __builtin_shufflevector(a, b, NND_ZIP_8(i, 64), NND_ZIP_8(i + 16, 64), NND_ZIP_8(i + 32, 64), NND_ZIP_8(i + 48, 64))
#define NND_ZIPPED_PAIRS(a, b, i)                                                                                      \
  __builtin_shufflevector(a, b, NND_ZIP_4(i, 32), NND_ZIP_4(i + 8, 32), NND_ZIP_4(i + 16, 32), NND_ZIP_4(i + 24, 32))
#elif NND_LANES == 8
#define NND_ZIPPED(a, b, i) __builtin_shufflevector(a, b, NND_ZIP_8(i, 32), NND_ZIP_8(i + 16, 32))
#define NND_ZIPPED_PAIRS(a, b, i) __builtin_shufflevector(a, b, NND_ZIP_4(i, 16), NND_ZIP_4(i + 8, 16))
#else
#define NND_ZIPPED(a, b, i) __builtin_shufflevector(a, b, NND_ZIP_8(i, 16))
#define NND_ZIPPED_PAIRS(a, b, i) __builtin_shufflevector(a, b, NND_ZIP_4(i, 8))
#endif

void nnd_int8_quads(const struct nnd_int8_column *rows, nnd_size groups, nnd_size columns, uint8_t flip, nnd_vu *to) {
  const nnd_bytes turned = flip - (nnd_bytes){0};
  for (nnd_size group = 0; group < groups; group++, rows += NND_INT8_DEPTH, to += 4) {
    const uint8_t *at[NND_INT8_DEPTH] = {rows[0].row, rows[1].row, rows[2].row, rows[3].row};
    const nnd_size step[NND_INT8_DEPTH] = {rows[0].step, rows[1].step, rows[2].step, rows[3].step};
    nnd_vu *quads = to;
    for (nnd_size x = 0; x < columns; x++, quads += 4 * groups) {
      nnd_bytes row[NND_INT8_DEPTH];
      NND_UNROLL
      for (int i = 0; i < NND_INT8_DEPTH; i++) row[i] = *(const nnd_bytes_any *)at[i] ^ turned, at[i] += step[i];
      const nnd_deep_halves a = (nnd_deep_halves)NND_ZIPPED(row[0], row[1], 0);
      const nnd_deep_halves b = (nnd_deep_halves)NND_ZIPPED(row[2], row[3], 0);
      const nnd_deep_halves c = (nnd_deep_halves)NND_ZIPPED(row[0], row[1], 8);
      const nnd_deep_halves d = (nnd_deep_halves)NND_ZIPPED(row[2], row[3], 8);
      quads[0] = (nnd_vu)NND_ZIPPED_PAIRS(a, b, 0), quads[1] = (nnd_vu)NND_ZIPPED_PAIRS(a, b, 4);
      quads[2] = (nnd_vu)NND_ZIPPED_PAIRS(c, d, 0), quads[3] = (nnd_vu)NND_ZIPPED_PAIRS(c, d, 4);
    }
  }
}

NND_INLINE void nnd_int8_deep_end(const struct nnd_int8_deep_job *j, int pixels, const nnd_vu *sums) {
  const struct nnd_int8_end end = *j->end; /* or it would be read again behind each store */
  NND_UNROLL
  for (int p = 0; p < pixels; p++) {
    vf x[4];
    NND_UNROLL
    for (int v = 0; v < 4; v++)
      x[v] = __builtin_convertvector((vi)sums[4 * p + v], vf) * nnd_load_any(j->factors + v * NND_LANES);
    const nnd_bytes bytes = nnd_int8_bytes_of(&end, x);
    if (j->channels == NND_INT8_DEEP)
      *(nnd_bytes_any *)(j->out + p * j->out_pixel) = bytes;
    else
      nnd_store_few(j->out + p * j->out_pixel, &bytes, j->channels);
  }
}

/* Stores sums in the order of the channels. */
NND_INLINE void nnd_int8_deep_sums(int pixels, const nnd_vu *sums, int32_t *to) {
  NND_UNROLL
  for (int p = 0; p < pixels; p++)
    for (int v = 0; v < 4; v++)
      for (int lane = 0; lane < NND_LANES; lane += 4)
        memcpy(to + p * NND_INT8_DEEP + lane * 4 + v * 4, (const uint32_t *)&sums[4 * p + v] + lane, 16);
}

#define NND_DEEP_KERNEL(how, TARGET, FOUR)                                                                             \
  NND_INLINE TARGET void nnd_int8_deep_##how(const struct nnd_int8_deep_job *j, int pixels) {                          \
    nnd_vu sums[4 * NND_INT8_PIXELS];                                                                                  \
    NND_UNROLL                                                                                                         \
    for (int i = 0; i < 4 * pixels; i++) sums[i] = j->first[i % 4];                                                    \
    const int8_t *weights = j->weights;                                                                                \
    for (nnd_size pass = 0; pass < j->passes; pass++) {                                                                \
      const nnd_vu *column = j->quads;                                                                                 \
      for (nnd_size k = 0; k < j->columns; k++, column += j->to_column)                                                \
        for (nnd_size group = 0; group < j->groups; group++) {                                                         \
          const nnd_vu *quads = column + 4 * group;                                                                    \
          NND_UNROLL                                                                                                   \
          for (int v = 0; v < 4; v++) {                                                                                \
            const nnd_vu w = *(const nnd_vu_any *)(weights + v * NND_INT8_DEEP);                                       \
            NND_UNROLL                                                                                                 \
            for (int p = 0; p < pixels; p++) sums[4 * p + v] = FOUR(sums[4 * p + v], quads[p * j->to_pixel + v], w);   \
          }                                                                                                            \
          weights += 4 * NND_INT8_DEEP;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    if (j->end)                                                                                                        \
      nnd_int8_deep_end(j, pixels, sums);                                                                              \
    else                                                                                                               \
      nnd_int8_deep_sums(pixels, sums, j->sums);                                                                       \
  }                                                                                                                    \
  static TARGET void nnd_int8_deep_some_##how(const struct nnd_int8_deep_job *job, int pixels) {                       \
    switch (pixels) {                                                                                                  \
      case 1: nnd_int8_deep_##how(job, 1); return;                                                                     \
      case 2: nnd_int8_deep_##how(job, 2); return;                                                                     \
        NND_DEEP_MORE(how)                                                                                             \
    }                                                                                                                  \
  }

#if NND_INT8_PIXELS == 4
#define NND_DEEP_MORE(how)                                                                                             \
  case 3: nnd_int8_deep_##how(job, 3); return;                                                                         \
  default: nnd_int8_deep_##how(job, 4);
#else
#define NND_DEEP_MORE(how) default:;
#endif

#if defined(__x86_64__)
#define NND_DEEP_PAIRS(sums, x, w)                                                                                     \
  ((sums) + NND_PAIRS(nnd_int8_even(w, 1), nnd_int8_even(x, 0)) + NND_PAIRS(nnd_int8_odd(w, 1), nnd_int8_odd(x, 0)))
NND_DEEP_KERNEL(pairs, , NND_DEEP_PAIRS)
#define NND_DEEP_USUAL nnd_int8_deep_some_pairs
#else
NND_INLINE nnd_vu nnd_int8_deep_plain_four(nnd_vu sums, nnd_vu x, nnd_vu w) {
  NND_UNROLL
  for (int i = 0; i < NND_INT8_DEPTH; i++) {
    const vi a = (vi)(x << (24 - 8 * i)) >> 24, b = (vi)(w << (24 - 8 * i)) >> 24;
    sums += (nnd_vu)(a * b);
  }
  return sums;
}
NND_DEEP_KERNEL(plain, , nnd_int8_deep_plain_four)
#define NND_DEEP_USUAL nnd_int8_deep_some_plain
#endif

#ifdef NND_FAST_FOUR
NND_DEEP_KERNEL(fast, NND_FAST_TARGET, NND_FAST_FOUR)
#define NND_DEEP_FAST nnd_int8_deep_some_fast
#else
#define NND_DEEP_FAST NND_DEEP_USUAL
#endif

nnd_int8_deep_kernel nnd_int8_deep_kernel_here(int plain) {
  return nnd_int8_is_quick(plain) ? NND_DEEP_FAST : NND_DEEP_USUAL;
}
