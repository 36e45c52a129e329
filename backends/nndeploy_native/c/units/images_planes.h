/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing of images: the rows of a channel that some output rows read, with their borders, into memory where every tap
 * of a kernel is an offset. What lies anywhere in (N, C, H, W), at any strides, becomes
 *
 *   [phase of rows][phase of columns][row][pitch]
 *
 * where phase f of an axis holds the elements that a tap f reads for the output 0, 1, 2 ..., side by side. The pixels
 * of the output then follow each other in every tap's rows alike, with pitch - out_size pixels more behind each row.
 */
#ifndef NND_UNITS_IMAGES_PLANES_H
#define NND_UNITS_IMAGES_PLANES_H

#include "../step.h"
#include "some.h"

/* A tensor (N, C, H, W): element (n, c, y, x) lies at data + n * stride[0] + ... */
struct nnd_image {
  float *data;
  nnd_size stride[4];
};

/* Binds an axis: `stride` floats from one element to the next, beginning with element `offset`. */
NND_INLINE void nnd_bind_image(struct nnd_image *to, int axis, nnd_size stride, nnd_size offset) {
  to->stride[axis] = stride;
  to->data += offset * stride;
}

NND_INLINE float *nnd_plane_of(const struct nnd_image *image, nnd_size n, nnd_size channel) {
  return image->data + n * image->stride[0] + channel * image->stride[1];
}

/* Taps k and k + period of an axis read the same phase. */
NND_INLINE nnd_size nnd_phase_period(struct nnd_axis axis) {
  nnd_size a = axis.stride, b = axis.dilation;
  while (b) {
    const nnd_size rest = a % b;
    a = b;
    b = rest;
  }
  return axis.stride / a;
}
NND_INLINE nnd_size nnd_phases(struct nnd_axis axis) { return nnd_min(axis.kernel, nnd_phase_period(axis)); }

/* How many elements further in its phase tap k reads. */
NND_INLINE nnd_size nnd_tap_shift(struct nnd_axis axis, nnd_size k) { return k * axis.dilation / axis.stride; }

/* The layout of packed planes for `rows` output rows. */
struct nnd_planes {
  struct nnd_axis y, x;
  nnd_size phases_y, phases_x;
  nnd_size rows, pitch, phase, plane; /* rows of a phase; floats from row to row, phase to phase, channel to channel */
};

NND_INLINE struct nnd_planes nnd_planes_for(struct nnd_axis y, struct nnd_axis x, nnd_size rows) {
  struct nnd_planes p = {.y = y, .x = x, .phases_y = nnd_phases(y), .phases_x = nnd_phases(x),
                         .rows = rows + nnd_tap_shift(y, y.kernel - 1)};
  p.pitch = x.out_size + nnd_tap_shift(x, x.kernel - 1);
  p.phase = p.rows * p.pitch + NND_LANES;
  const nnd_size vectors = nnd_ceil_div(p.phases_y * p.phases_x * p.phase, NND_LANES) + 4; /* read, not used */
  p.plane = (vectors | 1) * NND_LANES; /* an odd number of vectors: planes meet other lines of the caches */
  return p;
}

NND_INLINE nnd_size nnd_tap_place(const struct nnd_planes *p, nnd_size ky, nnd_size kx) {
  const nnd_size phase = ky % nnd_phase_period(p->y) * p->phases_x + kx % nnd_phase_period(p->x);
  return phase * p->phase + nnd_tap_shift(p->y, ky) * p->pitch + nnd_tap_shift(p->x, kx);
}

/* Up to a vector behind what is filled or copied is written too: rows are written in order, each over what its
 * predecessor left there, and NND_LANES floats lie behind every phase. */
NND_INLINE void nnd_fill_row(float *to, nnd_size count, float value) {
  for (nnd_size i = 0; i < count; i += NND_LANES) nnd_store_any(to + i, nnd_splat(value));
}

/* `count` floats, `step` apart; nothing behind the last is read. */
NND_INLINE void nnd_copy_row(float *to, const float *from, nnd_size count, nnd_size step) {
  nnd_size i = 0;
  if (step == 1) {
    for (; i + NND_LANES <= count; i += NND_LANES) nnd_store_any(to + i, nnd_load_any(from + i));
    if (i < count) nnd_store_any(to + i, nnd_load_first(from + i, count - i, 0.0f));
  } else if (step == 2) {
    for (; i + NND_LANES < count; i += NND_LANES) {
      const vf low = nnd_load_any(from + 2 * i), high = nnd_load_any(from + 2 * i + NND_LANES);
      nnd_store_any(to + i, NND_EVERY_SECOND(low, high, 0));
    }
    const nnd_size left = 2 * (count - i) - 1; /* floats up to the last that is wanted */
    if (left <= 0) return;
    const vf low = nnd_load_first(from + 2 * i, nnd_min(left, NND_LANES), 0.0f);
    const vf high = nnd_load_first(from + 2 * i + NND_LANES, nnd_max(left - NND_LANES, 0), 0.0f);
    nnd_store_any(to + i, NND_EVERY_SECOND(low, high, 0));
  } else
    for (; i < count; i++) to[i] = from[i * step];
}

