/* SPDX-License-Identifier: Apache-2.0 */
#include "base/elements.h"

#include "base/double_operators.h"

typedef int32_t vi_any __attribute__((vector_size(4 * NND_LANES), aligned(4)));
typedef int8_t vb_any __attribute__((vector_size(NND_LANES), aligned(1)));
typedef uint8_t vu_any __attribute__((vector_size(NND_LANES), aligned(1)));

const nnd_size nnd_element_bytes[NND_NUM_ELEMENTS] = {4, 4, 8, 1, 1, 1, 2, 8};

#define NND_OF(lanes, x) __builtin_convertvector(x, lanes)

/* -1 of true, as a comparison gives it. */
NND_INLINE vb_any nnd_truths(vb_any bytes) { return bytes != 0; }

NND_INLINE vi nnd_int32_of(vf x) {
  const vi held = (x >= -2147483648.0f) & (x < 2147483648.0f);
  const vi whole = NND_OF(vi, nnd_select(held, x, nnd_splat(0.0f)));
  return (held & whole) | (~held & INT32_MIN);
}

NND_INLINE vl nnd_int64_of(vf x) {
  const vi held = (x >= -9223372036854775808.0f) & (x < 9223372036854775808.0f);
  const vl whole = NND_OF(vl, nnd_select(held, x, nnd_splat(0.0f)));
  return nnd_select_whole(NND_OF(vl, held), whole, (vl){0} + INT64_MIN);
}

NND_INLINE vi nnd_int32_of_doubles(vd x) {
  const vl held = (x > -2147483649.0) & (x < 2147483648.0);
  const vi whole = NND_OF(vi, (vd)(held & (vl)x)), is_held = NND_OF(vi, held);
  return (is_held & whole) | (~is_held & INT32_MIN);
}

NND_INLINE vl nnd_int64_of_doubles(vd x) {
  const vl held = (x >= -9223372036854775808.0) & (x < 9223372036854775808.0);
  return nnd_select_whole(held, NND_OF(vl, (vd)(held & (vl)x)), (vl){0} + INT64_MIN);
}

#define NND_EACH(type, made)                                                                                           \
  for (nnd_size i = 0; i < vectors; i++) {                                                                             \
    const type x = ((const type *)from)[i];                                                                            \
    to[i] = made;                                                                                                      \
  }                                                                                                                    \
  return;

static void nnd_vectors_of_floats(int element, const void *from, nnd_size vectors, vf *to) {
  switch (element) {
    case NND_INT32: NND_EACH(vi_any, NND_OF(vf, x))
    case NND_INT64: NND_EACH(vl_any, NND_OF(vf, x))
    case NND_BOOL: NND_EACH(vb_any, NND_OF(vf, -nnd_truths(x)))
    case NND_UINT8: NND_EACH(vu_any, NND_OF(vf, x))
    case NND_INT8: NND_EACH(vb_any, NND_OF(vf, x))
    case NND_FLOAT16: NND_EACH(nnd_halves_any, nnd_floats_of_halves(&x))
    case NND_FLOAT64: NND_EACH(vd_any, NND_OF(vf, x))
    default: NND_EACH(vf_any, x)
  }
}

static void nnd_vectors_of_whole(int element, const void *from, nnd_size vectors, vl *to) {
  switch (element) {
    case NND_INT32: NND_EACH(vi_any, NND_OF(vl, x))
    case NND_INT64: NND_EACH(vl_any, x)
    case NND_BOOL: NND_EACH(vb_any, NND_OF(vl, -nnd_truths(x)))
    case NND_UINT8: NND_EACH(vu_any, NND_OF(vl, x))
    case NND_INT8: NND_EACH(vb_any, NND_OF(vl, x))
    case NND_FLOAT16: NND_EACH(nnd_halves_any, nnd_int64_of(nnd_floats_of_halves(&x)))
    case NND_FLOAT64: NND_EACH(vd_any, nnd_int64_of_doubles(x))
    default: NND_EACH(vf_any, nnd_int64_of(x))
  }
}

static void nnd_vectors_of_doubles(int element, const void *from, nnd_size vectors, vd *to) {
  switch (element) {
    case NND_INT32: NND_EACH(vi_any, NND_OF(vd, x))
    case NND_INT64: NND_EACH(vl_any, NND_OF(vd, x))
    case NND_BOOL: NND_EACH(vb_any, NND_OF(vd, -nnd_truths(x)))
    case NND_UINT8: NND_EACH(vu_any, NND_OF(vd, x))
    case NND_INT8: NND_EACH(vb_any, NND_OF(vd, x))
    case NND_FLOAT16: NND_EACH(nnd_halves_any, NND_OF(vd, nnd_floats_of_halves(&x)))
    case NND_FLOAT64: NND_EACH(vd_any, x)
    default: NND_EACH(vf_any, NND_OF(vd, x))
  }
}

