/* SPDX-License-Identifier: Apache-2.0
 *
 * An expression over up to four operands, each whole or broadcast: of NCHWc, or of plain tensors.
 */
#ifndef NND_ELEMENTWISE_H
#define NND_ELEMENTWISE_H

#include "step.h"

#define NND_CHUNK 1024 /* vectors or floats that a worker takes at a time */

/* Operand k lies step_n[k], step_b[k], step_p[k] vectors further for the next image, block, pixel. */
struct nnd_elementwise_blocked_step {
  nnd_size images, blocks, pixels;
  nnd_size step_n[4], step_b[4], step_p[4];
  vf (*then)(vf a, vf b, vf c, vf d);
};

NND_INLINE vf nnd_operand(const nnd_elem *from, nnd_size at) {
  return from ? nnd_read(from + at * NND_LANES) : nnd_splat(0.0f);
}

NND_INLINE void nnd_elementwise_blocked_step(const struct nnd_elementwise_blocked_step *t, nnd_elem *out,
                                             const nnd_elem *a, const nnd_elem *b, const nnd_elem *c,
                                             const nnd_elem *d, struct nnd_part part) {
  const nnd_size chunks = nnd_ceil_div(t->pixels, NND_CHUNK);
  nnd_size first, last;
  nnd_share(t->images * t->blocks * chunks, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size plane = unit / chunks, n = plane / t->blocks, block = plane % t->blocks;
    const nnd_size begin = unit % chunks * NND_CHUNK, end = nnd_min(t->pixels, begin + NND_CHUNK);
#define NND_AT(k) (n * t->step_n[k] + block * t->step_b[k] + p * t->step_p[k])
    for (nnd_size p = begin; p < end; p++)
      nnd_write(out + (plane * t->pixels + p) * NND_LANES,
                t->then(nnd_operand(a, NND_AT(0)), nnd_operand(b, NND_AT(1)), nnd_operand(c, NND_AT(2)),
                        nnd_operand(d, NND_AT(3))));
#undef NND_AT
  }
}

/* Six axes, the last the innermost; step[k][axis] floats. */
struct nnd_elementwise_plain_step {
  nnd_size size[6];
  nnd_size step[4][6];
  vf (*then)(vf a, vf b, vf c, vf d);
};

/* `count` floats that lie `step` apart; lanes beyond are the first one again. */
NND_INLINE vf nnd_spread(const float *from, nnd_size step, nnd_size count) {
  if (!from) return nnd_splat(0.0f);
  if (step == 0) return nnd_splat(*from);
  if (step == 1 && count == NND_LANES) return nnd_load_any(from);
  vf result = nnd_splat(*from);
  for (nnd_size lane = 0; lane < count; lane++) result[lane] = from[lane * step];
  return result;
}

NND_INLINE void nnd_store_some(float *to, vf value, nnd_size count) {
  if (count == NND_LANES) nnd_store_any(to, value);
  else
    for (nnd_size lane = 0; lane < count; lane++) to[lane] = value[lane];
}

NND_INLINE const float *nnd_plain_operand(const struct nnd_elementwise_plain_step *t, int k, const float *from,
                                          nnd_size row) {
  if (!from) return from;
  NND_UNROLL for (int axis = 4; axis >= 0; axis--) {
    from += row % t->size[axis] * t->step[k][axis];
    row /= t->size[axis];
  }
  return from;
}

NND_INLINE void nnd_elementwise_plain_step(const struct nnd_elementwise_plain_step *t, float *out, const float *a,
                                           const float *b, const float *c, const float *d, struct nnd_part part) {
  const nnd_size rows = t->size[0] * t->size[1] * t->size[2] * t->size[3] * t->size[4];
  const nnd_size chunks = nnd_ceil_div(t->size[5], NND_CHUNK);
  nnd_size first, last;
  nnd_share(rows * chunks, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size row = unit / chunks, begin = unit % chunks * NND_CHUNK;
    const nnd_size end = nnd_min(t->size[5], begin + NND_CHUNK);
    const float *const from[4] = {nnd_plain_operand(t, 0, a, row), nnd_plain_operand(t, 1, b, row),
                                  nnd_plain_operand(t, 2, c, row), nnd_plain_operand(t, 3, d, row)};
    for (nnd_size i = begin; i < end; i += NND_LANES) {
      const nnd_size count = nnd_min(NND_LANES, end - i);
#define NND_SOME(k, x) nnd_spread(x ? from[k] + i * t->step[k][5] : x, t->step[k][5], count)
      nnd_store_some(out + row * t->size[5] + i,
                     t->then(NND_SOME(0, a), NND_SOME(1, b), NND_SOME(2, c), NND_SOME(3, d)),
                     count);
#undef NND_SOME
    }
  }
}

#endif
