/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of one channel: depthwise convolution, the largest and the mean of windows. A block is some output rows by all
 * columns, walked vector by vector; lanes are columns, planes are packed as images_planes.h says.
 *
 * Depthwise 3 x 3 and 5 x 5 and pooling of 2 x 2 and 3 x 3, all with stride 1 and 2, load a vector once for all output
 * rows that read it; other kernels load it for each tap. Of the last vector only the columns are stored: a variable
 * tail.
 */
#ifndef NND_UNITS_IMAGES_ROWS_H
#define NND_UNITS_IMAGES_ROWS_H

#include "images_planes.h"

#define NND_BLOCK_ROWS (NND_ACCUMULATORS < 20 ? 4 : 8) /* output rows, at most */

struct nnd_image_rows {
  const float *in; /* the packed plane, from the first output row of the block on */
  nnd_size pitch, phase, taps, columns;
  const nnd_size *tap, *number; /* where each tap lies, and its number among all of the kernel */
  const float *weights;         /* the bias, then one for each tap of the kernel */
  float *out;           /* rows of `columns` follow each other */
  float low;
  const float *of_row, *of_column; /* of a mean: one over the taps that count, of each row and column */
};

typedef void (*nnd_rows_unit)(const struct nnd_image_rows *t);

NND_INLINE void nnd_rows_store(const struct nnd_image_rows *t, int rows, nnd_size x, const vf *found) {
  const vf low = nnd_splat(t->low);
  if (x + NND_LANES <= t->columns) {
    NND_UNROLL for (int r = 0; r < rows; r++) nnd_store_any(t->out + r * t->columns + x, nnd_at_least(low, found[r]));
    return;
  }
  NND_UNROLL for (int r = 0; r < rows; r++)
    nnd_store_first(t->out + r * t->columns + x, nnd_at_least(low, found[r]), t->columns - x);
}

/* kernel x kernel, no dilation; `stride` is at most `kernel`. */
NND_INLINE void nnd_square_rows(int kernel, int stride, int rows, const struct nnd_image_rows *t) {
  vf w[25];
  NND_UNROLL for (int i = 0; i < kernel * kernel; i++) w[i] = nnd_splat(t->weights[1 + i]);
  const vf bias = nnd_splat(t->weights[0]);
  for (nnd_size x = 0; x < t->columns; x += NND_LANES) {
    vf sums[NND_BLOCK_ROWS];
    NND_UNROLL for (int r = 0; r < rows; r++) sums[r] = bias;
    NND_UNROLL for (int py = 0; py < stride; py++)
      NND_UNROLL for (int i = 0; i < rows + (kernel - 1 - py) / stride; i++)
        NND_UNROLL for (int kx = 0; kx < kernel; kx++) {
          const nnd_size phase = (py * stride + kx % stride) * t->phase;
          const vf pixels = nnd_load_any(t->in + phase + i * t->pitch + kx / stride + x);
          NND_UNROLL for (int ky = py; ky < kernel; ky += stride) {
            const int r = i - ky / stride;
            if (r >= 0 && r < rows) sums[r] += w[ky * kernel + kx] * pixels;
          }
        }
    nnd_rows_store(t, rows, x, sums);
  }
}

NND_INLINE void nnd_any_rows(int rows, const struct nnd_image_rows *t) {
  for (nnd_size x = 0; x < t->columns; x += NND_LANES) {
    vf sums[NND_BLOCK_ROWS];
    NND_UNROLL for (int r = 0; r < rows; r++) sums[r] = nnd_splat(t->weights[0]);
    for (nnd_size tap = 0; tap < t->taps; tap++) {
      const float *in = t->in + t->tap[tap] + x;
      const vf w = nnd_splat(t->weights[1 + t->number[tap]]);
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r] += w * nnd_load_any(in + r * t->pitch);
    }
    nnd_rows_store(t, rows, x, sums);
  }
}

