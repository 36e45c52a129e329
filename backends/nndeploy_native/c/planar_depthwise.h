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

#include "step.h"

#define NND_PLANAR_TILE (NND_ACCUMULATORS < 20 ? 4 : 8) /* output rows */
#define NND_PLANAR_TAPS 49 /* of the largest kernel: PLANAR_TAPS of steps/separable.py */

/* The columns of copied rows: each row is `stride` phases of `phase` floats, padded column j at j / stride of phase
 * j % stride. The pixels of a phase begin at `left`, before and behind them are zeros. steps/separable.py counts both:
 * whole vectors that hold what the last vector of outputs reads, and the last vector of pixels. */
struct nnd_planar_row {
  struct nnd_axis x;
  nnd_size left, phase;
};

NND_INLINE nnd_size nnd_planar_pitch(struct nnd_planar_row row) { return row.x.stride * row.phase; }

/* Where padded column `column` lies in a copied row. */
NND_INLINE nnd_size nnd_planar_place(struct nnd_planar_row row, nnd_size column) {
  const nnd_size phase = column % row.x.stride, before = nnd_max(0, row.x.pad - phase);
  return phase * row.phase + row.left - nnd_ceil_div(before, row.x.stride) + column / row.x.stride;
}

/* Zeros from lane `count` on. */
NND_INLINE vf nnd_first_lanes(vf x, nnd_size count) {
  vi mask = {0};
  NND_UNROLL for (int lane = 0; lane < NND_LANES; lane++) mask[lane] = lane < count ? -1 : 0;
  NND_OPAQUE(mask);
  return (vf)((vi)x & mask);
}

/* Columns from `column` on, NND_LANES of each phase, and zeros behind the last; there may be fewer in the row. */
NND_INLINE void nnd_planar_copy_columns(struct nnd_planar_row as, nnd_size column, const float *row, float *to) {
  const struct nnd_axis x = as.x;
  vf loaded[2];
  NND_UNROLL for (int i = 0; i < x.stride; i++) loaded[i] = nnd_load_any(row + column + i * NND_LANES);
  NND_UNROLL for (int e = 0; e < x.stride; e++) {
    const vf of_phase = x.stride == 1 ? loaded[0]
                        : e == 0      ? NND_EVERY_SECOND(loaded[0], loaded[1], 0)
                                      : NND_EVERY_SECOND(loaded[0], loaded[1], 1);
    const nnd_size held = nnd_ceil_div(x.size - column - e, x.stride);
    nnd_store(to + nnd_planar_place(as, x.pad + column + e),
              held < NND_LANES ? nnd_first_lanes(of_phase, held) : of_phase);
  }
}

/* Rows [from, to) of a plane; `behind` is the end of memory. */
NND_INLINE void nnd_planar_copy(struct nnd_planar_row as, nnd_size from, nnd_size to, const float *plane,
                                const float *behind, float *rows) {
  const struct nnd_axis x = as.x;
  const nnd_size at_once = NND_LANES * x.stride, whole = x.size / at_once * at_once;
  const float *row = plane + from * x.size;
  for (nnd_size y = from; y < to; y++, row += x.size, rows += nnd_planar_pitch(as)) {
    nnd_size column = 0;
    if (x.stride <= 2) {
      NND_UNROLL for (; column < whole; column += at_once) nnd_planar_copy_columns(as, column, row, rows);
      if (whole < x.size && row + whole + at_once <= behind) {
        nnd_planar_copy_columns(as, whole, row, rows);
        continue;
      }
    }
    for (; column < x.size; column++) rows[nnd_planar_place(as, x.pad + column)] = row[column];
  }
}

struct nnd_planar_depthwise {
  struct nnd_axis y;
  struct nnd_planar_row row;
  struct nnd_end end; /* no residual */
  nnd_size channels, copied; /* floats of the memory for the rows that a window reads of NND_GROUP channels */
};

/* Sums of `count` output rows from `row` on, one vector of columns from `column` on, of one channel. `rows` are the
 * copied ones, `held` the first of them. */
