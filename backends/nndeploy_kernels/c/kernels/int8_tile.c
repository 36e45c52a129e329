/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8_tile.h"

#include "kernels/begin.h"
#include "kernels/int8_bytes.h"
#include "kernels/int8_ways.h"
#include "kernels/wanted.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define NND_INT8_AHEAD 1536 /* bytes of weights that are fetched before one row reads them */

#if NND_INT8_ROWS == 12
#define NND_EACH_INT8_ROW(X, ...)                                                                                      \
  X(1, __VA_ARGS__)                                                                                                    \
  X(2, __VA_ARGS__)                                                                                                    \
  X(3, __VA_ARGS__)                                                                                                    \
  X(4, __VA_ARGS__)                                                                                                    \
  X(5, __VA_ARGS__)                                                                                                    \
  X(6, __VA_ARGS__)                                                                                                    \
  X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#elif NND_INT8_ROWS == 6
#define NND_EACH_INT8_ROW(X, ...)                                                                                      \
  X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#else
#define NND_EACH_INT8_ROW(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#endif

/* The best of what was offered; null: none. Whether some of it multiplies four bytes at once. */
static const struct nnd_int8_kernels *nnd_int8_best;
static int nnd_int8_has_four;

/* Takes kernels that the processor has. */
NND_INLINE void nnd_int8_offer(int has, const struct nnd_int8_kernels *kernels) {
  if (!has || !nnd_is_wanted(kernels->name)) return;
  nnd_int8_best = kernels;
  if (kernels->depth == NND_INT8_DEPTH) nnd_int8_has_four = 1;
}

/* Four bytes of a row in every lane. */
NND_INLINE nnd_vu nnd_int8_four(const uint8_t *from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word - (nnd_vu){0};
}

NND_INLINE nnd_vu nnd_int8_weights(const int8_t *from) { return *(const nnd_vu_any *)from; }

/* `depth` bytes of rows from `k` on, with zeros behind the last. */
NND_NOINLINE void nnd_int8_copy_last(int rows, int depth, const void *const *from, nnd_size k, nnd_size end,
                                     uint8_t *to) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < depth; i++) to[r * depth + i] = k + i < end ? ((const uint8_t *)from[r])[k + i] : 0;
}

NND_NOINLINE void nnd_int8_in_two(const struct nnd_int8_kernels *kernels, int rows, int vectors,
                                  const struct nnd_int8_job *job) {
  const int first = (rows + 1) / 2;
  struct nnd_int8_job rest = *job;
  rest.rows += first, rest.sums += first * rest.sums_row;
  struct nnd_int8_ended ended;
  if (job->end) {
    ended = *job->ended, rest.ended = &ended;
    ended.out = (char *)ended.out + first * ended.out_row;
  }
  kernels->of[vectors][first](job);
  kernels->of[vectors][rows - first](&rest);
}

/* `flip`: rows get the other sign. DOT(sums, row, weights) adds products of four bytes in each lane. */
#define NND_INT8_STEP_OF_FOUR(how, flip, DOT)                                                                          \
  NND_INLINE NND_TARGET void nnd_int8_step_##how(int rows, int vectors, int is_signed, const uint8_t *const *at,       \
                                                 nnd_size k, const int8_t *weights, nnd_vu *sums) {                    \
    nnd_vu w[NND_PANEL];                                                                                               \
    NND_UNROLL                                                                                                         \
    for (int v = 0; v < vectors; v++) w[v] = nnd_int8_weights(weights + v * NND_LANES * NND_INT8_DEPTH);               \
    NND_UNROLL                                                                                                         \
    for (int r = 0; r < rows; r++) {                                                                                   \
      nnd_vu x = nnd_int8_four(at[r] + k);                                                                             \
      if (flip) {                                                                                                      \
        NND_OPAQUE(x); /* or it is turned before it is spread, on the way of the products */                           \
        x ^= 0x80808080u;                                                                                              \
      }                                                                                                                \
      NND_UNROLL                                                                                                       \
      for (int v = 0; v < vectors; v++) sums[r * vectors + v] = DOT(sums[r * vectors + v], x, w[v]);                   \
    }                                                                                                                  \
  }

#if !defined(__aarch64__)

