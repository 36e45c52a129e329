/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution on planes, in the order of ONNX: each lane is a pixel of one channel, nothing is transposed.
 *
 * The rows that a window reads of a channel are copied to where they stay in the first cache, with their padding, so
 * that the kernel knows no left or right edge, and with a stride column by column in turn into as many phases, so that
 * what the pixels of a vector read lies side by side. A tile is some output rows x one vector of columns: a vector of
 * the input is loaded once for all output rows of the tile. The last vector of a row overlaps the one before; where a
 * row is narrower than a vector, what is beyond it is overwritten by the row after it.
 */
#ifndef NND_PLANAR_DEPTHWISE_H
#define NND_PLANAR_DEPTHWISE_H

#include "base/step.h"

#define NND_PLANAR_TILE (NND_ACCUMULATORS < 20 ? 4 : 8) /* output rows */
#define NND_PLANAR_TAPS 5                               /* columns of the widest kernel that is compiled in */

/* A copied row is `stride` phases of `phase` floats, padded column j at j / stride of phase j % stride. The pixels of a
 * phase begin at `left`, before and behind them are zeros. `places`: where each column of the kernel reads. */
struct nnd_planar_depthwise {
  struct nnd_axis y, x;
  struct nnd_end end; /* no residual */
  nnd_size channels, left, phase;
  nnd_size copied;    /* floats of the memory for the rows that a window reads of a channel */
  nnd_size out_plane; /* floats from channel to channel of what is made */
  const nnd_size *places;
};

/* Where padded column `column` lies in a copied row. */
NND_INLINE nnd_size nnd_planar_place(const struct nnd_planar_depthwise *s, nnd_size column) {
  const nnd_size stride = s->x.stride, phase = column % stride, before = nnd_max(0, s->x.pad - phase);
  return phase * s->phase + s->left - nnd_ceil_div(before, stride) + column / stride;
}

/* Sets `left` and `phase`: whole vectors that hold what the last vector of outputs reads, and the last vector of
 * pixels. */
NND_INLINE void nnd_planar_row_of(struct nnd_planar_depthwise *s) {
  const struct nnd_axis x = s->x;
  s->left = nnd_blocks(nnd_ceil_div(x.pad, x.stride)) * NND_LANES;
  const nnd_size read = nnd_blocks(x.out_size) * NND_LANES + (x.kernel - 1) * x.dilation / x.stride;
  s->phase = s->left + nnd_blocks(nnd_max(read, nnd_ceil_div(x.size, x.stride))) * NND_LANES;
}

/* Zeros from lane `count` on. */
NND_INLINE vf nnd_first_lanes(vf x, nnd_size count) {
  vi mask = {0};
  NND_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++) mask[lane] = lane < count ? -1 : 0;
  NND_OPAQUE(mask);
  return (vf)((vi)x & mask);
}

/* Columns from `column` on, NND_LANES of each of `stride` phases, at `place` of the first, and zeros behind the last
 * column; there may be fewer in the row. */
NND_INLINE void nnd_planar_copy_columns(const struct nnd_planar_depthwise *s, int stride, nnd_size column,
                                        const float *row, const nnd_size *place, float *to) {
  vf loaded[2];
  NND_UNROLL
  for (int i = 0; i < stride; i++) loaded[i] = nnd_load_any(row + column + i * NND_LANES);
  NND_UNROLL
  for (int e = 0; e < stride; e++) {
    const vf of_phase = stride == 1 ? loaded[0]
                        : e == 0    ? NND_EVERY_SECOND(loaded[0], loaded[1], 0)
                                    : NND_EVERY_SECOND(loaded[0], loaded[1], 1);
    const nnd_size held = nnd_ceil_div(s->x.size - column - e, stride);
    const vf kept = held < NND_LANES ? nnd_first_lanes(of_phase, nnd_max(0, held)) : of_phase;
    nnd_store(to + place[e] + column / stride, kept);
  }
}