/* The largest of one vector of columns; a NaN in a window is its result. */
NND_INLINE void nnd_max_vector(int rows, const struct nnd_image_rows *t, nnd_size x) {
  vf most[NND_BLOCK_ROWS];
  vi unordered[NND_BLOCK_ROWS];
  NND_UNROLL for (int r = 0; r < rows; r++) most[r] = nnd_splat(-__builtin_inff()), unordered[r] = (vi){0};
  for (nnd_size tap = 0; tap < t->taps; tap++) {
    const float *in = t->in + t->tap[tap] + x;
    NND_UNROLL for (int r = 0; r < rows; r++) {
      const vf value = nnd_load_any(in + r * t->pitch);
      most[r] = nnd_at_least(value, most[r]);
      unordered[r] |= value != value;
    }
  }
  const vf nan = nnd_splat(__builtin_nanf(""));
  NND_UNROLL for (int r = 0; r < rows; r++) most[r] = nnd_select(unordered[r], nan, most[r]);
  nnd_rows_store(t, rows, x, most);
}

NND_INLINE void nnd_max_rows(int rows, const struct nnd_image_rows *t) {
  for (nnd_size x = 0; x < t->columns; x += NND_LANES) nnd_max_vector(rows, t, x);
}

/* The sums of a window times its share. */
NND_INLINE void nnd_store_means(const struct nnd_image_rows *t, int rows, nnd_size x, vf *sums) {
  const vf of_column = nnd_load_any(t->of_column + x);
  NND_UNROLL for (int r = 0; r < rows; r++) sums[r] *= of_column * t->of_row[r];
  nnd_rows_store(t, rows, x, sums);
}

NND_INLINE void nnd_mean_rows(int rows, const struct nnd_image_rows *t) {
  for (nnd_size x = 0; x < t->columns; x += NND_LANES) {
    vf sums[NND_BLOCK_ROWS];
    NND_UNROLL for (int r = 0; r < rows; r++) sums[r] = nnd_splat(0.0f);
    for (nnd_size tap = 0; tap < t->taps; tap++) {
      const float *in = t->in + t->tap[tap] + x;
      NND_UNROLL for (int r = 0; r < rows; r++) sums[r] += nnd_load_any(in + r * t->pitch);
    }
    nnd_store_means(t, rows, x, sums);
  }
}

/* Pooling by kernel x kernel without dilation: the columns of a row first, once for all output rows that read it. A
 * vector that meets a NaN, or where floats that nobody wrote look like one, is done again by nnd_max_vector(). */
NND_INLINE void nnd_pooled_rows(int is_max, int kernel, int stride, int rows, const struct nnd_image_rows *t) {
  for (nnd_size x = 0; x < t->columns; x += NND_LANES) {
    vf found[NND_BLOCK_ROWS];
    vi unordered = {0};
    NND_UNROLL for (int r = 0; r < rows; r++) found[r] = nnd_splat(is_max ? -__builtin_inff() : 0.0f);
    NND_UNROLL for (int py = 0; py < stride; py++)
      NND_UNROLL for (int i = 0; i < rows + (kernel - 1 - py) / stride; i++) {
        vf pixels[3];
        NND_UNROLL for (int kx = 0; kx < kernel; kx++)
          pixels[kx] = nnd_load_any(t->in + (py * stride + kx % stride) * t->phase + i * t->pitch + kx / stride + x);
        vf row = pixels[0];
        NND_UNROLL for (int kx = 1; kx < kernel; kx++)
          row = is_max ? nnd_at_least(pixels[kx], row) : row + pixels[kx];
        if (is_max) unordered |= (pixels[0] != pixels[0]) | (pixels[kernel - 1] != pixels[kernel - 1]);
        if (is_max && kernel == 3 && stride == 2) unordered |= pixels[1] != pixels[1];
        NND_UNROLL for (int ky = py; ky < kernel; ky += stride) {
          const int r = i - ky / stride;
          if (r >= 0 && r < rows) found[r] = is_max ? nnd_at_least(row, found[r]) : found[r] + row;
        }
      }
    if (!is_max) nnd_store_means(t, rows, x, found);
    else if (nnd_is_any(unordered)) nnd_max_vector(rows, t, x);
    else nnd_rows_store(t, rows, x, found);
  }
}

