/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of one channel where lanes are channels: one vector is one pixel of NND_LANES channels, packed as
 * images_blocks.h says. So they fit images of any width, and what they find lies in blocks as well.
 *
 * A block is some pixels of one output row. Kernels of 1, 3 and 5 columns with stride 1 and 2 load a pixel once for
 * all outputs that read it; others go tap by tap. Rows of the kernel that lie outside the image are left out.
 */
#ifndef NND_UNITS_IMAGES_NARROW_H
#define NND_UNITS_IMAGES_NARROW_H

#include "images_blocks.h"

#define NND_NARROW_PIXELS (NND_LANES == 8 ? 8 : 14) /* of a row, that a unit computes at once */
#define NND_NARROW_MAXIMA 8                         /* the same of the largest */

struct nnd_narrow {
  const float *in;       /* what tap 0 would read for the first output */
  const nnd_size *tap;   /* rows of the kernel that lie inside, `columns` of each: floats from `in` on */
  nnd_size rows, columns, phase;
  const float *bias, *weights; /* weights of the first tap; those of rows lie `weight_row` floats apart */
  nnd_size weight_row;
  float *out;
  float low;
  float of_row;
  const float *of_column; /* of a mean: one over the taps that count; null for others */
};

typedef void (*nnd_narrow_unit)(const struct nnd_narrow *t);

/* Sums; `columns` of the kernel, 0 any. */
NND_INLINE void nnd_narrow_sums(int columns, int stride, int pixels, const struct nnd_narrow *t) {
  vf found[NND_NARROW_PIXELS];
  const float *weights = t->weights;
  const nnd_size *tap = t->tap;
  const vf bias = nnd_load_any(t->bias);
  NND_UNROLL for (int p = 0; p < pixels; p++) found[p] = bias;
  NND_NO_UNROLL for (nnd_size ky = 0; ky < t->rows; ky++, weights += t->weight_row) {
    if (!columns) {
      NND_NO_UNROLL for (nnd_size kx = 0; kx < t->columns; kx++) {
        const float *in = t->in + *tap++;
        const vf w = nnd_load_any(weights + kx * NND_LANES);
        NND_UNROLL for (int p = 0; p < pixels; p++) found[p] += w * nnd_load(in + p * NND_LANES);
      }
      continue;
    }
    vf w[5];
    NND_UNROLL for (int kx = 0; kx < columns; kx++) w[kx] = nnd_load_any(weights + kx * NND_LANES);
    NND_UNROLL for (int f = 0; f < stride && f < columns; f++) {
      const float *in = t->in + *tap + f * t->phase;
      const int more = (columns - 1 - f) / stride; /* taps of a phase, less one */
      NND_UNROLL for (int i = 0; i < pixels + more; i++) {
        const vf x = nnd_load(in + i * NND_LANES);
        NND_UNROLL for (int k = 0; k <= more; k++)
          if (i - k >= 0 && i - k < pixels) found[i - k] += w[f + k * stride] * x;
      }
    }
    tap += columns;
  }
  if (t->of_column)
    NND_UNROLL for (int p = 0; p < pixels; p++) found[p] *= t->of_row * t->of_column[p];
  NND_UNROLL for (int p = 0; p < pixels; p++)
    nnd_store(t->out + p * NND_LANES, nnd_at_least(nnd_splat(t->low), found[p]));
}

/* The largest; a NaN in a window is its result. */
NND_INLINE void nnd_narrow_maxima(int pixels, const struct nnd_narrow *t) {
  vf found[NND_NARROW_MAXIMA];
  vi unordered[NND_NARROW_MAXIMA];
  NND_UNROLL for (int p = 0; p < pixels; p++) found[p] = nnd_splat(-__builtin_inff()), unordered[p] = (vi){0};
  NND_NO_UNROLL for (nnd_size tap = 0; tap < t->rows * t->columns; tap++) {
    const float *in = t->in + t->tap[tap];
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const vf value = nnd_load(in + p * NND_LANES);
      found[p] = nnd_at_least(value, found[p]);
      unordered[p] |= value != value;
    }
  }
  NND_UNROLL for (int p = 0; p < pixels; p++)
    nnd_store(t->out + p * NND_LANES, nnd_select(unordered[p], nnd_splat(__builtin_nanf("")), found[p]));
}