#define NND_HOW pairs
#define NND_IN_TURNS 1
#define NND_IN_DEPTH NND_INT8_DEPTH
#define NND_IN_IS_EVEN 0
#define NND_TARGET
#define NND_IN_FLIPS(is_signed) 0
#define NND_IN_ROWS (NND_LANES == 16 ? 6 : 4)
NND_INLINE void nnd_int8_step_pairs(int rows, int vectors, int is_signed, const uint8_t *const *at, nnd_size k,
                                    const int8_t *weights, nnd_vu *sums) {
  nnd_vs even[NND_PANEL], odd[NND_PANEL];
  NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const nnd_vu w = nnd_int8_weights(weights + v * NND_LANES * NND_INT8_DEPTH);
    even[v] = nnd_int8_even(w, 1), odd[v] = nnd_int8_odd(w, 1);
  }
  NND_UNROLL
  for (int r = 0; r < rows; r++) {
    const nnd_vu bytes = nnd_int8_four(at[r] + k);
    const nnd_vs first = nnd_int8_even(bytes, is_signed), second = nnd_int8_odd(bytes, is_signed);
    NND_UNROLL
    for (int v = 0; v < vectors; v++) sums[r * vectors + v] += NND_PAIRS(even[v], first) + NND_PAIRS(odd[v], second);
  }
}
#include "kernels/int8_sums.h"

#if NND_LANES >= 8
/* uint8 by int8. */
#define NND_HOW vnni
#define NND_IN_TURNS 1
#define NND_IN_DEPTH NND_INT8_DEPTH
#define NND_IN_IS_EVEN 1
#define NND_TARGET NND_FAST_TARGET
#define NND_IN_FLIPS(is_signed) (is_signed)
#define NND_IN_ROWS NND_INT8_ROWS
NND_INT8_STEP_OF_FOUR(vnni, is_signed, NND_FAST_FOUR)
#include "kernels/int8_sums.h"

#if NND_LANES == 16
#include "kernels/int8_amx.h"

static int nnd_int8_wants_amx;
#endif

void nnd_begin_int8_tiles(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const int is_told = __get_cpuid_count(7, NND_LANES == 16 ? 0 : 1, &a, &b, &c, &d);
  const int is_fast = is_told && (NND_LANES == 16 ? c >> 11 & 1 : a >> 4 & 1); /* AVX512_VNNI, AVX_VNNI */
  nnd_int8_offer(is_fast, &nnd_int8_kernels_vnni);
#if NND_LANES == 16
  nnd_int8_wants_amx = nnd_int8_best && nnd_amx_is_there(NND_AMX_INT8);
#endif
}
#else
void nnd_begin_int8_tiles(void) {}
#endif
#define NND_INT8_LEAST nnd_int8_kernels_pairs

#else

/* One byte after the other. */
#define NND_HOW plain
#define NND_IN_TURNS 0
#define NND_IN_DEPTH NND_INT8_DEPTH
#define NND_IN_IS_EVEN 0
#define NND_TARGET
#define NND_IN_FLIPS(is_signed) 0
#define NND_IN_ROWS NND_INT8_ROWS
NND_INLINE void nnd_int8_step_plain(int rows, int vectors, int is_signed, const uint8_t *const *at, nnd_size k,
                                    const int8_t *weights, nnd_vu *sums) {
  NND_UNROLL
  for (int i = 0; i < NND_INT8_DEPTH; i++) NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const vi w = (vi)(nnd_int8_weights(weights + v * NND_LANES * NND_INT8_DEPTH) << (24 - 8 * i)) >> 24;
    NND_UNROLL
    for (int r = 0; r < rows; r++) {
      const int32_t x = is_signed ? (int8_t)at[r][k + i] : at[r][k + i];
      sums[r * vectors + v] += (nnd_vu)(w * x);
    }
  }
}
#include "kernels/int8_sums.h"

/* int8 by int8. */
#define NND_HOW dotprod
#define NND_IN_TURNS 0
#define NND_IN_DEPTH NND_INT8_DEPTH
#define NND_IN_IS_EVEN 1
#define NND_TARGET NND_FAST_TARGET
#define NND_IN_FLIPS(is_signed) (!(is_signed))
#define NND_IN_ROWS NND_INT8_ROWS
NND_INT8_STEP_OF_FOUR(dotprod, !is_signed, NND_FAST_FOUR)
#include "kernels/int8_sums.h"

/* Two rows by two columns at once, eight bytes each. */
#define NND_HOW i8mm
#define NND_IN_TURNS 0
#define NND_IN_DEPTH (2 * NND_INT8_DEPTH)
#define NND_IN_IS_EVEN 1
#define NND_TARGET NND_MATRIX_TARGET
#define NND_IN_FLIPS(is_signed) 0
#define NND_IN_ROWS NND_INT8_ROWS
NND_INLINE uint8x8_t nnd_int8_four_and_zeros(const uint8_t *from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return vcreate_u8(word);
}

