/* SPDX-License-Identifier: Apache-2.0
 *
 * The elements of tensors, and vectors of them as the lanes that programs compute with: float32, int64 or float64.
 *
 * What a type cannot hold is defined, and the same on every level: whole numbers wrap; a float that int32 or int64
 * cannot hold, and a NaN, becomes its least number, of 8 bits what is left of that of int32, as ONNX Runtime and NumPy
 * have it on x86-64. Anything but zero is true, a NaN too. What is beyond float16 becomes infinite there.
 */
#ifndef NND_ELEMENTS_H
#define NND_ELEMENTS_H

#include "base/vector.h"

/* Of a bool, any byte but zero is true; the library writes zeros and ones. */
enum nnd_element {
  NND_FLOAT32,
  NND_INT32,
  NND_INT64,
  NND_BOOL,
  NND_UINT8,
  NND_INT8,
  NND_FLOAT16,
  NND_FLOAT64,
  NND_NUM_ELEMENTS
};
extern const nnd_size nnd_element_bytes[NND_NUM_ELEMENTS];

#if defined(__F16C__) || defined(__aarch64__)
typedef _Float16 nnd_halves_any __attribute__((vector_size(2 * NND_LANES), aligned(2)));
NND_INLINE vf nnd_floats_of_halves(const void *from) {
  return __builtin_convertvector(*(const nnd_halves_any *)from, vf);
}
NND_INLINE void nnd_halves_of_floats(vf x, void *to) {
  *(nnd_halves_any *)to = __builtin_convertvector(x, nnd_halves_any);
}
#else
typedef uint16_t nnd_halves_any __attribute__((vector_size(2 * NND_LANES), aligned(2)));
typedef uint32_t nnd_half_words __attribute__((vector_size(4 * NND_LANES)));
/* Bits of the exponent and of the mantissa in their places, times 2^112: exact, of denormal numbers too. */
NND_INLINE vf nnd_floats_of_halves(const void *from) {
  const nnd_half_words x = __builtin_convertvector(*(const nnd_halves_any *)from, nnd_half_words);
  const nnd_half_words size = (x & 0x7fff) << 13;
  const nnd_half_words finite = (nnd_half_words)((vf)size * 0x1p112f), beyond = size | 0x7f800000;
  const nnd_half_words is_beyond = (nnd_half_words)(size >= 0x7c00u << 13);
  return (vf)((is_beyond & beyond) | (~is_beyond & finite) | (x & 0x8000) << 16);
}
/* To the nearest, ties to even: denormal numbers by adding a number whose last digit is theirs. */
NND_INLINE void nnd_halves_of_floats(vf value, void *to) {
  const nnd_half_words bits = (nnd_half_words)value, size = bits & 0x7fffffff;
  const nnd_half_words rounded = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  const nnd_half_words tiny = (nnd_half_words)((vf)size + 0.5f) - 0x3f000000u;
  const nnd_half_words is_tiny = (nnd_half_words)(size < 0x38800000u);
  const nnd_half_words is_beyond = (nnd_half_words)(size >= 0x47800000u);
  const nnd_half_words is_nan = (nnd_half_words)(size > 0x7f800000u);
  const nnd_half_words finite = (is_tiny & tiny) | (~is_tiny & rounded);
  const nnd_half_words made = (is_beyond & (0x7c00u | (is_nan & 0x200u))) | (~is_beyond & finite);
  *(nnd_halves_any *)to = __builtin_convertvector(made | (bits >> 16 & 0x8000u), nnd_halves_any);
}
#endif

/* Where vectors lie, and by how many it goes on: 0 where all are the same. */
struct nnd_source {
  const void *at;
  nnd_size step;
};

/* Makes lanes of `count` elements; those behind the last are zeros. `to` has room for whole vectors. */
void nnd_floats_of(int element, const void *from, nnd_size count, vf *to);
void nnd_whole_of(int element, const void *from, nnd_size count, vl *to);
void nnd_doubles_of(int element, const void *from, nnd_size count, vd *to);

/* Makes `count` elements of lanes. */
void nnd_elements_of_floats(int element, struct nnd_source from, nnd_size count, void *to);
void nnd_elements_of_whole(int element, struct nnd_source from, nnd_size count, void *to);
void nnd_elements_of_doubles(int element, struct nnd_source from, nnd_size count, void *to);

#endif
