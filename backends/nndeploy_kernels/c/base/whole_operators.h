/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of expressions.py on lanes of int64, one function each: `nnd_whole_<operator>`.
 *
 * Numbers wrap. Every result is defined: a quotient by zero and what a division by zero leaves are zero; a shift by 64
 * bits or more, or by less than none, shifts all of them out.
 */
#ifndef NND_WHOLE_OPERATORS_H
#define NND_WHOLE_OPERATORS_H

#include "base/vector.h"

typedef uint64_t vul __attribute__((vector_size(8 * NND_LANES), aligned(4 * NND_LANES)));

NND_INLINE vl nnd_truth_of_whole(vl mask) { return mask & 1; }

NND_INLINE vl nnd_whole_neg(vl a) { return (vl)(-(vul)a); }
NND_INLINE vl nnd_whole_abs(vl a) { return nnd_select_whole(a < 0, nnd_whole_neg(a), a); }
NND_INLINE vl nnd_whole_sign(vl a) { return (a < 0) - (a > 0); }
NND_INLINE vl nnd_whole_relu(vl a) { return a & (a > 0); }
NND_INLINE vl nnd_whole_not(vl a) { return nnd_truth_of_whole(a == 0); }
NND_INLINE vl nnd_whole_invert(vl a) { return ~a; }

/* What is left of a number in a narrower type. */
NND_INLINE vl nnd_whole_int32(vl a) { return (vl)((vul)a << 32) >> 32; }
NND_INLINE vl nnd_whole_int8(vl a) { return (vl)((vul)a << 56) >> 56; }
NND_INLINE vl nnd_whole_uint8(vl a) { return a & 255; }

NND_INLINE vl nnd_whole_add(vl a, vl b) { return (vl)((vul)a + (vul)b); }
NND_INLINE vl nnd_whole_sub(vl a, vl b) { return (vl)((vul)a - (vul)b); }
NND_INLINE vl nnd_whole_mul(vl a, vl b) { return (vl)((vul)a * (vul)b); }
NND_INLINE vl nnd_whole_max(vl a, vl b) { return nnd_select_whole(a > b, a, b); }
NND_INLINE vl nnd_whole_min(vl a, vl b) { return nnd_select_whole(a < b, a, b); }
NND_INLINE vl nnd_whole_less(vl a, vl b) { return nnd_truth_of_whole(a < b); }
NND_INLINE vl nnd_whole_less_equal(vl a, vl b) { return nnd_truth_of_whole(a <= b); }
NND_INLINE vl nnd_whole_equal(vl a, vl b) { return nnd_truth_of_whole(a == b); }
NND_INLINE vl nnd_whole_and(vl a, vl b) { return nnd_truth_of_whole((a != 0) & (b != 0)); }
NND_INLINE vl nnd_whole_or(vl a, vl b) { return nnd_truth_of_whole((a | b) != 0); }
NND_INLINE vl nnd_whole_xor(vl a, vl b) { return nnd_truth_of_whole((a != 0) ^ (b != 0)); }
NND_INLINE vl nnd_whole_bit_and(vl a, vl b) { return a & b; }
NND_INLINE vl nnd_whole_bit_or(vl a, vl b) { return a | b; }
NND_INLINE vl nnd_whole_bit_xor(vl a, vl b) { return a ^ b; }
NND_INLINE vl nnd_whole_where(vl c, vl a, vl b) { return nnd_select_whole(c != 0, a, b); }

NND_INLINE vl nnd_whole_shift_left(vl a, vl b) {
  const vul by = (vul)b;
  return (vl)((vul)a << (by & 63)) & (by < 64);
}
NND_INLINE vl nnd_whole_shift_right(vl a, vl b) {
  const vl is_usual = (vl)((vul)b < 64);
  return a >> nnd_select_whole(is_usual, b, (vl){0} + 63);
}

/* One lane after the other: no instruction set divides 64 bits in vectors. */
#define NND_WHOLE_LANES(name, made)                                                                                    \
  NND_INLINE vl nnd_whole_##name(vl x, vl y) {                                                                         \
    vl result;                                                                                                         \
    NND_NO_UNROLL                                                                                                      \
    for (int lane = 0; lane < NND_LANES; lane++) {                                                                     \
      const int64_t a = x[lane], b = y[lane];                                                                          \
      result[lane] = made;                                                                                             \
    }                                                                                                                  \
    return result;                                                                                                     \
  }

NND_INLINE int64_t nnd_quotient_of(int64_t a, int64_t b) {
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return b ? a / b : 0;
}
NND_INLINE int64_t nnd_rest_of(int64_t a, int64_t b) { return b && b != -1 ? a % b : 0; }

/* With the sign of the divisor, as NumPy's. */
NND_INLINE int64_t nnd_modulo_of(int64_t a, int64_t b) {
  const int64_t rest = nnd_rest_of(a, b);
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* A negative power of anything but one and minus one is zero. */
NND_INLINE int64_t nnd_power_of(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? 1 - 2 * (b & 1) : 0;
  uint64_t result = 1, square = (uint64_t)a;
  for (; b; b >>= 1, square *= square)
    if (b & 1) result *= square;
  return (int64_t)result;
}

NND_WHOLE_LANES(div, nnd_quotient_of(a, b))
NND_WHOLE_LANES(fmod, nnd_rest_of(a, b))
NND_WHOLE_LANES(mod, nnd_modulo_of(a, b))
NND_WHOLE_LANES(pow, nnd_power_of(a, b))

#endif