NND_INLINE void nnd_planar_sums(struct nnd_axis y, struct nnd_planar_row as, int count, nnd_size row, nnd_size column,
                                nnd_size held, const float *rows, const vf *weights, vf bias, vf *sums) {
  const struct nnd_axis x = as.x;
  NND_UNROLL for (int r = 0; r < count; r++) sums[r] = bias;
  const nnd_size top = row * y.stride - y.pad, span = (count - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
  NND_UNROLL for (nnd_size below = 0; below < span; below++) {
    if (top + below < 0 || top + below >= y.size) continue;
    const float *from = rows + (top + below - held) * nnd_planar_pitch(as) + column;
    NND_UNROLL for (int kx = 0; kx < x.kernel; kx++) {
      const vf pixels = nnd_load_any(from + nnd_planar_place(as, kx * x.dilation));
      NND_UNROLL for (int r = 0; r < count; r++) {
        const nnd_size ahead = below - r * y.stride, ky = ahead / y.dilation;
        if (ahead >= 0 && ahead % y.dilation == 0 && ky < y.kernel)
          sums[r] += weights[ky * x.kernel + kx] * pixels;
      }
    }
  }
}

/* `count` output rows from `row` on of the NND_GROUP channels from `channel` on, to [row][column][NND_GROUP]. */
NND_INLINE void nnd_planar_tiles(struct nnd_planar_depthwise s, int count, nnd_size row, nnd_size channel,
                                 nnd_size held, const float *rows, const float *weights, const float *bias,
                                 const float *numbers, nnd_elem *out) {
  const nnd_size width = s.row.x.out_size, taps = s.y.kernel * s.row.x.kernel;
  vf w[NND_GROUP][NND_PLANAR_TAPS], first[NND_GROUP], number[NND_GROUP]; /* stores could be to memory that is read */
  NND_UNROLL for (int g = 0; g < NND_GROUP; g++) {
    const nnd_size one = nnd_min(channel + g, s.channels - 1); /* beside the last: its double, which weighs nothing */
    const float *of_one = weights + one / NND_LANES * taps * NND_LANES + one % NND_LANES;
    NND_UNROLL for (nnd_size tap = 0; tap < taps; tap++) w[g][tap] = nnd_splat(of_one[tap * NND_LANES]);
    first[g] = nnd_splat(bias[one]);
    number[g] = nnd_splat(s.end.number ? numbers[one] : 0.0f);
  }
  for (nnd_size begin = 0; begin < width; begin += NND_LANES) {
    const nnd_size column = nnd_max(0, nnd_min(begin, width - NND_LANES));
    vf sums[NND_GROUP][NND_PLANAR_TILE];
    NND_UNROLL for (int g = 0; g < NND_GROUP; g++) {
      nnd_planar_sums(s.y, s.row, count, row, column, held, rows + g * s.copied / NND_GROUP, w[g], first[g], sums[g]);
      NND_UNROLL for (int r = 0; r < count; r++) sums[g][r] = nnd_end_sum(&s.end, sums[g][r], 0, 0, number[g]);
    }
    NND_UNROLL for (int r = 0; r < count; r++)
      nnd_write_group(out + (r * width + column) * NND_GROUP, sums[0][r], sums[NND_GROUP - 1][r]);
  }
}

NND_INLINE void nnd_planar_copy_group(struct nnd_planar_depthwise s, nnd_size channel, nnd_size from, nnd_size to,
                                      const float *in, const float *behind, float *rows) {
  for (nnd_size g = 0; g < NND_GROUP; g++)
    nnd_planar_copy(s.row, from, to, in + nnd_min(channel + g, s.channels - 1) * s.y.size * s.row.x.size, behind,
                    rows + g * s.copied / NND_GROUP);
}

/* `count` output rows from `row` on of all channels, to [channels / NND_GROUP][row][column][NND_GROUP]; writes up to a
 * vector of groups more. Memory of the input ends at `behind`. `rows` is memory of zeros for copied rows, twice:
 * channels are copied before the ones before them are worked on, for what was just stored in other vectors is loaded
 * late. */
NND_INLINE void nnd_planar_depthwise(struct nnd_planar_depthwise s, nnd_size count, nnd_size row, const float *in,
                                     const float *behind, const float *weights, const float *bias,
                                     const float *numbers, float *rows, nnd_elem *out) {
  const nnd_size row_elems = s.row.x.out_size * NND_GROUP, whole = count / NND_PLANAR_TILE * NND_PLANAR_TILE;
  const nnd_size from = nnd_first_row(s.y, row), to = nnd_end_row(s.y, row + count);
  float *next = rows + s.copied;
  nnd_planar_copy_group(s, 0, from, to, in, behind, rows);
  for (nnd_size channel = 0; channel < s.channels; channel += NND_GROUP, out += count * row_elems) {
    if (channel + NND_GROUP < s.channels)
      nnd_planar_copy_group(s, channel + NND_GROUP, from, to, in, behind, next);
    for (nnd_size r = 0; r < whole; r += NND_PLANAR_TILE)
      nnd_planar_tiles(s, NND_PLANAR_TILE, row + r, channel, from, rows, weights, bias, numbers,
                       out + r * row_elems);
    if (whole < count)
      nnd_planar_tiles(s, (int)(count - whole), row + whole, channel, from, rows, weights, bias, numbers,
                       out + whole * row_elems);
    float *done = rows;
    rows = next;
    next = done;
  }
}

#endif
