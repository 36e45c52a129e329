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
#define NND_ZIP_4(at, n) (at), (n) + (at), (at) + 1, (n) + (at) + 1, (at) + 2, (n) + (at) + 2, (at) + 3, (n) + (at) + 3
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

/* The bytes of four rows by quads, in four vectors. */
NND_INLINE void nnd_int8_make_quads(nnd_bytes *row, uint8_t flip, nnd_vu *quads) {
  const nnd_bytes turned = flip - (nnd_bytes){0};
  NND_UNROLL
  for (int i = 0; i < NND_INT8_DEPTH; i++) row[i] ^= turned;
  const nnd_deep_halves a = (nnd_deep_halves)NND_ZIPPED(row[0], row[1], 0);
  const nnd_deep_halves b = (nnd_deep_halves)NND_ZIPPED(row[2], row[3], 0);
  const nnd_deep_halves c = (nnd_deep_halves)NND_ZIPPED(row[0], row[1], 8);
  const nnd_deep_halves d = (nnd_deep_halves)NND_ZIPPED(row[2], row[3], 8);
  quads[0] = (nnd_vu)NND_ZIPPED_PAIRS(a, b, 0), quads[1] = (nnd_vu)NND_ZIPPED_PAIRS(a, b, 4);
  quads[2] = (nnd_vu)NND_ZIPPED_PAIRS(c, d, 0), quads[3] = (nnd_vu)NND_ZIPPED_PAIRS(c, d, 4);
}

/* Bytes of `joined` pixels that lie `step` bytes apart. */
NND_INLINE nnd_bytes nnd_int8_joined_bytes(const uint8_t *from, nnd_size step, int joined) {
#if NND_LANES >= 8
  typedef uint64_t half __attribute__((vector_size(2 * NND_LANES), aligned(1)));
#if NND_LANES == 16
#define NND_BOTH(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
  typedef uint64_t quarter __attribute__((vector_size(NND_LANES), aligned(1)));
  if (joined == 4) {
    const quarter *at[4];
    for (int i = 0; i < 4; i++) at[i] = (const quarter *)(from + i * step);
    return (nnd_bytes)NND_BOTH(__builtin_shufflevector(*at[0], *at[1], 0, 1, 2, 3),
                               __builtin_shufflevector(*at[2], *at[3], 0, 1, 2, 3));
  }
#else
#define NND_BOTH(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#endif
  if (joined == 2) return (nnd_bytes)NND_BOTH(*(const half *)from, *(const half *)(from + step));
#else
  (void)step, (void)joined; /* a vector holds one pixel */
#endif
  return *(const nnd_bytes_any *)from;
}

/* `together`: pixels that are joined one by one. */
NND_INLINE void nnd_int8_quads_of(const struct nnd_int8_quads *to, const struct nnd_int8_column *rows, char *quads,
                                  nnd_size count, int together) {
  const uint8_t *at[NND_INT8_DEPTH] = {rows[0].row, rows[1].row, rows[2].row, rows[3].row};
  const nnd_size to_vector = to->to_vector, to_next = to->to_next;
  for (nnd_size x = 0; x < count; x++, quads += to_next) {
    nnd_bytes row[NND_INT8_DEPTH];
    nnd_vu made[4];
    NND_UNROLL
    for (int i = 0; i < NND_INT8_DEPTH; i++)
      row[i] = nnd_int8_joined_bytes(at[i], rows[i].to_joined, together), at[i] += rows[i].step;
    nnd_int8_make_quads(row, to->flip, made);
    NND_UNROLL
    for (int v = 0; v < 4; v++) *(nnd_vu *)(quads + v * to_vector) = made[v];
  }
}

