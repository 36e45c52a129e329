/* SPDX-License-Identifier: Apache-2.0
 *
 * Four vectors of floats -> the nearest bytes within a quick end's bounds, ties to even, as instructions that saturate
 * make them. Bytes lie as those of interleaved halves of 16 bytes (kernels/int8_depthwise.h): byte 16 * i + 4 * v + j
 * is that of lane 4 * i + j of vector v.
 */
#ifndef NND_INT8_BYTES_H
#define NND_INT8_BYTES_H

#include "kernels/int8_end.h"
#include "kernels/int8_ways.h"

typedef uint8_t nnd_bytes __attribute__((vector_size(4 * NND_LANES)));
typedef uint8_t nnd_bytes_any __attribute__((vector_size(4 * NND_LANES), aligned(1)));

/* Words of four bytes, of vector v those at 4 * i + v, by vectors. */
#if NND_LANES == 16
#define NND_IN_ORDER(x) __builtin_shufflevector(x, x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
#elif NND_LANES == 8
#define NND_IN_ORDER(x) __builtin_shufflevector(x, x, 0, 4, 1, 5, 2, 6, 3, 7)
#else
#define NND_IN_ORDER(x) (x)
#endif

/* The first `count` bytes of a vector; without a call, for which vectors would leave their registers. */
NND_INLINE void nnd_store_few(void *to, const void *from, nnd_size count) {
  char *at = to;
  const char *kept = from;
  if (count & 64) memcpy(at, kept, 64), at += 64, kept += 64;
  if (count & 32) memcpy(at, kept, 32), at += 32, kept += 32;
  if (count & 16) memcpy(at, kept, 16), at += 16, kept += 16;
  if (count & 8) memcpy(at, kept, 8), at += 8, kept += 8;
  if (count & 4) memcpy(at, kept, 4), at += 4, kept += 4;
  if (count & 2) memcpy(at, kept, 2), at += 2, kept += 2;
  if (count & 1) *at = *kept;
}

#if !defined(__aarch64__)
#if NND_LANES == 16
#define NND_ROUNDED(x) __builtin_ia32_cvtps2dq512_mask(x, (vi){0}, (uint16_t)-1, 4) /* as the processor is set */
#define NND_PACKED_HALVES(a, b) __builtin_ia32_packssdw512(a, b)
#define NND_PACKED_SIGNED(a, b) (nnd_bytes) __builtin_ia32_packsswb512(a, b)
#define NND_PACKED_UNSIGNED(a, b) (nnd_bytes) __builtin_ia32_packuswb512(a, b)
#elif NND_LANES == 8
#define NND_ROUNDED(x) __builtin_ia32_cvtps2dq256(x)
#define NND_PACKED_HALVES(a, b) __builtin_ia32_packssdw256(a, b)
#define NND_PACKED_SIGNED(a, b) (nnd_bytes) __builtin_ia32_packsswb256(a, b)
#define NND_PACKED_UNSIGNED(a, b) (nnd_bytes) __builtin_ia32_packuswb256(a, b)
#elif defined(__wasm__)
#define NND_ROUNDED(x) __builtin_wasm_trunc_saturate_s_i32x4_f32x4(__builtin_elementwise_roundeven(x))
#define NND_PACKED_HALVES(a, b) __builtin_wasm_narrow_s_i16x8_i32x4(a, b)
#define NND_PACKED_SIGNED(a, b) (nnd_bytes) __builtin_wasm_narrow_s_i8x16_i16x8(a, b)
#define NND_PACKED_UNSIGNED(a, b) (nnd_bytes) __builtin_wasm_narrow_u_i8x16_i16x8(a, b)
#else
#define NND_ROUNDED(x) __builtin_ia32_cvtps2dq(x)
#define NND_PACKED_HALVES(a, b) __builtin_ia32_packssdw128(a, b)
#define NND_PACKED_SIGNED(a, b) (nnd_bytes) __builtin_ia32_packsswb128(a, b)
#define NND_PACKED_UNSIGNED(a, b) (nnd_bytes) __builtin_ia32_packuswb128(a, b)
#endif

/* The nearest whole numbers, which int32 holds. */
NND_INLINE vi nnd_int8_whole(vf x) { return (vi)NND_ROUNDED(x); }

/* 16 bits of two vectors whose numbers int32 holds. */
NND_INLINE nnd_vs nnd_int8_halves_of(const struct nnd_int8_end *e, vf a, vf b) {
  const nnd_vs halves = (nnd_vs)NND_PACKED_HALVES((vi)NND_ROUNDED(a), (vi)NND_ROUNDED(b));
  const nnd_vs low = (int16_t)e->least - (nnd_vs){0}, high = (int16_t)e->most - (nnd_vs){0};
  const nnd_vs moved = __builtin_elementwise_add_sat(halves, (int16_t)e->zero - (nnd_vs){0});
  return e->is_whole ? moved : __builtin_elementwise_min(__builtin_elementwise_max(moved, low), high);
}

