/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that only move elements: whole channels of NCHWc, parts of plain tensors, or elements one by one.
 */
#ifndef NND_MOVEMENT_H
#define NND_MOVEMENT_H

#include "step.h"

#define NND_PARTS 8

/* Shares: runs of pixels of all images; a run's sources stay in the first cache while all output blocks are made. */
#define NND_MOVED_PIXELS 64

typedef nnd_elem nnd_line __attribute__((vector_size(NND_LANES * sizeof(nnd_elem))));

/* `move` makes every channel block of the pixels [first, last) of an image of `pixels`: one NND_MOVE for each, whose
 * vector is a constant shuffle (shuffles.py) of vectors NND_LINE(input, block). */
#define NND_MOVE_PARAMETERS \
  nnd_size pixels, nnd_size first, nnd_size last, nnd_elem *restrict out, const nnd_elem *const *in
#define NND_LINE(k, block) (*(const nnd_line *)(in[k] + ((block) * pixels + p) * NND_LANES))
#define NND_MOVE(block, vector)               \
  for (nnd_size p = first; p < last; p++)     \
  *(nnd_line *)(out + ((block) * pixels + p) * NND_LANES) = vector

struct nnd_channel_parts_step {
  nnd_size images, blocks, pixels, in_blocks[NND_PARTS];
  void (*move)(NND_MOVE_PARAMETERS);
};

NND_INLINE void nnd_channel_parts_step(const struct nnd_channel_parts_step *t, nnd_elem *out, const nnd_elem *in0,
                                       const nnd_elem *in1, const nnd_elem *in2, const nnd_elem *in3,
                                       const nnd_elem *in4, const nnd_elem *in5, const nnd_elem *in6,
                                       const nnd_elem *in7, struct nnd_part part) {
  const nnd_elem *const ins[NND_PARTS] = {in0, in1, in2, in3, in4, in5, in6, in7};
  const nnd_size plane = t->pixels * NND_LANES, runs = nnd_ceil_div(t->pixels, NND_MOVED_PIXELS);
  nnd_size begin, end;
  nnd_share(t->images * runs, part, &begin, &end);
  for (nnd_size unit = begin; unit < end; unit++) {
    const nnd_size image = unit / runs, first = unit % runs * NND_MOVED_PIXELS;
    const nnd_elem *from[NND_PARTS];
    NND_UNROLL for (int k = 0; k < NND_PARTS; k++) from[k] = ins[k] + image * t->in_blocks[k] * plane;
    t->move(t->pixels, first, nnd_min(t->pixels, first + NND_MOVED_PIXELS), out + image * t->blocks * plane, from);
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

/* The same where the places are even along each of six axes. Workers share rows, taken in runs along the fifth axis. */
struct nnd_strided_copy_step {
  nnd_size offset, size[6], step[6];
};

#define NND_STRIDED_COPY(name, type, value)                                                                          \
  NND_INLINE void name(const struct nnd_strided_copy_step *t, float *out, const type *in, struct nnd_part part) {    \
    const nnd_size rows = t->size[4], columns = t->size[5];                                                          \
    nnd_size row, last;                                                                                              \
    nnd_share(t->size[0] * t->size[1] * t->size[2] * t->size[3] * rows, part, &row, &last);                          \
    while (row < last) {                                                                                             \
      const nnd_size begin = row % rows, end = nnd_min(rows, begin + last - row);                                    \
      const type *from = in + t->offset;                                                                             \
      nnd_size rest = row / rows;                                                                                    \
      NND_UNROLL for (int axis = 3; axis >= 0; axis--) {                                                             \
        from += rest % t->size[axis] * t->step[axis];                                                                \
        rest /= t->size[axis];                                                                                       \
      }                                                                                                              \
      for (nnd_size y = begin; y < end; y++, row++)                                                                  \
        for (nnd_size x = 0; x < columns; x++)                                                                       \
          out[row * columns + x] = value(from[y * t->step[4] + x * t->step[5]]);                                     \
    }                                                                                                                \
  }
NND_STRIDED_COPY(nnd_strided_copy_step, float, )
NND_STRIDED_COPY(nnd_strided_copy_blocked_step, nnd_elem, nnd_to_float)

/* A strided copy with zeros around it: `begin` of them before each axis, whose `count` elements are copied. */
struct nnd_padded_copy_step {
  nnd_size offset, size[6], begin[6], count[6], step[6];
};

NND_INLINE void nnd_padded_copy_step(const struct nnd_padded_copy_step *t, float *out, const float *in,
                                     struct nnd_part part) {
  const nnd_size columns = t->size[5], begin = t->begin[5], end = begin + t->count[5];
  nnd_size row, last;
  nnd_share(t->size[0] * t->size[1] * t->size[2] * t->size[3] * t->size[4], part, &row, &last);
  for (; row < last; row++) {
    const float *from = in + t->offset;
    float *to = out + row * columns;
    nnd_size rest = row;
    int inside = 1;
    NND_UNROLL for (int axis = 4; axis >= 0; axis--) {
      const nnd_size at = rest % t->size[axis] - t->begin[axis];
      inside &= at >= 0 && at < t->count[axis];
      from += at * t->step[axis];
      rest /= t->size[axis];
    }
    if (!inside) {
      memset(to, 0, (size_t)columns * sizeof(float));
      continue;
    }
    for (nnd_size x = 0; x < begin; x++) to[x] = 0.0f;
    for (nnd_size x = begin; x < end; x++) to[x] = from[(x - begin) * t->step[5]];
    for (nnd_size x = end; x < columns; x++) to[x] = 0.0f;
  }
}

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

/* Rows of a table by numbers of 32 bits, or of 64 where `is_wide`; negative ones count from the end. What is no row
 * gives NaN: numbers come from outside. */
struct nnd_gather_rows_step {
  nnd_size count, rows, width;
  int is_wide;
};

NND_INLINE void nnd_gather_rows_step(const struct nnd_gather_rows_step *t, float *out, const float *table,
                                     const void *numbers, struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->count, part, &first, &last);
  for (nnd_size i = first; i < last; i++) {
    const int64_t number = t->is_wide ? ((const int64_t *)numbers)[i] : ((const int32_t *)numbers)[i];
    const int64_t row = number < 0 ? number + t->rows : number;
    const int is_row = row >= 0 && row < t->rows;
    if (is_row) memcpy(out + i * t->width, table + row * t->width, t->width * sizeof(float));
    for (nnd_size k = 0; !is_row && k < t->width; k++) out[i * t->width + k] = __builtin_nanf("");
  }
}

#endif
