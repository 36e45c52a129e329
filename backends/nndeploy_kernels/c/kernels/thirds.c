/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/thirds.h"

#if NND_HAS_THIRDS
#include "kernels/amx.h"
#include "kernels/begin.h"
#include "kernels/masked.h"

/* Products of fewer rows, k or columns are left to multiply-adds. Measured on an Intel Xeon, 2026-11-30. */
#ifndef NND_AMX_LEAST_PRODUCTS /* tests take tiles for all */
#define NND_THIRDS_LEAST_ROWS 32
#define NND_THIRDS_LEAST_K 32
#define NND_THIRDS_LEAST_COLUMNS 48
#define NND_THIRDS_LEAST_PIXELS 128
#else
#define NND_THIRDS_LEAST_ROWS 1
#define NND_THIRDS_LEAST_K 1
#define NND_THIRDS_LEAST_COLUMNS 1
#define NND_THIRDS_LEAST_PIXELS 1
#endif

#define NND_TILE_BYTES (NND_AMX_ROWS * NND_AMX_BYTES)
#define NND_CUT_AT_ONCE 4 /* pairs of k, about: more keep tiles waiting, fewer cost turns */

static int nnd_amx_has_thirds;

void nnd_begin_thirds(void) { nnd_amx_has_thirds = nnd_amx_is_there(NND_AMX_BF16); }

int nnd_thirds_pay(nnd_size rows, nnd_size k, nnd_size columns) {
  if (rows < NND_THIRDS_LEAST_ROWS || k < NND_THIRDS_LEAST_K || columns < NND_THIRDS_LEAST_COLUMNS) return 0;
  if (3 * k < 2 * nnd_thirds_blocks(k) * NND_THIRDS_K && NND_THIRDS_LEAST_K > 1)
    return 0; /* zeros are multiplied too */
  return nnd_amx_has_thirds && nnd_amx_is_permitted();
}

int nnd_thirds_pay_for_pixels(nnd_size pixels, nnd_size channels, nnd_size out_channels) {
  return pixels >= NND_THIRDS_LEAST_PIXELS && nnd_thirds_pay(pixels, channels, out_channels);
}

int nnd_thirds_of_row(nnd_size k, const float *from, nnd_size step, nnd_size third, char *to) {
  vf odd = nnd_splat(0.0f);
  for (; k > 0; k -= NND_THIRDS_K, from += NND_THIRDS_K * step, to += NND_THIRDS * third) {
    vf x[2] = {nnd_splat(0.0f), nnd_splat(0.0f)};
    if (step == 1 && k >= NND_THIRDS_K)
      x[0] = nnd_load_any(from), x[1] = nnd_load_any(from + NND_LANES);
    else if (step == 1)
      x[0] = nnd_load_first(from, k), x[1] = nnd_load_first(from + NND_LANES, nnd_max(0, k - NND_LANES));
    else
      for (nnd_size i = 0; i < nnd_min(k, NND_THIRDS_K); i++) x[i / NND_LANES][i % NND_LANES] = from[i * step];
    nnd_thirds_of(x, third, to, &odd);
  }
  return !nnd_any_lane(odd != odd);
}

/* What is left of floats when their first thirds are taken away: NaN where they have none. */
NND_INLINE vf nnd_remainder(const float *from) {
  const vf x = nnd_load(from);
  return x - nnd_third_of(nnd_rounded_third(x));
}

/* The thirds of pair `pair` of k of a block of a vector, of which `left` k are there; `others` vectors behind it are looked
 * at alone. */
NND_INLINE void nnd_thirds_of_pair(const float *floats, nnd_size step, nnd_size left, int pair, int others,
                                   const float *fetched, nnd_size third, char *to, vf *odd) {
  const float *from = floats + 2 * pair * step;
  __builtin_prefetch(fetched, 0, 2);
  __builtin_prefetch(fetched + NND_LANES, 0, 2);
  vf even = 2 * pair < left ? nnd_load(from) : nnd_splat(0.0f);
  vf next = 2 * pair + 1 < left ? nnd_load(from + step) : nnd_splat(0.0f);
  for (int v = 1; v <= others; v++) {
    if (2 * pair < left) *odd += nnd_remainder(from + v * NND_LANES) * 0.0f;
    if (2 * pair + 1 < left) *odd += nnd_remainder(from + step + v * NND_LANES) * 0.0f;
  }
  NND_UNROLL
  for (int i = 0; i < NND_THIRDS; i++) {
    const nnd_lane_bits low = nnd_rounded_third(even), high = nnd_rounded_third(next);
    *(nnd_lane_bits *)(to + i * third + pair * NND_AMX_BYTES) = low >> 16 | (high & 0xffff0000u);
    even -= nnd_third_of(low), next -= nnd_third_of(high);
    if (i == 0) *odd += (even + next) * 0.0f;
  }
}