NND_INLINE void nnd_int8_turn_i8mm(int rows, int vectors, nnd_vu *sums) {
  NND_UNROLL
  for (int r = 0; r < rows; r += 2) NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    nnd_vu *first = sums + r * vectors + v, *second = first + vectors;
    const nnd_vu low = __builtin_shufflevector(*first, *second, 0, 1, 4, 5);
    *second = __builtin_shufflevector(*first, *second, 2, 3, 6, 7), *first = low;
  }
}

NND_INLINE NND_TARGET void nnd_int8_step_of_i8mm(int rows, int vectors, int is_signed, int is_half,
                                                 const uint8_t *const *at, nnd_size k, const int8_t *weights,
                                                 nnd_vu *sums) {
  nnd_vu x[(NND_INT8_ROWS + 1) / 2];
  NND_UNROLL
  for (int r = 0; r < rows; r += 2) {
    const uint8_t *first = at[r] + k, *second = at[r + 1 < rows ? r + 1 : r] + k;
    x[r / 2] = (nnd_vu)(is_half ? vcombine_u8(nnd_int8_four_and_zeros(first), nnd_int8_four_and_zeros(second))
                                : vcombine_u8(vld1_u8(first), vld1_u8(second)));
  }
  NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const uint32x4_t zeros = vdupq_n_u32(0),
                     four = (uint32x4_t)nnd_int8_weights(weights + v * NND_LANES * NND_INT8_DEPTH);
    NND_UNROLL
    for (int i = 0; i < 2; i++) {
      const nnd_vu w = !is_half ? nnd_int8_weights(weights + (2 * v + i) * NND_LANES * NND_INT8_DEPTH)
                                : (nnd_vu)(i ? vzip2q_u32(four, zeros) : vzip1q_u32(four, zeros));
      NND_UNROLL
      for (int r = 0; r < rows; r += 2) {
        nnd_vu *sum = sums + (r + i) * vectors + v;
        *sum = is_signed ? NND_MATRIX_SIGNED(*sum, x[r / 2], w) : NND_MATRIX_UNSIGNED(*sum, x[r / 2], w);
      }
    }
  }
}
NND_INLINE NND_TARGET void nnd_int8_step_i8mm(int rows, int vectors, int is_signed, const uint8_t *const *at,
                                              nnd_size k, const int8_t *weights, nnd_vu *sums) {
  nnd_int8_step_of_i8mm(rows, vectors, is_signed, 0, at, k, weights, sums);
}
NND_INLINE NND_TARGET void nnd_int8_half_i8mm(int rows, int vectors, int is_signed, const uint8_t *const *at,
                                              nnd_size k, const int8_t *weights, nnd_vu *sums) {
  nnd_int8_step_of_i8mm(rows, vectors, is_signed, 1, at, k, weights, sums);
}
#include "kernels/int8_sums.h"

#define NND_HAS_DOTPROD (1ul << 20) /* HWCAP_ASIMDDP */
#define NND_HAS_I8MM (1ul << 13)    /* HWCAP2_I8MM */

void nnd_begin_int8_tiles(void) {
  nnd_int8_offer(getauxval(AT_HWCAP) & NND_HAS_DOTPROD, &nnd_int8_kernels_dotprod);
  nnd_int8_offer(getauxval(AT_HWCAP2) & NND_HAS_I8MM, &nnd_int8_kernels_i8mm);
}
#define NND_INT8_LEAST nnd_int8_kernels_plain

#endif

int nnd_int8_is_quick(int plain) { return nnd_int8_has_four && !plain; }

const struct nnd_int8_kernels *nnd_int8_kernels_here(int plain) {
  return nnd_int8_best && !plain ? nnd_int8_best : &NND_INT8_LEAST;
}

#if NND_LANES == 16
nnd_int8_multiplier nnd_int8_multiplier_here(int plain, nnd_size rows, nnd_size k, nnd_size columns) {
  if (plain || rows < NND_AMX_LEAST_ROWS || k < NND_AMX_LEAST_K || rows * columns < NND_AMX_LEAST_PRODUCTS / k)
    return NULL;
  return nnd_int8_wants_amx && nnd_amx_is_permitted() ? nnd_int8_amx : NULL;
}

double nnd_int8_multiply_tiles(nnd_size times) {
  if (!nnd_int8_multiplier_here(0, NND_INT8_STRIP, NND_INT8_BLOCK, NND_AMX_LEAST_PRODUCTS)) return 0.0;
  if (times) nnd_amx_multiply_registers(times);
  return 4 * 2.0 * NND_INT8_STRIP * NND_LANES * NND_INT8_BLOCK;
}

