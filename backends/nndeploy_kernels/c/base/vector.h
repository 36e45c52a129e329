/* SPDX-License-Identifier: Apache-2.0
 *
 * One vector of floats for AVX-512 (16 lanes), AVX2 (8), SSE, NEON and WebAssembly (4), and what the kernels ask of it.
 *
 * Everything is a compiler vector type: one source. The number of lanes follows from the instruction set that the
 * compiler was told to use, and with it the channel block of the inner layout (NCHWc, c = NND_LANES).
 * With NND_BF16 the inner layout and the weights of products are bfloat16 (AVX512_BF16), sums and the rest stay floats.
 * Law: a `vf` in memory is aligned to its own size; where memory may not be, nnd_load_any and nnd_store_any are used.
 */
#ifndef NND_VECTOR_H
#define NND_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define NND_LANES 16
#define NND_PANEL 2         /* vectors of output channels in one panel of weights */
#define NND_ACCUMULATORS 28 /* vectors of sums that stay in registers: 14 pixels x 2 */
#elif defined(__AVX2__)
#define NND_LANES 8
#define NND_PANEL 2
#define NND_ACCUMULATORS 12                    /* 6 pixels x 2, of 16 registers */
#elif defined(__x86_64__) || defined(__wasm__) /* whose engines have those of x86-64 */
#define NND_LANES 4
#define NND_PANEL 2
#define NND_ACCUMULATORS 12 /* 6 pixels x 2, of 16 registers */
#else
#define NND_LANES 4
#define NND_PANEL 4
#define NND_ACCUMULATORS 20 /* 5 pixels x 4, of 32 registers: 6 x 4 spills */
#endif

typedef float vf __attribute__((vector_size(4 * NND_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * NND_LANES)));
typedef float vf_any __attribute__((vector_size(4 * NND_LANES), aligned(4)));
/* As many lanes of 8 bytes: in two registers. They lie where a `vf` may lie. */
typedef int64_t vl __attribute__((vector_size(8 * NND_LANES), aligned(4 * NND_LANES)));
typedef int64_t vl_any __attribute__((vector_size(8 * NND_LANES), aligned(8)));
typedef double vd __attribute__((vector_size(8 * NND_LANES), aligned(4 * NND_LANES)));
typedef double vd_any __attribute__((vector_size(8 * NND_LANES), aligned(8)));
typedef int64_t nnd_size; /* where addresses have 32 bits too: sums of checked sizes stay right */

#define NND_INLINE static inline __attribute__((always_inline))
#define NND_NOINLINE static __attribute__((noinline))
#define NND_UNROLL _Pragma("GCC unroll 256")
/* The compiler does not look through a vector that is in a register. */
#if defined(__x86_64__)
#define NND_OPAQUE(x) __asm__("" : "+v"(x))
#else
#define NND_OPAQUE(x)
#endif
/* The compiler takes a pointer for a number that it cannot split. Where an address is the sum of two registers, cores of
 * Intel take an instruction that loads and multiplies apart: 16 x 16 channels of 3 x 3 take 0.92 of the time without. */
#define NND_ONE_REGISTER(pointer) __asm__("" : "+r"(pointer))
/* What is computed up to here stays before what follows: engines of WebAssembly keep the order, and with it what waits
 * in registers. */
#if defined(__wasm__)
#define NND_IN_TURN(x) __asm__ volatile("" : "+r"(x))
#else
#define NND_IN_TURN(x)
#endif
#define NND_NO_UNROLL _Pragma("GCC unroll 1")
#define NND_LINE_BYTES 64 /* of a cache */

NND_INLINE vf nnd_splat(float value) { return value - (vf){0}; }
NND_INLINE vd nnd_splat_double(double value) { return value - (vd){0}; }
NND_INLINE vf nnd_load(const float *from) { return *(const vf *)from; }
NND_INLINE void nnd_store(float *to, vf value) { *(vf *)to = value; }
NND_INLINE vf nnd_load_any(const float *from) { return *(const vf_any *)from; }
NND_INLINE void nnd_store_any(float *to, vf value) { *(vf_any *)to = value; }

/* nnd_elem: an element of the inner layout. nnd_weight: a weight of a product, NND_GROUP input channels side by side.
 * nnd_stream stores past the caches: for outputs that nobody reads before they would be evicted. */
