/* SPDX-License-Identifier: Apache-2.0
 *
 * How four bytes are multiplied by four others in each lane and added up: NND_FAST_FOUR(sums, x, weights) in functions
 * of NND_FAST_TARGET, where the processor that runs has it, and what else a level has. On aarch64 x and weights are int8,
 * elsewhere x is uint8 and weights are int8.
 */
#ifndef NND_INT8_WAYS_H
#define NND_INT8_WAYS_H

#include "kernels/int8_tile.h"

#if !defined(__aarch64__)

/* Every second byte of the weights and of the rows, as 16 bits, and what is left: sums of two products at once. */
typedef int16_t nnd_vs __attribute__((vector_size(4 * NND_LANES)));
typedef uint16_t nnd_vus __attribute__((vector_size(4 * NND_LANES)));
#if NND_LANES == 16
#define NND_PAIRS(a, b) ((nnd_vu)__builtin_ia32_pmaddwd512(a, b))
#elif NND_LANES == 8
#define NND_PAIRS(a, b) ((nnd_vu)__builtin_ia32_pmaddwd256(a, b))
#elif defined(__wasm__)
#define NND_PAIRS(a, b) ((nnd_vu)__builtin_wasm_dot_s_i32x4_i16x8(a, b))
#else
#define NND_PAIRS(a, b) ((nnd_vu)__builtin_ia32_pmaddwd128(a, b))
#endif
NND_INLINE nnd_vs nnd_int8_even(nnd_vu bytes, int is_signed) {
  return is_signed ? (nnd_vs)((nnd_vus)bytes << 8) >> 8 : (nnd_vs)((nnd_vus)bytes & 255);
}
NND_INLINE nnd_vs nnd_int8_odd(nnd_vu bytes, int is_signed) {
  return is_signed ? (nnd_vs)bytes >> 8 : (nnd_vs)((nnd_vus)bytes >> 8);
}

#if NND_LANES >= 8
#if NND_LANES == 16
#define NND_FAST_TARGET __attribute__((target("avx512vnni")))
typedef uint8_t nnd_vub __attribute__((vector_size(64)));
typedef int8_t nnd_vsb __attribute__((vector_size(64)));
#define NND_FAST_FOUR(sums, x, w) ((nnd_vu)__builtin_ia32_vpdpbusd512((vi)(sums), (nnd_vub)(x), (nnd_vsb)(w)))
#else
#define NND_FAST_TARGET __attribute__((target("avxvnni")))
typedef uint8_t nnd_vub __attribute__((vector_size(32)));
typedef int8_t nnd_vsb __attribute__((vector_size(32)));
#define NND_FAST_FOUR(sums, x, w) ((nnd_vu)__builtin_ia32_vpdpbusd256((vi)(sums), (nnd_vub)(x), (nnd_vsb)(w)))
#endif
#endif

#else

#include <arm_neon.h>
#define NND_FAST_TARGET __attribute__((target("dotprod")))
#define NND_FAST_FOUR(sums, x, w) ((nnd_vu)vdotq_s32((int32x4_t)(sums), (int8x16_t)(x), (int8x16_t)(w)))
#define NND_MATRIX_TARGET __attribute__((target("i8mm")))
#define NND_MATRIX_SIGNED(sums, x, w) ((nnd_vu)vmmlaq_s32((int32x4_t)(sums), (int8x16_t)(x), (int8x16_t)(w)))
#define NND_MATRIX_UNSIGNED(sums, x, w) ((nnd_vu)vusmmlaq_s32((int32x4_t)(sums), (uint8x16_t)(x), (int8x16_t)(w)))

#endif

#endif