void nnd_int8_pack_strip(const void *const *rows, nnd_size tap_rows, nnd_size taps, nnd_size k, nnd_size count,
                         char *to) {
  typedef char bytes __attribute__((vector_size(NND_INT8_BLOCK)));
  const nnd_size each = nnd_int8_groups(k) * NND_INT8_DEPTH;
  for (nnd_size tap = 0; tap < taps; tap++, rows += tap_rows)
    for (nnd_size at = 0, some; at < k; at += some) {
      const nnd_size place = tap * each + at, within = place % NND_INT8_BLOCK;
      some = nnd_min(NND_INT8_BLOCK - within, k - at);
      /* Up to the end of the block, with zeros behind what was read, which the next ones write over. */
      const uint64_t read = ~(uint64_t)0 >> (NND_INT8_BLOCK - some), written = ~(uint64_t)0 >> within;
      char *line = to + (place - within) * NND_INT8_STRIP + within;
      for (nnd_size r = 0; r < count; r++, line += NND_INT8_BLOCK)
        __builtin_ia32_storedquqi512_mask(
            (bytes *)line,
            __builtin_ia32_loaddquqi512_mask((const bytes *)((const char *)rows[r] + at), (bytes){0}, read), written);
    }
}
#endif

/* Packs the groups that are whole of bytes that lie side by side; returns how many bytes of a column these are. */
static nnd_size nnd_int8_pack_words(const uint8_t *from, uint8_t flip, nnd_size k, nnd_size columns,
                                    nnd_size column_step, nnd_size wide, int8_t *to, int32_t *column_sums) {
  const nnd_size whole = k / NND_INT8_DEPTH * NND_INT8_DEPTH;
  const uint32_t flips = flip * 0x01010101u;
  for (nnd_size c = 0; c < columns; c++) {
    const uint8_t *at = from + c * column_step;
    int32_t sum = 0;
    for (nnd_size i = 0; i < whole; i++) sum += (int8_t)(at[i] ^ flip);
    column_sums[c] += sum;
  }
  for (nnd_size group = 0; group < whole; group += NND_INT8_DEPTH, to += wide * NND_INT8_DEPTH) {
    for (nnd_size c = 0; c < columns; c++) {
      uint32_t four;
      memcpy(&four, from + c * column_step + group, sizeof four);
      four ^= flips;
      memcpy(to + c * NND_INT8_DEPTH, &four, sizeof four);
    }
    memset(to + columns * NND_INT8_DEPTH, 0, (size_t)((wide - columns) * NND_INT8_DEPTH));
  }
  return whole;
}

void nnd_int8_pack(const void *from, int is_unsigned, nnd_size k, nnd_size columns, nnd_size k_step,
                   nnd_size column_step, int8_t *to, int32_t *column_sums) {
  const uint8_t *bytes = from, flip = is_unsigned ? 0x80 : 0;
  const nnd_size wide = nnd_blocks(columns) * NND_LANES;
  const nnd_size done =
      k_step == 1 ? nnd_int8_pack_words(bytes, flip, k, columns, column_step, wide, to, column_sums) : 0;
  to += done * wide;
  for (nnd_size group = done; group < k; group += NND_INT8_DEPTH, to += wide * NND_INT8_DEPTH) {
    const nnd_size count = nnd_min(NND_INT8_DEPTH, k - group);
    for (nnd_size c = 0; c < columns; c++) {
      const uint8_t *at = bytes + group * k_step + c * column_step;
      uint8_t four[NND_INT8_DEPTH] = {0};
      for (nnd_size i = 0; i < count; i++) {
        four[i] = at[i * k_step] ^ flip;
        column_sums[c] += (int8_t)four[i];
      }
      memcpy(to + c * NND_INT8_DEPTH, four, sizeof four);
    }
    memset(to + columns * NND_INT8_DEPTH, 0, (size_t)((wide - columns) * NND_INT8_DEPTH));
  }
}

void nnd_int8_settle(const struct nnd_int8_kernels *kernels, nnd_size k, nnd_size columns, int8_t *panel) {
  if (kernels->depth == NND_INT8_DEPTH) return;
  const nnd_size wide = nnd_blocks(columns) * NND_LANES;
  for (nnd_size group = 0; group + 2 <= nnd_int8_groups(k); group += 2, panel += 2 * wide * NND_INT8_DEPTH) {
    uint32_t words[2 * NND_INT8_COLUMNS];
    memcpy(words, panel, (size_t)(2 * wide * NND_INT8_DEPTH));
    for (nnd_size c = 0; c < wide; c++) {
      const uint32_t pair[] = {words[c], words[wide + c]};
      memcpy(panel + c * (nnd_size)sizeof pair, pair, sizeof pair);
    }
  }
}