/* A row to its even and its odd columns, each from an element of a row of its phase on. */
NND_INLINE void nnd_split_row(const float *row, nnd_size size, float *even, nnd_size num_even, float *odd,
                              nnd_size num_odd) {
  for (nnd_size i = 0; i < num_even || i < num_odd; i += NND_LANES) {
    const nnd_size left = size - 2 * i;
    const int is_whole = left >= 2 * NND_LANES;
    const vf low = is_whole ? nnd_load_any(row + 2 * i) : nnd_load_first(row + 2 * i, nnd_min(left, NND_LANES), 0.0f);
    const vf high = is_whole ? nnd_load_any(row + 2 * i + NND_LANES)
                             : nnd_load_first(row + 2 * i + NND_LANES, nnd_max(left - NND_LANES, 0), 0.0f);
    if (i < num_even) nnd_store_any(even + i, NND_EVERY_SECOND(low, high, 0));
    if (i < num_odd) nnd_store_any(odd + i, NND_EVERY_SECOND(low, high, 1));
  }
}

/* nnd_pack_plane() where columns are two phases whose elements lie two floats apart: each row is read once. */
static void nnd_pack_halves(const struct nnd_planes *p, nnd_size first, nnd_size held, const float *from,
                            nnd_size row_stride, float fill, float *to) {
  const nnd_size pitch = p->pitch, pad = p->x.pad, is_odd = pad & 1; /* then phase 0 has the odd columns */
  const nnd_size even_at = (pad - is_odd) / 2, odd_at = (pad + is_odd) / 2;
  const nnd_size num_even = nnd_max(0, nnd_min((p->x.size + 1) / 2, pitch - even_at));
  const nnd_size num_odd = nnd_max(0, nnd_min(p->x.size / 2, pitch - odd_at));
  for (nnd_size fy = 0; fy < p->phases_y; fy++) {
    nnd_size y = first * p->y.stride + fy * p->y.dilation % p->y.stride - p->y.pad;
    float *even = to + (2 * fy + is_odd) * p->phase, *odd = to + (2 * fy + !is_odd) * p->phase;
    for (nnd_size i = 0; i < held; i++, y += p->y.stride, even += pitch, odd += pitch) {
      if (y < 0 || y >= p->y.size) {
        nnd_fill_row(even, pitch, fill);
        nnd_fill_row(odd, pitch, fill);
        continue;
      }
      nnd_fill_row(even, nnd_min(even_at, pitch), fill);
      nnd_fill_row(odd, nnd_min(odd_at, pitch), fill);
      nnd_split_row(from + y * row_stride, p->x.size, even + even_at, num_even, odd + odd_at, num_odd);
      nnd_fill_row(even + even_at + num_even, pitch - even_at - num_even, fill);
      nnd_fill_row(odd + odd_at + num_odd, pitch - odd_at - num_odd, fill);
    }
  }
}

/* What output rows of a channel read, from row `first` on, `rows` of them; `from` with strides of rows and columns. */
static void nnd_pack_plane(const struct nnd_planes *p, nnd_size first, nnd_size rows, const float *from,
                           const nnd_size *stride, float fill, float *to) {
  const nnd_size held = rows + nnd_tap_shift(p->y, p->y.kernel - 1), pitch = p->pitch, step = p->x.stride * stride[1];
  if (p->phases_x == 2 && step == 2 && p->x.pad >= 0) {
    nnd_pack_halves(p, first, held, from, stride[0], fill, to);
    return;
  }
  for (nnd_size fx = 0; fx < p->phases_x; fx++) { /* columns of the image that this phase has: [begin, end) of a row */
    const nnd_size before = p->x.pad - fx * p->x.dilation % p->x.stride;
    const nnd_size begin = nnd_min(pitch, nnd_max(0, nnd_ceil_div(before, p->x.stride)));
    const nnd_size end = nnd_max(begin, nnd_min(pitch, nnd_ceil_div(p->x.size + before, p->x.stride)));
    const float *column = from + (begin * p->x.stride - before) * stride[1];
    for (nnd_size fy = 0; fy < p->phases_y; fy++) {
      nnd_size y = first * p->y.stride + fy * p->y.dilation % p->y.stride - p->y.pad;
      float *row = to + (fy * p->phases_x + fx) * p->phase;
      for (nnd_size i = 0; i < held; i++, y += p->y.stride, row += pitch) {
        if (y < 0 || y >= p->y.size || begin == end) {
          nnd_fill_row(row, pitch, fill);
          continue;
        }
        nnd_fill_row(row, begin, fill);
        nnd_copy_row(row + begin, column + y * stride[0], end - begin, step);
        nnd_fill_row(row + end, pitch - end, fill);
      }
    }
  }
}

#endif
