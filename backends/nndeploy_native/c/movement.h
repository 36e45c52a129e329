/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that only move elements: whole channels of NCHWc, parts of plain tensors, or elements one by one.
 */
#ifndef NND_MOVEMENT_H
#define NND_MOVEMENT_H

#include "step.h"

#define NND_PARTS 8

/* Workers share the channel blocks of the output of all images. */
struct nnd_channel_parts_step {
  nnd_size images, channels, pixels, in_blocks[NND_PARTS];
};

/* `table` holds (number of input, channel) for each lane of the output; a negative number is a zero. */
NND_INLINE void nnd_channel_parts_step(const struct nnd_channel_parts_step *t, nnd_elem *out, const int32_t *table,
                                       const nnd_elem *in0, const nnd_elem *in1, const nnd_elem *in2,
                                       const nnd_elem *in3, const nnd_elem *in4, const nnd_elem *in5,
                                       const nnd_elem *in6, const nnd_elem *in7, struct nnd_part part) {
  const nnd_elem *const ins[NND_PARTS] = {in0, in1, in2, in3, in4, in5, in6, in7};
  const nnd_size blocks = nnd_blocks(t->channels);
  nnd_size first, last;
  nnd_share(t->images * blocks, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / blocks;
    const int32_t *of = table + unit % blocks * NND_LANES * 2;
    nnd_elem *to = out + unit * t->pixels * NND_LANES;
    for (nnd_size lane = 0; lane < NND_LANES; lane++) {
      const nnd_size k = of[lane * 2], c = of[lane * 2 + 1];
      if (k < 0) {
        for (nnd_size p = 0; p < t->pixels; p++) to[p * NND_LANES + lane] = 0;
        continue;
      }
      const nnd_elem *from = ins[k] + (image * t->in_blocks[k] + c / NND_LANES) * t->pixels * NND_LANES + c % NND_LANES;
      for (nnd_size p = 0; p < t->pixels; p++) to[p * NND_LANES + lane] = from[p * NND_LANES];
    }
  }
}

/* Element i of the output is element places[i] of the input, a zero where that is negative. */
struct nnd_gather_step {
  nnd_size size;
};

#define NND_GATHER(name, type, value)                                                                        \
  NND_INLINE void name(const struct nnd_gather_step *t, float *out, const type *in, const int32_t *places,   \
                       struct nnd_part part) {                                                               \
    nnd_size first, last;                                                                                    \
    nnd_share(t->size, part, &first, &last);                                                                 \
    for (nnd_size i = first; i < last; i++) out[i] = places[i] < 0 ? 0.0f : value(in[places[i]]);            \
  }
NND_GATHER(nnd_gather_step, float, )
NND_GATHER(nnd_gather_blocked_step, nnd_elem, nnd_to_float)

/* The same where the places are even along each of six axes. */
struct nnd_strided_copy_step {
  nnd_size offset, size[6], step[6];
};

#define NND_STRIDED_COPY(name, type, value)                                                                          \
  NND_INLINE void name(const struct nnd_strided_copy_step *t, float *out, const type *in, struct nnd_part part) {    \
    nnd_size first, last;                                                                                            \
    nnd_share(t->size[0] * t->size[1] * t->size[2] * t->size[3] * t->size[4], part, &first, &last);                  \
    for (nnd_size row = first; row < last; row++) {                                                                  \
      const type *from = in + t->offset;                                                                             \
      nnd_size rest = row;                                                                                           \
      NND_UNROLL for (int axis = 4; axis >= 0; axis--) {                                                             \
        from += rest % t->size[axis] * t->step[axis];                                                                \
        rest /= t->size[axis];                                                                                       \
      }                                                                                                              \
      for (nnd_size i = 0; i < t->size[5]; i++) out[row * t->size[5] + i] = value(from[i * t->step[5]]);             \
    }                                                                                                                \
  }
NND_STRIDED_COPY(nnd_strided_copy_step, float, )
NND_STRIDED_COPY(nnd_strided_copy_blocked_step, nnd_elem, nnd_to_float)

/* Plain tensors one after the other along an axis: each (outer, inner[k]). */
struct nnd_join_plain_step {
  nnd_size outer, inner[NND_PARTS];
};

NND_INLINE void nnd_join_plain_step(const struct nnd_join_plain_step *t, float *out, const float *in0,
                                    const float *in1, const float *in2, const float *in3, const float *in4,
                                    const float *in5, const float *in6, const float *in7, struct nnd_part part) {
  const float *const ins[NND_PARTS] = {in0, in1, in2, in3, in4, in5, in6, in7};
  nnd_size total = 0, first, last;
  for (int k = 0; k < NND_PARTS; k++) total += t->inner[k];
  nnd_share(t->outer, part, &first, &last);
  out += first * total;
  for (nnd_size i = first; i < last; i++)
    for (int k = 0; k < NND_PARTS; k++) {
      if (!t->inner[k]) continue;
      memcpy(out, ins[k] + i * t->inner[k], (size_t)t->inner[k] * sizeof(float));
      out += t->inner[k];
    }
}

#endif