NND_INLINE nnd_bytes nnd_int8_bytes_of(const struct nnd_int8_end *e, const vf *x) {
  const nnd_vs a = nnd_int8_halves_of(e, x[0], x[1]), b = nnd_int8_halves_of(e, x[2], x[3]);
  return e->element == NND_INT8 ? NND_PACKED_SIGNED(a, b) : NND_PACKED_UNSIGNED(a, b);
}
#else
NND_INLINE vi nnd_int8_whole(vf x) { return (vi)vcvtnq_s32_f32((float32x4_t)x); }

NND_INLINE nnd_bytes nnd_int8_bytes_of(const struct nnd_int8_end *e, const vf *x) {
  int16x4_t halves[4];
  for (int v = 0; v < 4; v++) halves[v] = vqmovn_s32(vcvtnq_s32_f32((float32x4_t)x[v]));
  const int16x8_t zero = vdupq_n_s16((int16_t)e->zero), low = vdupq_n_s16((int16_t)e->least);
  const int16x8_t high = vdupq_n_s16((int16_t)e->most);
  const int16x8_t a = vqaddq_s16(vcombine_s16(halves[0], halves[1]), zero);
  const int16x8_t b = vqaddq_s16(vcombine_s16(halves[2], halves[3]), zero);
  return (nnd_bytes)vcombine_s8(vmovn_s16(vminq_s16(vmaxq_s16(a, low), high)),
                                vmovn_s16(vminq_s16(vmaxq_s16(b, low), high)));
}
#endif

/* Factors and bias of the columns of `vectors`. */
NND_INLINE void nnd_int8_load_columns(const struct nnd_int8_ended *t, int vectors, vf *factors, vf *bias) {
  NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    factors[v] = t->factors ? nnd_load_any(t->factors + v * NND_LANES) : nnd_splat(1.0f);
    bias[v] = t->bias ? nnd_load_any(t->bias + v * NND_LANES) : nnd_splat(0.0f);
  }
}

/* Stores a vector as one, two or four rows. */
NND_INLINE void nnd_store_rows(nnd_vu bytes, int rows, nnd_size step, char *to) {
  typedef uint32_t half __attribute__((vector_size(2 * NND_LANES), aligned(1)));
  typedef uint32_t quarter __attribute__((vector_size(NND_LANES), aligned(1)));
#if NND_LANES == 16
#define NND_HALF(i) __builtin_shufflevector(bytes, bytes, i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7)
#define NND_QUARTER(i) __builtin_shufflevector(bytes, bytes, i, i + 1, i + 2, i + 3)
#elif NND_LANES == 8
#define NND_HALF(i) __builtin_shufflevector(bytes, bytes, i, i + 1, i + 2, i + 3)
#define NND_QUARTER(i) __builtin_shufflevector(bytes, bytes, i, i + 1)
#else
#define NND_HALF(i) __builtin_shufflevector(bytes, bytes, i, i + 1)
#define NND_QUARTER(i) __builtin_shufflevector(bytes, bytes, i)
#endif
  if (rows == 1) memcpy(to, &bytes, sizeof bytes);
  if (rows == 2) *(half *)to = NND_HALF(0), *(half *)(to + step) = NND_HALF(NND_LANES / 2);
  if (rows != 4) return;
  *(quarter *)to = NND_QUARTER(0), *(quarter *)(to + step) = NND_QUARTER(NND_LANES / 4);
  *(quarter *)(to + 2 * step) = NND_QUARTER(NND_LANES / 2);
  *(quarter *)(to + 3 * step) = NND_QUARTER(3 * NND_LANES / 4);
}

/* Stores four vectors of numbers as the bytes of `some` rows from `row` on, of `vectors` each. */
NND_INLINE void nnd_int8_store_rows(const struct nnd_int8_end *e, const struct nnd_int8_ended *t, const vf *x,
                                    int vectors, nnd_size row, int some) {
  const int rows = 4 / vectors;
  char *to = (char *)t->out + row * t->out_row;
  const nnd_vu bytes = (nnd_vu)nnd_int8_bytes_of(e, x), ordered = NND_IN_ORDER(bytes);
  if (some == rows && t->columns == vectors * NND_LANES) {
    nnd_store_rows(ordered, rows, t->out_row, to);
    return;
  }
#if NND_LANES == 16
  /* Each row as a part of the whole vector, which begins so much before it. */
  const uint64_t mask = ((uint64_t)1 << t->columns) - 1;
  const int width = vectors * NND_LANES;
  for (int i = 0; i < some; i++)
    __builtin_ia32_storedquqi512_mask((char __attribute__((vector_size(64))) *)(to + i * (t->out_row - width)),
                                      (char __attribute__((vector_size(64))))ordered, mask << i * width);
  return;
#endif
  nnd_vu kept = ordered;
  NND_NO_UNROLL
  for (int i = 0; i < some; i++)
    nnd_store_few(to + i * t->out_row, (const char *)&kept + i * vectors * NND_LANES, t->columns);
}

#endif