#define NND_LANES_OF(name, vectors_of, type)                                                                           \
  void name(int element, const void *from, nnd_size count, type *to) {                                                 \
    const nnd_size whole = count / NND_LANES, rest = count % NND_LANES, each = nnd_element_bytes[element];             \
    vectors_of(element, from, whole, to);                                                                              \
    if (!rest) return;                                                                                                 \
    char last[8 * NND_LANES] = {0};                                                                                    \
    memcpy(last, (const char *)from + whole * NND_LANES * each, (size_t)(rest * each));                                \
    vectors_of(element, last, 1, to + whole);                                                                          \
  }
NND_LANES_OF(nnd_floats_of, nnd_vectors_of_floats, vf)
NND_LANES_OF(nnd_whole_of, nnd_vectors_of_whole, vl)
NND_LANES_OF(nnd_doubles_of, nnd_vectors_of_doubles, vd)

NND_INLINE nnd_halves_any nnd_half_of(vf x) {
  nnd_halves_any made;
  nnd_halves_of_floats(x, &made);
  return made;
}

#define NND_STORE(lanes, type, made)                                                                                   \
  for (nnd_size i = 0; i < vectors; i++) {                                                                             \
    const lanes x = ((const lanes *)from.at)[i * from.step];                                                           \
    ((type *)to)[i] = made;                                                                                            \
  }                                                                                                                    \
  return;

static void nnd_store_floats(int element, struct nnd_source from, nnd_size vectors, void *to) {
  switch (element) {
    case NND_INT32: NND_STORE(vf_any, vi_any, nnd_int32_of(x))
    case NND_INT64: NND_STORE(vf_any, vl_any, nnd_int64_of(x))
    case NND_BOOL: NND_STORE(vf_any, vb_any, NND_OF(vb_any, -(x != 0.0f)))
    case NND_UINT8:
    case NND_INT8: NND_STORE(vf_any, vb_any, NND_OF(vb_any, nnd_int32_of(x)))
    case NND_FLOAT16: NND_STORE(vf_any, nnd_halves_any, nnd_half_of(x))
    case NND_FLOAT64: NND_STORE(vf_any, vd_any, NND_OF(vd, x))
    default: NND_STORE(vf_any, vf_any, x)
  }
}

static void nnd_store_whole(int element, struct nnd_source from, nnd_size vectors, void *to) {
  switch (element) {
    case NND_INT32: NND_STORE(vl_any, vi_any, NND_OF(vi, x))
    case NND_INT64: NND_STORE(vl_any, vl_any, x)
    case NND_BOOL: NND_STORE(vl_any, vb_any, NND_OF(vb_any, -(x != 0)))
    case NND_UINT8:
    case NND_INT8: NND_STORE(vl_any, vb_any, NND_OF(vb_any, x))
    case NND_FLOAT16: NND_STORE(vl_any, nnd_halves_any, nnd_half_of(NND_OF(vf, x)))
    case NND_FLOAT64: NND_STORE(vl_any, vd_any, NND_OF(vd, x))
    default: NND_STORE(vl_any, vf_any, NND_OF(vf, x))
  }
}

static void nnd_store_doubles(int element, struct nnd_source from, nnd_size vectors, void *to) {
  switch (element) {
    case NND_INT32: NND_STORE(vd_any, vi_any, nnd_int32_of_doubles(x))
    case NND_INT64: NND_STORE(vd_any, vl_any, nnd_int64_of_doubles(x))
    case NND_BOOL: NND_STORE(vd_any, vb_any, NND_OF(vb_any, -(x != 0.0)))
    case NND_UINT8:
    case NND_INT8: NND_STORE(vd_any, vb_any, NND_OF(vb_any, nnd_int32_of_doubles(x)))
    case NND_FLOAT16: NND_STORE(vd_any, nnd_halves_any, nnd_half_of(nnd_odd_floats_of(x)))
    case NND_FLOAT64: NND_STORE(vd_any, vd_any, x)
    default: NND_STORE(vd_any, vf_any, NND_OF(vf, x))
  }
}

#define NND_ELEMENTS_OF(name, store, lanes)                                                                            \
  void name(int element, struct nnd_source from, nnd_size count, void *to) {                                           \
    const nnd_size whole = count / NND_LANES, rest = count % NND_LANES, each = nnd_element_bytes[element];             \
    store(element, from, whole, to);                                                                                   \
    if (!rest) return;                                                                                                 \
    char last[8 * NND_LANES];                                                                                          \
    from.at = (const lanes *)from.at + whole * from.step;                                                              \
    store(element, from, 1, last);                                                                                     \
    memcpy((char *)to + whole * NND_LANES * each, last, (size_t)(rest * each));                                        \
  }
NND_ELEMENTS_OF(nnd_elements_of_floats, nnd_store_floats, vf_any)
NND_ELEMENTS_OF(nnd_elements_of_whole, nnd_store_whole, vl_any)
NND_ELEMENTS_OF(nnd_elements_of_doubles, nnd_store_doubles, vd_any)