NND_INLINE void nnd_thirds_cut_pairs(int vectors, struct nnd_thirds_cut *cut, nnd_size last) {
  const nnd_size step = vectors * NND_LANES;
  vf odd = nnd_splat(0.0f);
  for (nnd_size pair = cut->done; pair < last; pair++) {
    const nnd_size block = pair / NND_AMX_ROWS, k = block * NND_THIRDS_K;
    NND_UNROLL
    for (int v = 0; v < vectors; v++)
      nnd_thirds_of_pair(cut->floats + k * step + v * NND_LANES, step, cut->k - k, (int)(pair % NND_AMX_ROWS), 0,
                         cut->floats + (cut->k + 2 * pair) * step + 2 * v * NND_LANES, vectors * NND_TILE_BYTES,
                         cut->to + (block * NND_THIRDS * vectors + v) * NND_TILE_BYTES, &odd);
  }
  cut->is_finite &= !nnd_any_lane(odd != odd);
  cut->done = last;
}

void nnd_thirds_cut_some(struct nnd_thirds_cut *cut, nnd_size pairs) {
  const nnd_size last = nnd_min(cut->done + pairs, cut->all);
  if (cut->done >= last) return;
  if (cut->vectors == 1)
    nnd_thirds_cut_pairs(1, cut, last);
  else if (cut->vectors == 2)
    nnd_thirds_cut_pairs(2, cut, last);
  else
    nnd_thirds_cut_pairs(3, cut, last);
}

nnd_size nnd_thirds_spread(struct nnd_thirds_cut *cut, nnd_size products, nnd_size blocks, nnd_size ends) {
  const nnd_size of_one = nnd_ceil_div(cut->all - cut->done, nnd_max(1, products));
  const nnd_size at_once = nnd_ceil_div(ends + nnd_ceil_div(of_one, NND_CUT_AT_ONCE), blocks);
  cut->each = nnd_ceil_div(of_one, nnd_max(1, blocks * at_once - ends));
  return at_once;
}

/* Each third of the rows meets as many of the weights as its products are large enough for. */
NND_INLINE NND_AMX_TARGET void nnd_thirds_of_strips(int vectors, const struct nnd_amx_blocks *b, nnd_amx_ender end_some,
                                                    void *ending, nnd_size at_once) {
  const nnd_size third = b->height * NND_AMX_BYTES, of_weights = b->wide * NND_TILE_BYTES;
  const char *one = b->rows[0], *other = b->rows[1], *weights = b->weights;
  nnd_amx_take(b->height, NND_AMX_BYTES, 6);
  nnd_amx_begin_sums(2, vectors, b->first);
#define NND_ROWS_OF(i)                                                                                                 \
  _tile_loadd(4, one + (i) * third, NND_AMX_BYTES);                                                                    \
  _tile_loadd(5, other + (i) * third, NND_AMX_BYTES);
#define NND_WEIGHTS_OF(i)                                                                                              \
  _tile_loadd(6, weights + (i) * of_weights, NND_AMX_BYTES);                                                           \
  if (vectors > 1) _tile_loadd(7, weights + (i) * of_weights + NND_TILE_BYTES, NND_AMX_BYTES);
#define NND_PRODUCTS                                                                                                   \
  _tile_dpbf16ps(0, 4, 6);                                                                                             \
  _tile_dpbf16ps(2, 5, 6);                                                                                             \
  if (vectors > 1) _tile_dpbf16ps(1, 4, 7);                                                                            \
  if (vectors > 1) _tile_dpbf16ps(3, 5, 7);
  for (nnd_size i = 0; i < b->count; i++, weights += NND_THIRDS * of_weights, one += b->block, other += b->block) {
    NND_ROWS_OF(0)
    NND_WEIGHTS_OF(2)
    NND_PRODUCTS
    NND_WEIGHTS_OF(1)
    NND_PRODUCTS
    NND_WEIGHTS_OF(0)
    NND_PRODUCTS
    NND_ROWS_OF(2)
    NND_PRODUCTS
    NND_ROWS_OF(1)
    NND_PRODUCTS
    NND_WEIGHTS_OF(1)
    NND_PRODUCTS
    for (nnd_size n = 0; n < at_once; n++) end_some(ending);
  }
#undef NND_ROWS_OF
  while (end_some(ending)) {
  }
  nnd_amx_store_sums(2, vectors, b);
}

NND_AMX_TARGET void nnd_thirds_multiply_pair(const struct nnd_amx_blocks *b, nnd_amx_ender end_some, void *ending,
                                             nnd_size at_once) {
  if (b->vectors == 1)
    nnd_thirds_of_strips(1, b, end_some, ending, at_once);
  else
    nnd_thirds_of_strips(2, b, end_some, ending, at_once);
}

/* The six products of a block, in the order of pairs, or the bits would be others. Sums of one strip do not wait for each
 * other, and between the strips the next block of weights is cut. */