#ifdef NND_BF16
#define NND_GROUP 2
#define NND_DEPTH 32 /* of a block of AMX */
typedef uint16_t nnd_elem;
typedef uint16_t nnd_weight;
typedef uint16_t nnd_elems __attribute__((vector_size(2 * NND_LANES)));
typedef uint32_t nnd_words __attribute__((vector_size(4 * NND_LANES)));
typedef __bf16 nnd_pairs __attribute__((vector_size(4 * NND_LANES)));
typedef __bf16 nnd_halves __attribute__((vector_size(2 * NND_LANES)));
NND_INLINE vf nnd_read(const nnd_elem *from) {
  return (vf)(__builtin_convertvector(*(const nnd_elems *)from, nnd_words) << 16);
}
NND_INLINE void nnd_write(nnd_elem *to, vf value) {
  *(nnd_elems *)to = (nnd_elems) __builtin_convertvector(value, nnd_halves);
}
NND_INLINE void nnd_stream(nnd_elem *to, vf value) {
  __builtin_nontemporal_store((nnd_elems) __builtin_convertvector(value, nnd_halves), (nnd_elems *)to);
}
/* NND_LANES groups of two, at any element. */
NND_INLINE void nnd_write_group(nnd_elem *to, vf first, vf second) {
  typedef uint32_t words_any __attribute__((vector_size(4 * NND_LANES), aligned(2)));
  const nnd_elems low = (nnd_elems) __builtin_convertvector(first, nnd_halves);
  const nnd_elems high = (nnd_elems) __builtin_convertvector(second, nnd_halves);
  *(words_any *)to = __builtin_convertvector(high, nnd_words) << 16 | __builtin_convertvector(low, nnd_words);
}
NND_INLINE float nnd_to_float(nnd_elem value) {
  const uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
NND_INLINE nnd_elem nnd_to_elem(float value) { /* to the nearest, ties to even; a NaN stays one */
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return (nnd_elem)(bits >> 16 | 64);
  return (nnd_elem)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
#define NND_GROUP 1
#define NND_DEPTH 1
typedef float nnd_elem;
typedef float nnd_weight;
NND_INLINE vf nnd_read(const nnd_elem *from) { return nnd_load(from); }
NND_INLINE void nnd_write(nnd_elem *to, vf value) { nnd_store(to, value); }
NND_INLINE void nnd_stream(nnd_elem *to, vf value) { __builtin_nontemporal_store(value, (vf *)to); }
NND_INLINE void nnd_write_group(nnd_elem *to, vf only, vf same) {
  (void)same;
  nnd_store_any(to, only);
}
NND_INLINE float nnd_to_float(nnd_elem value) { return value; }
NND_INLINE nnd_elem nnd_to_elem(float value) { return value; }
#endif

/* `mask` holds 0 or -1 in each lane, as a comparison gives it. */
NND_INLINE vf nnd_select(vi mask, vf yes, vf no) {
  typedef float xf __attribute__((ext_vector_type(NND_LANES)));
  typedef int32_t xi __attribute__((ext_vector_type(NND_LANES)));
  return (vf)((xi)mask ? (xf)yes : (xf)no);
}

NND_INLINE vl nnd_select_whole(vl mask, vl yes, vl no) { return (mask & yes) | (~mask & no); }
NND_INLINE vd nnd_select_double(vl mask, vd yes, vd no) { return (vd)nnd_select_whole(mask, (vl)yes, (vl)no); }
NND_INLINE int nnd_any_lane(vi mask) {
  int found = 0;
  for (int lane = 0; lane < NND_LANES; lane++) found |= mask[lane];
  return found != 0;
}

/* A NaN in `x` stays a NaN (one instruction on x86-64: it returns its second operand). */
NND_INLINE vf nnd_at_least(vf low, vf x) { return nnd_select(low > x, low, x); }
NND_INLINE vf nnd_at_most(vf high, vf x) { return nnd_select(high < x, high, x); }

/* Lanes i, i + 2, i + 4 ... of two vectors side by side. */
#if NND_LANES == 16
#define NND_EVERY_SECOND(a, b, i)                                                                                      \
  __builtin_shufflevector(a, b, i, i + 2, i + 4, i + 6, i + 8, i + 10, i + 12, i + 14, i + 16, i + 18, i + 20, i + 22, \
                          i + 24, i + 26, i + 28, i + 30)
#elif NND_LANES == 8
#define NND_EVERY_SECOND(a, b, i) __builtin_shufflevector(a, b, i, i + 2, i + 4, i + 6, i + 8, i + 10, i + 12, i + 14)
#else
#define NND_EVERY_SECOND(a, b, i) __builtin_shufflevector(a, b, i, i + 2, i + 4, i + 6)
#endif

NND_INLINE nnd_size nnd_min(nnd_size a, nnd_size b) { return a < b ? a : b; }
NND_INLINE nnd_size nnd_max(nnd_size a, nnd_size b) { return a > b ? a : b; }
NND_INLINE nnd_size nnd_floor_div(nnd_size a, nnd_size b) { return a / b - (a % b < 0); }
NND_INLINE nnd_size nnd_ceil_div(nnd_size a, nnd_size b) { return (a + b - 1) / b; }
NND_INLINE nnd_size nnd_blocks(nnd_size channels) { return nnd_ceil_div(channels, NND_LANES); }
/* Channels of a panel's weights, the last ones of zeros: whole groups and blocks of NND_DEPTH. */
NND_INLINE nnd_size nnd_grouped_channels(nnd_size channels) { return nnd_ceil_div(channels, NND_DEPTH) * NND_DEPTH; }

/* Lines to fetch while a kernel works: `lines` for each of its channel blocks, `plane` bytes from block to block; where
 * `channel` is not 0, `lines` for each of its channels, so many bytes from channel to channel. */
struct nnd_prefetch {
  const char *from;
  nnd_size plane, channel;
  int lines;
};

static const struct nnd_prefetch nnd_no_prefetch = {0, 0, 0, 0};

#endif