enum nnd_narrow_family {
  NND_NARROW_ANY,
  NND_NARROW_1,
  NND_NARROW_3_1,
  NND_NARROW_3_2,
  NND_NARROW_5_1,
  NND_NARROW_5_2,
  NND_NARROW_MAX
};

#define NND_EACH_NARROW(X)                                                                                             \
  X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define NND_DEFINE_SUMS(name, columns, stride, pixels)                                                                 \
  static void nnd_narrow_##name##_##pixels(const struct nnd_narrow *t) {                                               \
    if (pixels <= NND_NARROW_PIXELS) nnd_narrow_sums(columns, stride, pixels, t);                                      \
  }
#define NND_DEFINE_NARROW(pixels)                                                                                      \
  NND_DEFINE_SUMS(any, 0, 1, pixels) NND_DEFINE_SUMS(1, 1, 1, pixels)                                                  \
  NND_DEFINE_SUMS(3_1, 3, 1, pixels) NND_DEFINE_SUMS(3_2, 3, 2, pixels)                                                \
  NND_DEFINE_SUMS(5_1, 5, 1, pixels) NND_DEFINE_SUMS(5_2, 5, 2, pixels)                                                \
  static void nnd_narrow_max_##pixels(const struct nnd_narrow *t) {                                                    \
    if (pixels <= NND_NARROW_MAXIMA) nnd_narrow_maxima(pixels, t);                                                     \
  }
NND_EACH_NARROW(NND_DEFINE_NARROW)

#define NND_LISTED_NARROW(name)                                                                                        \
  {0,        name##_1, name##_2, name##_3,  name##_4,  name##_5,  name##_6, name##_7,                                  \
   name##_8, name##_9, name##_10, name##_11, name##_12, name##_13, name##_14}

/* By family and pixels; those of more pixels than there may be do nothing. */
static const nnd_narrow_unit nnd_narrow_units[7][15] = {
    NND_LISTED_NARROW(nnd_narrow_any), NND_LISTED_NARROW(nnd_narrow_1),   NND_LISTED_NARROW(nnd_narrow_3_1),
    NND_LISTED_NARROW(nnd_narrow_3_2), NND_LISTED_NARROW(nnd_narrow_5_1), NND_LISTED_NARROW(nnd_narrow_5_2),
    NND_LISTED_NARROW(nnd_narrow_max)};

/* The family for an axis of columns, of which taps may have been left out. */
NND_INLINE int nnd_narrow_family(struct nnd_axis x) {
  if (x.kernel == 1) return NND_NARROW_1;
  if (x.dilation != 1 || x.stride > 2 || (x.kernel != 3 && x.kernel != 5)) return NND_NARROW_ANY;
  return (x.kernel == 3 ? NND_NARROW_3_1 : NND_NARROW_5_1) + (int)x.stride - 1;
}

/* The way back: `pixels` vectors to planes of `held` channels. */
static void nnd_unpack_narrow(const float *from, nnd_size pixels, nnd_size held, nnd_size plane, float *to) {
  for (nnd_size pixel = 0; pixel < pixels; pixel += NND_LANES) {
    const nnd_size count = nnd_min(NND_LANES, pixels - pixel);
    vf rows[NND_LANES];
    NND_UNROLL for (int i = 0; i < NND_LANES; i++)
      rows[i] = i < count ? nnd_load_any(from + (pixel + i) * NND_LANES) : nnd_splat(0.0f);
    nnd_transpose(rows);
    NND_UNROLL for (int c = 0; c < NND_LANES; c++) {
      if (c >= held) continue;
      if (count == NND_LANES) nnd_store_any(to + c * plane + pixel, rows[c]);
      else nnd_store_first(to + c * plane + pixel, rows[c], count);
    }
  }
}

#endif