/* Rows [from, to) of a plane; `behind` is the end of memory. */
NND_INLINE void nnd_planar_copy(const struct nnd_planar_depthwise *s, int stride, nnd_size from, nnd_size to,
                                const float *plane, const float *behind, float *rows) {
  const struct nnd_axis x = s->x;
  const nnd_size at_once = NND_LANES * stride, whole = x.size / at_once * at_once;
  const nnd_size place[2] = {nnd_planar_place(s, x.pad), nnd_planar_place(s, x.pad + 1)};
  const float *row = plane + from * x.size;
  for (nnd_size y = from; y < to; y++, row += x.size, rows += x.stride * s->phase) {
    nnd_size column = 0;
    for (; column < whole; column += at_once) nnd_planar_copy_columns(s, stride, column, row, place, rows);
    if (whole < x.size && behind - row >= whole + at_once)
      nnd_planar_copy_columns(s, stride, whole, row, place, rows);
    else
      for (; column < x.size; column++) rows[place[column % stride] + column / stride] = row[column];
  }
}

NND_INLINE void nnd_planar_copy_channel(const struct nnd_planar_depthwise *s, nnd_size from, nnd_size to,
                                        const float *plane, const float *behind, float *rows) {
  if (s->x.stride == 1)
    nnd_planar_copy(s, 1, from, to, plane, behind, rows);
  else if (s->x.stride == 2)
    nnd_planar_copy(s, 2, from, to, plane, behind, rows);
  else
    for (nnd_size y = from; y < to; y++, rows += s->x.stride * s->phase)
      for (nnd_size column = 0; column < s->x.size; column++)
        rows[nnd_planar_place(s, s->x.pad + column)] = plane[y * s->x.size + column];
}

/* `count` output rows from `row` on of one channel; `rows` are the copied ones, `held` the first of them. */
NND_INLINE void nnd_planar_tiles(const struct nnd_planar_depthwise *s, int kernel, int stride, int count, nnd_size row,
                                 nnd_size held, const float *rows, const float *weights, float bias, float number,
                                 float *out) {
  const nnd_size width = s->x.out_size, pitch = stride * s->phase, top = row * stride - s->y.pad;
  vf w[NND_PLANAR_TAPS * NND_PLANAR_TAPS]; /* stores could be to memory that is read */
  nnd_size places[NND_PLANAR_TAPS];
  NND_UNROLL
  for (int tap = 0; tap < kernel * kernel; tap++) w[tap] = nnd_splat(weights[tap]);
  NND_UNROLL
  for (int kx = 0; kx < kernel; kx++) places[kx] = s->places[kx];
  for (nnd_size begin = 0; begin < width; begin += NND_LANES) {
    const nnd_size column = nnd_max(0, nnd_min(begin, width - NND_LANES));
    vf sums[NND_PLANAR_TILE];
    NND_UNROLL
    for (int r = 0; r < count; r++) sums[r] = nnd_splat(bias);
    NND_UNROLL
    for (int below = 0; below < (count - 1) * stride + kernel; below++) {
      if (top + below < 0 || top + below >= s->y.size) continue;
      const float *from = rows + (top + below - held) * pitch + column;
      NND_UNROLL
      for (int kx = 0; kx < kernel; kx++) {
        const vf pixels = nnd_load_any(from + places[kx]);
        NND_UNROLL
        for (int r = 0; r < count; r++) {
          const int ky = below - r * stride;
          if (ky >= 0 && ky < kernel) sums[r] += w[ky * kernel + kx] * pixels;
        }
      }
    }
    nnd_end_sums(&s->end, sums, count, 0, nnd_splat(number));
    NND_UNROLL
    for (int r = 0; r < count; r++) nnd_store_any(out + r * width + column, sums[r]);
  }
}