/* What a family of units is instantiated for: the kernels that are known, and the others. */
enum nnd_rows_family {
  NND_ROWS_3_1,
  NND_ROWS_3_2,
  NND_ROWS_5_1,
  NND_ROWS_5_2,
  NND_ROWS_ANY,
  NND_ROWS_MAX,
  NND_ROWS_MAX_2_1,
  NND_ROWS_MAX_2_2,
  NND_ROWS_MAX_3_1,
  NND_ROWS_MAX_3_2,
  NND_ROWS_MEAN,
  NND_ROWS_MEAN_2_1,
  NND_ROWS_MEAN_2_2,
  NND_ROWS_MEAN_3_1,
  NND_ROWS_MEAN_3_2
};

#define NND_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define NND_DEFINE_ROWS_OF(name, rows, call)                                                                           \
  static void nnd_rows_##name##_##rows(const struct nnd_image_rows *t) {                                               \
    if (rows <= NND_BLOCK_ROWS) call;                                                                                  \
  }
#define NND_DEFINE_WINDOWS(name, is_max, rows)                                                                         \
  NND_DEFINE_ROWS_OF(name##_2_1, rows, nnd_pooled_rows(is_max, 2, 1, rows, t))                                         \
  NND_DEFINE_ROWS_OF(name##_2_2, rows, nnd_pooled_rows(is_max, 2, 2, rows, t))                                         \
  NND_DEFINE_ROWS_OF(name##_3_1, rows, nnd_pooled_rows(is_max, 3, 1, rows, t))                                         \
  NND_DEFINE_ROWS_OF(name##_3_2, rows, nnd_pooled_rows(is_max, 3, 2, rows, t))
#define NND_DEFINE_ROWS(rows)                                                                                          \
  NND_DEFINE_ROWS_OF(3_1, rows, nnd_square_rows(3, 1, rows, t))                                                        \
  NND_DEFINE_ROWS_OF(3_2, rows, nnd_square_rows(3, 2, rows, t))                                                        \
  NND_DEFINE_ROWS_OF(5_1, rows, nnd_square_rows(5, 1, rows, t))                                                        \
  NND_DEFINE_ROWS_OF(5_2, rows, nnd_square_rows(5, 2, rows, t))                                                        \
  NND_DEFINE_ROWS_OF(any, rows, nnd_any_rows(rows, t))                                                                 \
  NND_DEFINE_ROWS_OF(max, rows, nnd_max_rows(rows, t))                                                                 \
  NND_DEFINE_WINDOWS(max, 1, rows)                                                                                     \
  NND_DEFINE_ROWS_OF(mean, rows, nnd_mean_rows(rows, t))                                                               \
  NND_DEFINE_WINDOWS(mean, 0, rows)
NND_EACH_ROWS(NND_DEFINE_ROWS)

#define NND_LISTED_ROWS(name) {0,        name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8}
#define NND_LISTED_WINDOWS(name)                                                                                       \
  NND_LISTED_ROWS(name), NND_LISTED_ROWS(name##_2_1), NND_LISTED_ROWS(name##_2_2), NND_LISTED_ROWS(name##_3_1),        \
      NND_LISTED_ROWS(name##_3_2)

/* By family and rows; those of more rows than NND_BLOCK_ROWS do nothing. */
static const nnd_rows_unit nnd_rows_units[15][9] = {
    NND_LISTED_ROWS(nnd_rows_3_1), NND_LISTED_ROWS(nnd_rows_3_2), NND_LISTED_ROWS(nnd_rows_5_1),
    NND_LISTED_ROWS(nnd_rows_5_2), NND_LISTED_ROWS(nnd_rows_any), NND_LISTED_WINDOWS(nnd_rows_max),
    NND_LISTED_WINDOWS(nnd_rows_mean),
};

/* The family for axes of which taps may have been left out; `any` is that of all kernels that are not known. */
static int nnd_rows_family_of(enum nnd_rows_family any, struct nnd_axis y, struct nnd_axis x) {
  const int is_square = y.kernel == x.kernel && y.stride == x.stride && y.dilation == 1 && x.dilation == 1;
  if (!is_square || x.stride > 2) return any;
  if (any == NND_ROWS_ANY) {
    if (x.kernel != 3 && x.kernel != 5) return any;
    return (x.kernel == 3 ? NND_ROWS_3_1 : NND_ROWS_5_1) + (int)x.stride - 1;
  }
  return x.kernel != 2 && x.kernel != 3 ? (int)any : (int)any + 2 * (int)x.kernel - 4 + (int)x.stride;
}

#endif
