/* SPDX-License-Identifier: Apache-2.0
 *
 * One vector of floats for AVX-512 (16 lanes), AVX2 (8) and NEON (4), and what the kernels ask of it.
 *
 * Everything is a compiler vector type: one source, no intrinsics. The number of lanes follows from the instruction
 * set that the compiler was told to use, and with it the channel block of the inner layout (NCHWc, c = NND_LANES).
 * Law: a `vf` in memory is aligned to its own size; where memory may not be, nnd_load_any and nnd_store_any are used.
 */
#ifndef NND_VECTOR_H
#define NND_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define NND_LANES 16
#define NND_PANEL 2        /* vectors of output channels in one panel of weights */
#define NND_ACCUMULATORS 28 /* vectors of sums that stay in registers: 14 pixels x 2 */
#elif defined(__AVX2__)
#define NND_LANES 8
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
typedef ptrdiff_t nnd_size;

#define NND_INLINE static inline __attribute__((always_inline))
#define NND_UNROLL _Pragma("GCC unroll 256")
#define NND_NO_UNROLL _Pragma("GCC unroll 1")
#define NND_LINE_FLOATS 16 /* a cache line of 64 bytes */

NND_INLINE vf nnd_splat(float value) { return value - (vf){0}; }
NND_INLINE vf nnd_load(const float *from) { return *(const vf *)from; }
NND_INLINE void nnd_store(float *to, vf value) { *(vf *)to = value; }
NND_INLINE vf nnd_load_any(const float *from) { return *(const vf_any *)from; }
NND_INLINE void nnd_store_any(float *to, vf value) { *(vf_any *)to = value; }

/* Past the caches: for outputs that nobody reads before they would be evicted. */
NND_INLINE void nnd_stream(float *to, vf value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, (vf *)to);
#else
  nnd_store(to, value);
#endif
}

/* `mask` holds 0 or -1 in each lane, as a comparison gives it. */
NND_INLINE vf nnd_select(vi mask, vf yes, vf no) {
#if defined(__clang__)
  typedef float xf __attribute__((ext_vector_type(NND_LANES)));
  typedef int32_t xi __attribute__((ext_vector_type(NND_LANES)));
  return (vf)((xi)mask ? (xf)yes : (xf)no);
#else
  return (vf)((mask & (vi)yes) | (~mask & (vi)no));
#endif
}

/* A NaN in `x` stays a NaN (one instruction on x86-64: it returns its second operand). */
NND_INLINE vf nnd_at_least(vf low, vf x) { return nnd_select(low > x, low, x); }
NND_INLINE vf nnd_at_most(vf high, vf x) { return nnd_select(high < x, high, x); }

NND_INLINE nnd_size nnd_min(nnd_size a, nnd_size b) { return a < b ? a : b; }
NND_INLINE nnd_size nnd_max(nnd_size a, nnd_size b) { return a > b ? a : b; }
NND_INLINE nnd_size nnd_ceil_div(nnd_size a, nnd_size b) { return (a + b - 1) / b; }
NND_INLINE nnd_size nnd_blocks(nnd_size channels) { return nnd_ceil_div(channels, NND_LANES); }

/* Lines to fetch while a kernel works: `lines` for each of its channel blocks, `plane` floats from block to block. */
struct nnd_prefetch {
  const float *from;
  nnd_size plane;
  int lines;
};

static const struct nnd_prefetch nnd_no_prefetch = {0, 0, 0};

#endif
