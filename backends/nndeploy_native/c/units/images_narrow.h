/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of one channel for images of few columns: lanes are channels. The rows that a window reads of NND_LANES
 * channels are transposed to [row][column][channel] with their borders; so one vector is one pixel, whatever the width.
 */
#ifndef NND_UNITS_IMAGES_NARROW_H
#define NND_UNITS_IMAGES_NARROW_H

#include "../layout.h"
#include "images_planes.h"

#define NND_NARROW_PIXELS 8 /* of a row, that a unit computes at once */

enum nnd_narrow_kind { NND_NARROW_SUM, NND_NARROW_MAX, NND_NARROW_MEAN };

struct nnd_narrow {
  const float *in;     /* the pixel that tap 0 of the first output reads */
  nnd_size step, taps; /* floats from what one output reads to what the next one does */
  const nnd_size *tap;
  const float *weights; /* [bias, then taps][NND_LANES] */
  float *out;
  float low;
  float of_row;
  const float *of_column; /* of a mean: one over the taps that count */
};

typedef void (*nnd_narrow_unit)(const struct nnd_narrow *t);

NND_INLINE void nnd_narrow_pixels(int kind, int pixels, const struct nnd_narrow *t) {
  vf found[NND_NARROW_PIXELS];
  vi unordered[NND_NARROW_PIXELS];
  const vf first = kind == NND_NARROW_SUM ? nnd_load_any(t->weights)
                                          : nnd_splat(kind == NND_NARROW_MAX ? -__builtin_inff() : 0.0f);
  NND_UNROLL for (int p = 0; p < pixels; p++) found[p] = first, unordered[p] = (vi){0};
  NND_NO_UNROLL for (nnd_size tap = 0; tap < t->taps; tap++) {
    const float *in = t->in + t->tap[tap];
    const vf w = kind == NND_NARROW_SUM ? nnd_load_any(t->weights + (tap + 1) * NND_LANES) : first;
    NND_UNROLL for (int p = 0; p < pixels; p++) {
      const vf value = nnd_load_any(in + p * t->step);
      if (kind == NND_NARROW_SUM) found[p] += w * value;
      else if (kind == NND_NARROW_MEAN) found[p] += value;
      else {
        found[p] = nnd_at_least(value, found[p]);
        unordered[p] |= value != value;
      }
    }
  }
  NND_UNROLL for (int p = 0; p < pixels; p++) {
    if (kind == NND_NARROW_MAX) found[p] = nnd_select(unordered[p], nnd_splat(__builtin_nanf("")), found[p]);
    if (kind == NND_NARROW_MEAN) found[p] *= t->of_row * t->of_column[p];
    nnd_store_any(t->out + p * NND_LANES, nnd_at_least(nnd_splat(t->low), found[p]));
  }
}

#define NND_EACH_NARROW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define NND_DEFINE_NARROW(pixels)                                                                                      \
  static void nnd_narrow_sum_##pixels(const struct nnd_narrow *t) { nnd_narrow_pixels(NND_NARROW_SUM, pixels, t); }    \
  static void nnd_narrow_max_##pixels(const struct nnd_narrow *t) { nnd_narrow_pixels(NND_NARROW_MAX, pixels, t); }    \
  static void nnd_narrow_mean_##pixels(const struct nnd_narrow *t) { nnd_narrow_pixels(NND_NARROW_MEAN, pixels, t); }
NND_EACH_NARROW(NND_DEFINE_NARROW)

#define NND_LISTED_NARROW(name)                                                                                        \
  {0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8}
static const nnd_narrow_unit nnd_narrow_units[3][NND_NARROW_PIXELS + 1] = {
    NND_LISTED_NARROW(nnd_narrow_sum), NND_LISTED_NARROW(nnd_narrow_max), NND_LISTED_NARROW(nnd_narrow_mean)};

/* Columns of what is packed, with borders. */
NND_INLINE nnd_size nnd_narrow_columns(struct nnd_axis x) {
  return (x.out_size - 1) * x.stride + (x.kernel - 1) * x.dilation + 1;
}
NND_INLINE nnd_size nnd_narrow_rows(struct nnd_axis y, nnd_size rows) {
  return (rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
}

/* `pixels` <= NND_LANES neighbours of `held` channels, `plane` floats apart, to vectors. */
NND_INLINE void nnd_narrow_load(const float *from, nnd_size held, nnd_size plane, nnd_size pixels, vf *to) {
  NND_UNROLL for (int c = 0; c < NND_LANES; c++)
    to[c] = c >= held            ? nnd_splat(0.0f)
            : pixels < NND_LANES ? nnd_load_first(from + c * plane, pixels, 0.0f)
                                 : nnd_load_any(from + c * plane);
  nnd_transpose(to);
}

/* What `rows` output rows from `first` on read of `held` channels; `from` is the first one's plane, whose rows follow
 * each other, `plane` floats from one to the next. */
static void nnd_pack_narrow(struct nnd_axis y, struct nnd_axis x, nnd_size first, nnd_size rows, const float *from,
                            nnd_size plane, nnd_size held, float fill, float *to) {
  const nnd_size columns = nnd_narrow_columns(x), all = nnd_narrow_rows(y, rows), top = first * y.stride - y.pad;
  const nnd_size begin = nnd_max(0, top), end = nnd_min(y.size, top + all), width = nnd_min(x.size, columns - x.pad);
  for (nnd_size i = 0; i < all * columns; i++) {
    const nnd_size row = i / columns + top;
    if (row >= begin && row < end && i % columns == x.pad && width > 0) i += width - 1;
    else nnd_store_any(to + i * NND_LANES, nnd_splat(fill));
  }
  nnd_size row = begin, column = 0;
  for (nnd_size pixel = begin * x.size; pixel < end * x.size; pixel += NND_LANES) {
    const nnd_size count = nnd_min(NND_LANES, end * x.size - pixel);
    vf loaded[NND_LANES];
    nnd_narrow_load(from + pixel, held, plane, count, loaded);
    for (nnd_size i = 0; i < count; i++) {
      if (column < width) nnd_store_any(to + ((row - top) * columns + x.pad + column) * NND_LANES, loaded[i]);
      if (++column == x.size) column = 0, row++;
    }
  }
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