/* The same of one row, whatever the kernel, strides and dilations. */
NND_INLINE void nnd_planar_any_row(const struct nnd_planar_depthwise *s, nnd_size row, nnd_size held, const float *rows,
                                   const float *weights, float bias, float number, float *out) {
  const nnd_size width = s->x.out_size, pitch = s->x.stride * s->phase, top = row * s->y.stride - s->y.pad;
  const nnd_size first = nnd_tap_begin(s->y, top), last = nnd_tap_end(s->y, top);
  for (nnd_size begin = 0; begin < width; begin += NND_LANES) {
    const nnd_size column = nnd_max(0, nnd_min(begin, width - NND_LANES));
    vf sums[1] = {nnd_splat(bias)};
    for (nnd_size ky = first; ky < last; ky++) {
      const float *from = rows + (top + ky * s->y.dilation - held) * pitch + column;
      const float *of_row = weights + ky * s->x.kernel;
      for (nnd_size kx = 0; kx < s->x.kernel; kx++) sums[0] += nnd_load_any(from + s->places[kx]) * of_row[kx];
    }
    nnd_end_sums(&s->end, sums, 1, 0, nnd_splat(number));
    nnd_store_any(out + column, sums[0]);
  }
}

/* All rows of a channel: as many as fit the registers at a time, then fewer. */
NND_INLINE void nnd_planar_rows(const struct nnd_planar_depthwise *s, int kernel, int stride, nnd_size count,
                                nnd_size row, nnd_size held, const float *rows, const float *weights, float bias,
                                float number, float *out) {
  nnd_size r = 0;
  for (; count - r >= NND_PLANAR_TILE; r += NND_PLANAR_TILE)
    nnd_planar_tiles(s, kernel, stride, NND_PLANAR_TILE, row + r, held, rows, weights, bias, number,
                     out + r * s->x.out_size);
  for (; count - r >= NND_PLANAR_TILE / 2; r += NND_PLANAR_TILE / 2)
    nnd_planar_tiles(s, kernel, stride, NND_PLANAR_TILE / 2, row + r, held, rows, weights, bias, number,
                     out + r * s->x.out_size);
  for (; r < count; r++)
    nnd_planar_tiles(s, kernel, stride, 1, row + r, held, rows, weights, bias, number, out + r * s->x.out_size);
}

static void nnd_planar_channel(const struct nnd_planar_depthwise *s, nnd_size count, nnd_size row, nnd_size held,
                               const float *rows, const float *weights, float bias, float number, float *out) {
  const struct nnd_axis y = s->y, x = s->x;
  const int is_even = y.kernel == x.kernel && y.stride == x.stride && y.dilation == 1 && x.dilation == 1;
#define NND_PLANAR_CASE(K, S)                                                                                          \
  if (is_even && x.kernel == K && x.stride == S) {                                                                     \
    nnd_planar_rows(s, K, S, count, row, held, rows, weights, bias, number, out);                                      \
    return;                                                                                                            \
  }
  NND_PLANAR_CASE(3, 1)
  NND_PLANAR_CASE(3, 2)
  NND_PLANAR_CASE(5, 1)
  NND_PLANAR_CASE(5, 2)
#undef NND_PLANAR_CASE
  for (nnd_size r = 0; r < count; r++)
    nnd_planar_any_row(s, row + r, held, rows, weights, bias, number, out + r * x.out_size);
}

/* `count` output rows from `row` on of all channels, to planes; writes up to a vector behind the last. `in` is the
 * image, memory of the input ends at `behind`; `weights`: [channels][kernel rows][kernel columns]. `rows` is memory of
 * zeros for copied rows, twice: channels are copied before the ones before them are worked on, for what was just stored
 * in other vectors is loaded late. */
static void nnd_planar_depthwise(const struct nnd_planar_depthwise *s, nnd_size count, nnd_size row, const float *in,
                                 const float *behind, const float *weights, const float *bias, const float *numbers,
                                 float *rows, float *out) {
  const nnd_size from = nnd_first_row(s->y, row), to = nnd_end_row(s->y, row + count);
  const nnd_size plane = s->y.size * s->x.size, taps = s->y.kernel * s->x.kernel;
  float *next = rows + s->copied;
  nnd_planar_copy_channel(s, from, to, in, behind, rows);
  for (nnd_size channel = 0; channel < s->channels; channel++) {
    if (channel + 1 < s->channels) nnd_planar_copy_channel(s, from, to, in + (channel + 1) * plane, behind, next);
    nnd_planar_channel(s, count, row, from, rows, weights + channel * taps, bias[channel],
                       s->end.number ? numbers[channel] : 0.0f, out + channel * s->out_plane);
    float *done = rows;
    rows = next;
    next = done;
  }
}

#endif