void nnd_int8_quads(const struct nnd_int8_quads *to, const struct nnd_int8_column *rows, char *quads, nnd_size count) {
  for (nnd_size group = 0; group < to->groups; group++, rows += NND_INT8_DEPTH, quads += to->to_group)
    switch (to->together) {
      case 4: nnd_int8_quads_of(to, rows, quads, count, 4); break;
      case 2: nnd_int8_quads_of(to, rows, quads, count, 2); break;
      default: nnd_int8_quads_of(to, rows, quads, count, 1);
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

/* Vectors of a pixel lie side by side, or, of pixels that were joined, those of pixel after pixel. */
#define NND_DEEP_KERNEL(how, TARGET, FOUR)                                                                             \
  NND_INLINE TARGET void nnd_int8_deep_of_##how(const struct nnd_int8_deep_job *j, int pixels, int is_joined) {        \
    const nnd_size to_pixel = is_joined ? (nnd_size)sizeof(nnd_vu) : j->to_pixel;                                      \
    const nnd_size to_vector = is_joined ? j->to_vector : (nnd_size)sizeof(nnd_vu);                                    \
    nnd_vu sums[4 * NND_INT8_PIXELS];                                                                                  \
    NND_UNROLL                                                                                                         \
    for (int i = 0; i < 4 * pixels; i++) sums[i] = j->first[i % 4];                                                    \
    const int8_t *weights = j->weights;                                                                                \
    for (nnd_size pass = 0; pass < j->passes; pass++)                                                                  \
      for (nnd_size k = 0; k < j->columns; k++) {                                                                      \
        const char *quads = j->quads + j->column_at[k];                                                                \
        for (nnd_size group = 0; group < j->groups; group++, quads += j->to_group) {                                   \
          NND_UNROLL                                                                                                   \
          for (int v = 0; v < 4; v++) {                                                                                \
            const nnd_vu w = *(const nnd_vu_any *)(weights + v * NND_INT8_DEEP);                                       \
            NND_UNROLL                                                                                                 \
            for (int p = 0; p < pixels; p++)                                                                           \
              sums[4 * p + v] = FOUR(sums[4 * p + v], *(const nnd_vu_any *)(quads + p * to_pixel + v * to_vector), w); \
          }                                                                                                            \
          weights += 4 * NND_INT8_DEEP;                                                                                \
        }                                                                                                              \
      }                                                                                                                \
    if (j->end)                                                                                                        \
      nnd_int8_deep_end(j, pixels, sums);                                                                              \
    else                                                                                                               \
      nnd_int8_deep_sums(pixels, sums, j->sums);                                                                       \
  }                                                                                                                    \
  NND_INLINE TARGET void nnd_int8_deep_##how(const struct nnd_int8_deep_job *job, int pixels) {                        \
    if (job->is_joined)                                                                                                \
      nnd_int8_deep_of_##how(job, pixels, 1);                                                                          \
    else                                                                                                               \
      nnd_int8_deep_of_##how(job, pixels, 0);                                                                          \
  }                                                                                                                    \
  static TARGET void nnd_int8_deep_all_##how(const struct nnd_int8_deep_job *given, nnd_size pixels) {                 \
    struct nnd_int8_deep_job job = *given;                                                                             \
    const nnd_size to_pixel = job.is_joined ? (nnd_size)sizeof(nnd_vu) : job.to_pixel;                                 \
    for (; pixels >= NND_INT8_PIXELS; pixels -= NND_INT8_PIXELS) {                                                     \
      nnd_int8_deep_##how(&job, NND_INT8_PIXELS);                                                                      \
      job.quads += NND_INT8_PIXELS * to_pixel, job.out += NND_INT8_PIXELS * job.out_pixel;                             \
    }                                                                                                                  \
    switch (pixels) { NND_DEEP_CASES(how) }                                                                            \
  }

#if NND_INT8_PIXELS == 4
#define NND_DEEP_CASES(how)                                                                                            \
  case 1: nnd_int8_deep_##how(&job, 1); return;                                                                        \
  case 2: nnd_int8_deep_##how(&job, 2); return;                                                                        \
  case 3: nnd_int8_deep_##how(&job, 3);
#else
#define NND_DEEP_CASES(how)                                                                                            \
  case 1: nnd_int8_deep_##how(&job, 1); return;
#endif

#if !defined(__aarch64__)
#define NND_DEEP_PAIRS(sums, x, w)                                                                                     \
  ((sums) + NND_PAIRS(nnd_int8_even(w, 1), nnd_int8_even(x, 0)) + NND_PAIRS(nnd_int8_odd(w, 1), nnd_int8_odd(x, 0)))
NND_DEEP_KERNEL(pairs, , NND_DEEP_PAIRS)
#define NND_DEEP_USUAL nnd_int8_deep_all_pairs
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
#define NND_DEEP_USUAL nnd_int8_deep_all_plain
#endif

#ifdef NND_FAST_FOUR
NND_DEEP_KERNEL(fast, NND_FAST_TARGET, NND_FAST_FOUR)
#define NND_DEEP_FAST nnd_int8_deep_all_fast
#else
#define NND_DEEP_FAST NND_DEEP_USUAL
#endif

nnd_int8_deep_kernel nnd_int8_deep_kernel_here(int plain) {
  return nnd_int8_is_quick(plain) ? NND_DEEP_FAST : NND_DEEP_USUAL;
}