NND_INLINE NND_AMX_TARGET void nnd_thirds_of_quad(int others, struct nnd_thirds_quad *q, nnd_amx_ender end_some,
                                                  void *ending, nnd_size at_once) {
  const nnd_size third = q->height * NND_AMX_BYTES, blocks = nnd_thirds_blocks(q->k);
  const nnd_size of_strip = blocks * NND_THIRDS * third, step = q->vectors * NND_LANES;
  const char *one = q->rows, *weights = q->ring, *behind = q->ring + NND_THIRDS_RING;
  /* each vector fetches its share of the panel behind */
  const float *floats = q->floats, *fetched = floats + q->k * step + q->vector * (q->k - 1) * NND_LANES;
  nnd_size left = q->k;
  vf odd = nnd_splat(0.0f);
  nnd_amx_take(q->height, NND_AMX_BYTES, 5);
  if (q->first) {
    _tile_loadd(0, q->first, 0);
    _tile_loadd(1, q->first, 0);
    _tile_loadd(2, q->first, 0);
    _tile_loadd(3, q->first, 0);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  NND_UNROLL
  for (int p = 0; p < NND_AMX_ROWS; p++)
    nnd_thirds_of_pair(floats, step, left, p, others, fetched + 2 * p * NND_LANES, NND_TILE_BYTES, q->ring, &odd);
#define NND_ROWS_OF(strip, i) _tile_loadd(4, one + (strip) * of_strip + (i) * third, NND_AMX_BYTES);
#define NND_UPPER(strip)                                                                                               \
  NND_ROWS_OF(strip, 0)                                                                                                \
  _tile_dpbf16ps(strip, 4, 7);                                                                                         \
  _tile_dpbf16ps(strip, 4, 6);                                                                                         \
  _tile_dpbf16ps(strip, 4, 5);
#define NND_MIDDLE(strip)                                                                                              \
  NND_ROWS_OF(strip, 1)                                                                                                \
  _tile_dpbf16ps(strip, 4, 5);                                                                                         \
  _tile_dpbf16ps(strip, 4, 6);
#define NND_LOWER(strip)                                                                                               \
  NND_ROWS_OF(strip, 2)                                                                                                \
  _tile_dpbf16ps(strip, 4, 5);
#define NND_CUT(first)                                                                                                 \
  if (is_cut) NND_UNROLL                                                                                               \
  for (int p = (first); p < (first) + 2; p++)                                                                          \
    nnd_thirds_of_pair(floats, step, left, p, others, fetched + 2 * p * NND_LANES, NND_TILE_BYTES, to, &odd);
  for (nnd_size i = 0; i < blocks; i++, one += NND_THIRDS * third) {
    char *to = (char *)weights + NND_THIRDS * NND_TILE_BYTES;
    if (to == behind) to = q->ring;
    floats += NND_THIRDS_K * step, fetched += NND_THIRDS_K * NND_LANES, left -= NND_THIRDS_K;
    const int is_cut = left > 0;
    _tile_loadd(7, weights + 2 * NND_TILE_BYTES, NND_AMX_BYTES);
    _tile_loadd(6, weights + NND_TILE_BYTES, NND_AMX_BYTES);
    _tile_loadd(5, weights, NND_AMX_BYTES);
    NND_UPPER(0)
    NND_CUT(0)
    NND_UPPER(1)
    NND_CUT(2)
    NND_UPPER(2)
    NND_CUT(4)
    NND_UPPER(3)
    NND_CUT(6)
    NND_LOWER(0)
    NND_LOWER(1)
    NND_LOWER(2)
    NND_LOWER(3)
    NND_CUT(8)
    NND_MIDDLE(0)
    NND_CUT(10)
    NND_MIDDLE(1)
    NND_CUT(12)
    NND_MIDDLE(2)
    NND_CUT(14)
    NND_MIDDLE(3)
    for (nnd_size n = 0; n < at_once; n++) end_some(ending);
    weights = to;
  }
  while (end_some(ending)) {
  }
  float *sums = q->sums;
  const nnd_size of_sums = q->height * NND_LANES;
  _tile_stored(0, sums, NND_AMX_BYTES);
  _tile_stored(1, sums + of_sums, NND_AMX_BYTES);
  _tile_stored(2, sums + 2 * of_sums, NND_AMX_BYTES);
  _tile_stored(3, sums + 3 * of_sums, NND_AMX_BYTES);
  q->is_finite = !nnd_any_lane(odd != odd);
}

NND_AMX_TARGET void nnd_thirds_multiply_quad(struct nnd_thirds_quad *q, nnd_amx_ender end_some, void *ending,
                                             nnd_size at_once) {
  if (q->vector == 0 && q->vectors == 2)
    nnd_thirds_of_quad(1, q, end_some, ending, at_once);
  else
    nnd_thirds_of_quad(q->vector ? 0 : q->vectors - 1, q, end_some, ending, at_once);
}
#endif
