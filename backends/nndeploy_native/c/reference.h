/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain versions of all kernels: correct, readable, one thread. Faster templates replace them one by one.
 *
 * Formats (tensors.py, steps/): blocked tensors are (N, ceil(C / c), H, W, c), c = NND_LANES; what padding lanes hold, nobody reads.
 * Weights of a dense kernel are [O / panel][H][W][I][panel], panel = NND_PANEL_LANES; biases are padded to a panel.
 * An epilogue takes the sum, the residual at the same place (0 without one) and a number of the channel.
 * Sizes are compile-time constants of the step that calls.
 */
#ifndef NND_REFERENCE_H
#define NND_REFERENCE_H

#include "expression.h"

#define NND_L NND_LANES
#define NND_P (NND_PANEL_LANES / NND_LANES)
#define NND_TILE 6

typedef vx (*nnd_epilogue)(vx x, vx residual, vx channel);

struct nnd_call {
  const void *const *inputs;
  void *const *outputs;
  const char *constants;
  char *arena;
  long num_threads;
};

struct nnd_images {
  long batch, in_c, in_h, in_w, out_c, out_h, out_w;
  long kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w, groups;
  long window_rows, window_columns, window_channels;         /* separable, inverted residual */
  long has_residual, stream, prefetch_weights, prefetch_input; /* templates */
  long mid_c;                                                /* inverted residual */
  long pad_bottom, pad_right, includes_padding;              /* pooling */
};

NNDX long nnd_blocks_of(long channels) { return (channels + NND_L - 1) / NND_L; }
NNDX long nnd_least(long a, long b) { return a < b ? a : b; }
NNDX long nnd_most(long a, long b) { return a > b ? a : b; }

/* Zeros the lanes of block `block` beyond channel `channels`: epilogues may turn padding into anything. */
NNDX vx nnd_masked(vx x, long block, long channels) {
  if ((block + 1) * NND_L <= channels) return x;
  for (long lane = 0; lane < NND_L; lane++)
    if (block * NND_L + lane >= channels) x[lane] = 0.0f;
  return x;
}

NNDX vx nnd_finish(nnd_epilogue then, vx sum, const float *residual, long at, const float *channel, long block,
                   long channels) {
  const vx r = residual ? nndx_load(residual + at) : nndx_all(0.0f);
  const vx s = channel ? nndx_load(channel + block * NND_L) : nndx_all(0.0f);
  return nnd_masked(then(sum, r, s), block, channels);
}

/* --- dense convolution --------------------------------------------------------------------------------------- */

/* The place of channel c of pixel 0 in image n. */
NNDX long nnd_plane(long n, long c, long channels, long pixels, int plain) {
  if (plain) return (n * channels + c) * pixels;
  return (n * nnd_blocks_of(channels) + c / NND_L) * pixels * NND_L + c % NND_L;
}

/* One panel of `count` (<= NND_TILE) neighbouring pixels of an output row. */
NNDX void nnd_dense_tile(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                         const float *panel_weights, const float *bias, const float *residual, const float *channel,
                         long n, long panel, long y, long x, long count, int plain) {
  vx sums[NND_TILE][NND_P];
  for (long p = 0; p < NND_TILE; p++)
    for (long v = 0; v < NND_P; v++) sums[p][v] = nndx_load(bias + (panel * NND_P + v) * NND_L);
  const long pixel_floats = plain ? 1 : NND_L, pixels = s->in_h * s->in_w;
  for (long ky = 0; ky < s->kernel_h; ky++) {
    const long row = y * s->stride_h - s->pad_top + ky * s->dilation_h;
    if (row < 0 || row >= s->in_h) continue;
    for (long kx = 0; kx < s->kernel_w; kx++) {
      const float *w = panel_weights + (ky * s->kernel_w + kx) * s->in_c * NND_PANEL_LANES;
      long places[NND_TILE];
      float inside[NND_TILE];
      for (long p = 0; p < NND_TILE; p++) {
        const long column = (x + nnd_least(p, count - 1)) * s->stride_w - s->pad_left + kx * s->dilation_w;
        inside[p] = column >= 0 && column < s->in_w;
        places[p] = (row * s->in_w + (inside[p] != 0.0f ? column : 0)) * pixel_floats;
      }
      for (long c = 0; c < s->in_c; c++) {
        const float *from = in + nnd_plane(n, c, s->in_c, pixels, plain);
        vx weights[NND_P];
        for (long v = 0; v < NND_P; v++) weights[v] = nndx_load(w + c * NND_PANEL_LANES + v * NND_L);
        for (long p = 0; p < NND_TILE; p++) {
          const float value = inside[p] != 0.0f ? from[places[p]] : 0.0f;
          for (long v = 0; v < NND_P; v++) sums[p][v] += value * weights[v];
        }
      }
    }
  }
  const long blocks = nnd_blocks_of(s->out_c);
  for (long v = 0; v < NND_P; v++) {
    const long block = panel * NND_P + v;
    if (block >= blocks) break;
    for (long p = 0; p < count; p++) {
      const long at = (((n * blocks + block) * s->out_h + y) * s->out_w + x + p) * NND_L;
      nndx_store(out + at, nnd_finish(then, sums[p][v], residual, at, channel, block, s->out_c));
    }
  }
}

NNDX void nnd_dense_any(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                        const float *weights, const float *bias, const float *residual, const float *channel,
                        int plain) {
  const long panels = (s->out_c + NND_PANEL_LANES - 1) / NND_PANEL_LANES;
  const long panel_floats = s->kernel_h * s->kernel_w * s->in_c * NND_PANEL_LANES;
  for (long n = 0; n < s->batch; n++)
    for (long panel = 0; panel < panels; panel++)
      for (long y = 0; y < s->out_h; y++)
        for (long x = 0; x < s->out_w; x += NND_TILE)
          nnd_dense_tile(s, then, out, in, weights + panel * panel_floats, bias, residual, channel, n, panel, y, x,
                         nnd_least(NND_TILE, s->out_w - x), plain);
}

NNDX void nnd_dense(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                    const float *weights, const float *bias, const float *residual, const float *channel) {
  nnd_dense_any(s, then, out, in, weights, bias, residual, channel, 0);
}

NNDX void nnd_dense_plain(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                          const float *weights, const float *bias, const float *residual, const float *channel) {
  nnd_dense_any(s, then, out, in, weights, bias, residual, channel, 1);
}

/* --- depthwise, grouped -------------------------------------------------------------------------------------- */

/* The sum of one pixel of one channel block, bias included. */
NNDX vx nnd_depthwise_sum(const struct nnd_images *s, const float *in, const float *weights, const float *bias,
                          long n, long block, long y, long x) {
  const float *plane = in + (n * nnd_blocks_of(s->in_c) + block) * s->in_h * s->in_w * NND_L;
  vx sum = nndx_load(bias + block * NND_L);
  for (long ky = 0; ky < s->kernel_h; ky++) {
    const long row = y * s->stride_h - s->pad_top + ky * s->dilation_h;
    if (row < 0 || row >= s->in_h) continue;
    for (long kx = 0; kx < s->kernel_w; kx++) {
      const long column = x * s->stride_w - s->pad_left + kx * s->dilation_w;
      if (column < 0 || column >= s->in_w) continue;
      const float *w = weights + ((block * s->kernel_h + ky) * s->kernel_w + kx) * NND_L;
      sum += nndx_load(plane + (row * s->in_w + column) * NND_L) * nndx_load(w);
    }
  }
  return sum;
}

NNDX void nnd_depthwise(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                        const float *weights, const float *bias, const float *residual, const float *channel) {
  const long blocks = nnd_blocks_of(s->out_c);
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++)
      for (long y = 0; y < s->out_h; y++)
        for (long x = 0; x < s->out_w; x++) {
          const long at = (((n * blocks + block) * s->out_h + y) * s->out_w + x) * NND_L;
          const vx sum = nnd_depthwise_sum(s, in, weights, bias, n, block, y, x);
          nndx_store(out + at, nnd_finish(then, sum, residual, at, channel, block, s->out_c));
        }
}

NNDX void nnd_grouped(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                      const float *weights, const float *bias, const float *residual, const float *channel) {
  const long blocks = nnd_blocks_of(s->out_c), pixels = s->in_h * s->in_w;
  const long group_in = s->in_c / s->groups, group_out = s->out_c / s->groups;
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++)
      for (long y = 0; y < s->out_h; y++)
        for (long x = 0; x < s->out_w; x++) {
          vx sum = nndx_load(bias + block * NND_L);
          for (long lane = 0; lane < NND_L; lane++) {
            const long o = block * NND_L + lane;
            if (o >= s->out_c) break;
            const long first = o / group_out * group_in;
            for (long ky = 0; ky < s->kernel_h; ky++)
              for (long kx = 0; kx < s->kernel_w; kx++) {
                const long row = y * s->stride_h - s->pad_top + ky * s->dilation_h;
                const long column = x * s->stride_w - s->pad_left + kx * s->dilation_w;
                if (row < 0 || row >= s->in_h || column < 0 || column >= s->in_w) continue;
                const float *w = weights + ((o * s->kernel_h + ky) * s->kernel_w + kx) * group_in;
                for (long c = 0; c < group_in; c++)
                  sum[lane] += w[c] * in[nnd_plane(n, first + c, s->in_c, pixels, 0) + (row * s->in_w + column) * NND_L];
              }
          }
          const long at = (((n * blocks + block) * s->out_h + y) * s->out_w + x) * NND_L;
          nndx_store(out + at, nnd_finish(then, sum, residual, at, channel, block, s->out_c));
        }
}

/* Each output pixel gathers the input pixels whose windows cover it. */
NNDX void nnd_transposed(const struct nnd_images *s, nnd_epilogue then, float *out, const float *in,
                         const float *weights, const float *bias, const float *residual, const float *channel) {
  const long blocks = nnd_blocks_of(s->out_c), pixels = s->in_h * s->in_w;
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++)
      for (long y = 0; y < s->out_h; y++)
        for (long x = 0; x < s->out_w; x++) {
          vx sum = nndx_load(bias + block * NND_L);
          for (long ky = 0; ky < s->kernel_h; ky++)
            for (long kx = 0; kx < s->kernel_w; kx++) {
              const long down = y + s->pad_top - ky * s->dilation_h, right = x + s->pad_left - kx * s->dilation_w;
              if (down < 0 || right < 0 || down % s->stride_h || right % s->stride_w) continue;
              const long row = down / s->stride_h, column = right / s->stride_w;
              if (row >= s->in_h || column >= s->in_w) continue;
              const float *w = weights + block % NND_P * NND_L +
                               ((block / NND_P * s->kernel_h + ky) * s->kernel_w + kx) * s->in_c * NND_PANEL_LANES;
              for (long c = 0; c < s->in_c; c++)
                sum += in[nnd_plane(n, c, s->in_c, pixels, 0) + (row * s->in_w + column) * NND_L] *
                       nndx_load(w + c * NND_PANEL_LANES);
            }
          const long at = (((n * blocks + block) * s->out_h + y) * s->out_w + x) * NND_L;
          nndx_store(out + at, nnd_finish(then, sum, residual, at, channel, block, s->out_c));
        }
}

/* --- depthwise -> pointwise, window by window ---------------------------------------------------------------- */

/* The pointwise part of a window: `here` blocks of its input, from block `from` of `mid_c` channels on, lie in `buffer`
 * as [block][rows][columns][c]. Where not all channels are there, the sums are kept in `out` between parts, and the
 * epilogue runs at the last one. */
NNDX void nnd_project(const struct nnd_images *s, nnd_epilogue then, float *out, const float *buffer,
                      const float *weights, const float *bias, const float *residual, const float *channel, long n,
                      long top, long left, long rows, long columns, long from, long here, long mid_c) {
  const long blocks = nnd_blocks_of(s->out_c), pixels = rows * columns;
  const int is_first = from == 0, is_last = from + here == nnd_blocks_of(mid_c);
  const long count = nnd_least(here * NND_L, mid_c - from * NND_L);
  for (long block = 0; block < blocks; block++)
    for (long p0 = 0; p0 < pixels; p0 += NND_TILE) {
      vx sums[NND_TILE];
      long at[NND_TILE];
      const long tile = nnd_least(NND_TILE, pixels - p0);
      for (long t = 0; t < NND_TILE; t++) {
        const long p = p0 + nnd_least(t, tile - 1);
        const long y = top + p / columns, x = left + p % columns;
        at[t] = (((n * blocks + block) * s->out_h + y) * s->out_w + x) * NND_L;
        sums[t] = is_first ? nndx_load(bias + block * NND_L) : nndx_load(out + at[t]);
      }
      const float *w = weights + block / NND_P * mid_c * NND_PANEL_LANES + block % NND_P * NND_L;
      for (long c = 0; c < count; c++) {
        const vx wc = nndx_load(w + (from * NND_L + c) * NND_PANEL_LANES);
        const float *b = buffer + (c / NND_L * pixels + p0) * NND_L + c % NND_L;
        for (long t = 0; t < NND_TILE; t++) sums[t] += b[nnd_least(t, tile - 1) * NND_L] * wc;
      }
      for (long t = 0; t < tile; t++)
        nndx_store(out + at[t],
                   is_last ? nnd_finish(then, sums[t], residual, at[t], channel, block, s->out_c) : sums[t]);
    }
}

/* The buffer holds the first result of one window: [window_channels / c][rows][columns][c]. */
NNDX void nnd_separable(const struct nnd_images *s, nnd_epilogue first_then, nnd_epilogue then, float *out,
                        const float *in, const float *first_weights, const float *first_bias,
                        const float *first_channel, const float *weights, const float *bias, const float *residual,
                        const float *channel, float *buffer) {
  const long in_blocks = nnd_blocks_of(s->in_c), part = s->window_channels / NND_L;
  for (long n = 0; n < s->batch; n++)
    for (long top = 0; top < s->out_h; top += s->window_rows)
      for (long left = 0; left < s->out_w; left += s->window_columns) {
        const long rows = nnd_least(s->window_rows, s->out_h - top);
        const long columns = nnd_least(s->window_columns, s->out_w - left);
        for (long from = 0; from < in_blocks; from += part) {
          const long here = nnd_least(part, in_blocks - from);
          for (long b = 0; b < here; b++)
            for (long p = 0; p < rows * columns; p++) {
              const vx sum = nnd_depthwise_sum(s, in, first_weights, first_bias, n, from + b, top + p / columns,
                                               left + p % columns);
              nndx_store(buffer + (b * rows * columns + p) * NND_L,
                         nnd_finish(first_then, sum, 0, 0, first_channel, from + b, s->in_c));
            }
          nnd_project(s, then, out, buffer, weights, bias, residual, channel, n, top, left, rows, columns, from, here,
                      s->in_c);
        }
      }
}

/* --- pointwise -> depthwise -> pointwise, window by window ---------------------------------------------------- */

/* A window is some rows of the output and some of the mid_c channels. The buffer holds the expanded input rows that it
 * needs, [block][rows][in_w][c], and after them its depthwise result. Rows outside the image are not expanded: they
 * are zeros to the depthwise convolution, whatever the expansion would make of them. */
NNDX void nnd_inverted_residual(const struct nnd_images *s, nnd_epilogue expand_then, nnd_epilogue first_then,
                                nnd_epilogue then, float *out, const float *in, const float *expand_weights,
                                const float *expand_bias, const float *expand_channel, const float *first_weights,
                                const float *first_bias, const float *first_channel, const float *weights,
                                const float *bias, const float *residual, const float *channel, float *buffer) {
  const long mid_blocks = nnd_blocks_of(s->mid_c), part = s->window_channels / NND_L;
  const long all_rows = (s->window_rows - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1;
  float *second = buffer + part * all_rows * s->in_w * NND_L;
  for (long n = 0; n < s->batch; n++)
    for (long top = 0; top < s->out_h; top += s->window_rows) {
      const long rows = nnd_least(s->window_rows, s->out_h - top);
      const long begin = top * s->stride_h - s->pad_top;
      const long end = begin + (rows - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1;
      const long first = nnd_most(begin, 0), pixels = nnd_most(nnd_least(end, s->in_h) - first, 0) * s->in_w;
      for (long from = 0; from < mid_blocks; from += part) {
        const long here = nnd_least(part, mid_blocks - from);
        for (long b = 0; b < here; b++) {
          const long block = from + b;
          const float *w = expand_weights + block / NND_P * s->in_c * NND_PANEL_LANES + block % NND_P * NND_L;
          for (long p0 = 0; p0 < pixels; p0 += NND_TILE) {
            const long tile = nnd_least(NND_TILE, pixels - p0);
            vx sums[NND_TILE];
            for (long t = 0; t < NND_TILE; t++) sums[t] = nndx_load(expand_bias + block * NND_L);
            for (long c = 0; c < s->in_c; c++) {
              const vx wc = nndx_load(w + c * NND_PANEL_LANES);
              const float *x = in + nnd_plane(n, c, s->in_c, s->in_h * s->in_w, 0) + (first * s->in_w + p0) * NND_L;
              for (long t = 0; t < NND_TILE; t++) sums[t] += x[nnd_least(t, tile - 1) * NND_L] * wc;
            }
            for (long t = 0; t < tile; t++)
              nndx_store(buffer + (b * all_rows * s->in_w + p0 + t) * NND_L,
                         nnd_finish(expand_then, sums[t], 0, 0, expand_channel, block, s->mid_c));
          }
          for (long p = 0; p < rows * s->out_w; p++) {
            const long y = top + p / s->out_w, x = p % s->out_w;
            vx sum = nndx_load(first_bias + block * NND_L);
            for (long ky = 0; ky < s->kernel_h; ky++) {
              const long row = y * s->stride_h - s->pad_top + ky * s->dilation_h;
              if (row < 0 || row >= s->in_h) continue;
              for (long kx = 0; kx < s->kernel_w; kx++) {
                const long column = x * s->stride_w - s->pad_left + kx * s->dilation_w;
                if (column < 0 || column >= s->in_w) continue;
                sum += nndx_load(buffer + ((b * all_rows + row - first) * s->in_w + column) * NND_L) *
                       nndx_load(first_weights + ((block * s->kernel_h + ky) * s->kernel_w + kx) * NND_L);
              }
            }
            nndx_store(second + (b * rows * s->out_w + p) * NND_L,
                       nnd_finish(first_then, sum, 0, 0, first_channel, block, s->mid_c));
          }
        }
        nnd_project(s, then, out, second, weights, bias, residual, channel, n, top, 0, rows, s->out_w, from, here,
                    s->mid_c);
      }
    }
}

/* --- pooling ------------------------------------------------------------------------------------------------- */

NNDX void nnd_pool(const struct nnd_images *s, float *out, const float *in, int is_max) {
  const long blocks = nnd_blocks_of(s->out_c);
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++) {
      const float *plane = in + (n * blocks + block) * s->in_h * s->in_w * NND_L;
      for (long y = 0; y < s->out_h; y++)
        for (long x = 0; x < s->out_w; x++) {
          vx found = nndx_all(is_max ? -__builtin_inff() : 0.0f);
          long count = 0;
          for (long ky = 0; ky < s->kernel_h; ky++)
            for (long kx = 0; kx < s->kernel_w; kx++) {
              const long row = y * s->stride_h - s->pad_top + ky * s->dilation_h;
              const long column = x * s->stride_w - s->pad_left + kx * s->dilation_w;
              if (row < s->in_h + s->pad_bottom && column < s->in_w + s->pad_right) count += s->includes_padding;
              if (row < 0 || row >= s->in_h || column < 0 || column >= s->in_w) continue;
              const vx value = nndx_load(plane + (row * s->in_w + column) * NND_L);
              found = is_max ? nndx_max(value, found) : found + value;
              count += !s->includes_padding;
            }
          if (!is_max) found = found / nndx_all((float)count);
          nndx_store(out + (((n * blocks + block) * s->out_h + y) * s->out_w + x) * NND_L,
                     nnd_masked(found, block, s->out_c));
        }
    }
}

NNDX void nnd_pool_max(const struct nnd_images *s, float *out, const float *in) { nnd_pool(s, out, in, 1); }
NNDX void nnd_pool_mean(const struct nnd_images *s, float *out, const float *in) { nnd_pool(s, out, in, 0); }

/* --- elementwise --------------------------------------------------------------------------------------------- */

typedef vx (*nnd_expression)(vx a, vx b, vx c, vx d);

struct nnd_elementwise_blocked {
  long batch, channels, blocks, pixels;
  long step_n0, step_b0, step_p0, step_n1, step_b1, step_p1; /* in vectors */
  long step_n2, step_b2, step_p2, step_n3, step_b3, step_p3;
};

NNDX vx nnd_operand(const float *from, long at) { return from ? nndx_load(from + at * NND_L) : nndx_all(0.0f); }

NNDX void nnd_elementwise_blocked(const struct nnd_elementwise_blocked *s, nnd_expression f, float *out,
                                  const float *a, const float *b, const float *c, const float *d) {
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < s->blocks; block++)
      for (long p = 0; p < s->pixels; p++) {
        const vx result = f(nnd_operand(a, n * s->step_n0 + block * s->step_b0 + p * s->step_p0),
                            nnd_operand(b, n * s->step_n1 + block * s->step_b1 + p * s->step_p1),
                            nnd_operand(c, n * s->step_n2 + block * s->step_b2 + p * s->step_p2),
                            nnd_operand(d, n * s->step_n3 + block * s->step_b3 + p * s->step_p3));
        nndx_store(out + ((n * s->blocks + block) * s->pixels + p) * NND_L, nnd_masked(result, block, s->channels));
      }
}

struct nnd_elementwise_plain {
  long size0, size1, size2, size3, size4, size5;
  long step0_0, step0_1, step0_2, step0_3, step0_4, step0_5, step1_0, step1_1, step1_2, step1_3, step1_4, step1_5;
  long step2_0, step2_1, step2_2, step2_3, step2_4, step2_5, step3_0, step3_1, step3_2, step3_3, step3_4, step3_5;
};

/* `count` floats that lie `step` apart; lanes beyond are the first one again. */
NNDX vx nnd_spread(const float *from, long step, long count) {
  if (!from) return nndx_all(0.0f);
  if (step == 0) return nndx_all(*from);
  if (step == 1 && count == NND_L) return nndx_load(from);
  vx result = nndx_all(*from);
  for (long lane = 0; lane < count; lane++) result[lane] = from[lane * step];
  return result;
}

NNDX void nnd_elementwise_plain(const struct nnd_elementwise_plain *s, nnd_expression f, float *out, const float *a,
                                const float *b, const float *c, const float *d) {
#define NND_AT(k) (i0 * s->step##k##_0 + i1 * s->step##k##_1 + i2 * s->step##k##_2 + i3 * s->step##k##_3 + i4 * s->step##k##_4)
  for (long i0 = 0; i0 < s->size0; i0++)
    for (long i1 = 0; i1 < s->size1; i1++)
      for (long i2 = 0; i2 < s->size2; i2++)
        for (long i3 = 0; i3 < s->size3; i3++)
          for (long i4 = 0; i4 < s->size4; i4++)
            for (long i = 0; i < s->size5; i += NND_L) {
              const long count = nnd_least(NND_L, s->size5 - i);
              const vx result = f(nnd_spread(a ? a + NND_AT(0) + i * s->step0_5 : a, s->step0_5, count),
                                  nnd_spread(b ? b + NND_AT(1) + i * s->step1_5 : b, s->step1_5, count),
                                  nnd_spread(c ? c + NND_AT(2) + i * s->step2_5 : c, s->step2_5, count),
                                  nnd_spread(d ? d + NND_AT(3) + i * s->step3_5 : d, s->step3_5, count));
              if (count == NND_L)
                nndx_store(out, result);
              else
                for (long lane = 0; lane < count; lane++) out[lane] = result[lane];
              out += count;
            }
#undef NND_AT
}

/* --- movement ------------------------------------------------------------------------------------------------ */

struct nnd_convert { long batch, channels, pixels; };

NNDX void nnd_blocked_from_plain(const struct nnd_convert *s, float *out, const float *in) {
  const long blocks = nnd_blocks_of(s->channels);
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++)
      for (long p = 0; p < s->pixels; p++)
        for (long lane = 0; lane < NND_L; lane++) {
          const long c = block * NND_L + lane;
          *out++ = c < s->channels ? in[(n * s->channels + c) * s->pixels + p] : 0.0f;
        }
}

NNDX void nnd_plain_from_blocked(const struct nnd_convert *s, float *out, const float *in) {
  const long blocks = nnd_blocks_of(s->channels);
  for (long n = 0; n < s->batch; n++)
    for (long c = 0; c < s->channels; c++)
      for (long p = 0; p < s->pixels; p++)
        *out++ = in[((n * blocks + c / NND_L) * s->pixels + p) * NND_L + c % NND_L];
}

struct nnd_channel_parts {
  long batch, channels, pixels;
  long in_blocks0, in_blocks1, in_blocks2, in_blocks3, in_blocks4, in_blocks5, in_blocks6, in_blocks7;
};

/* `table` holds (number of input, channel) for each lane of the output. */
NNDX void nnd_channel_parts(const struct nnd_channel_parts *s, float *out, const int32_t *table, const float *in0,
                            const float *in1, const float *in2, const float *in3, const float *in4, const float *in5,
                            const float *in6, const float *in7) {
  const float *const ins[8] = {in0, in1, in2, in3, in4, in5, in6, in7};
  const long in_blocks[8] = {s->in_blocks0, s->in_blocks1, s->in_blocks2, s->in_blocks3,
                             s->in_blocks4, s->in_blocks5, s->in_blocks6, s->in_blocks7};
  const long blocks = nnd_blocks_of(s->channels);
  for (long n = 0; n < s->batch; n++)
    for (long block = 0; block < blocks; block++) {
      const int32_t *of = table + block * NND_L * 2;
      float *to = out + (n * blocks + block) * s->pixels * NND_L;
      for (long lane = 0; lane < NND_L; lane++) {
        const long k = of[lane * 2], c = of[lane * 2 + 1];
        if (k < 0) {
          for (long p = 0; p < s->pixels; p++) to[p * NND_L + lane] = 0.0f;
          continue;
        }
        const float *from = ins[k] + (n * in_blocks[k] + c / NND_L) * s->pixels * NND_L + c % NND_L;
        for (long p = 0; p < s->pixels; p++) to[p * NND_L + lane] = from[p * NND_L];
      }
    }
}

struct nnd_gather { long size; };

NNDX void nnd_gather(const struct nnd_gather *s, float *out, const float *in, const int32_t *places) {
  for (long i = 0; i < s->size; i++) out[i] = places[i] < 0 ? 0.0f : in[places[i]];
}

struct nnd_strided_copy {
  long offset, size0, size1, size2, size3, size4, size5, step0, step1, step2, step3, step4, step5;
};

NNDX void nnd_strided_copy(const struct nnd_strided_copy *s, float *out, const float *in) {
  in += s->offset;
  for (long a = 0; a < s->size0; a++)
    for (long b = 0; b < s->size1; b++)
      for (long c = 0; c < s->size2; c++)
        for (long d = 0; d < s->size3; d++)
          for (long e = 0; e < s->size4; e++) {
            const float *from = in + a * s->step0 + b * s->step1 + c * s->step2 + d * s->step3 + e * s->step4;
            for (long f = 0; f < s->size5; f++) *out++ = from[f * s->step5];
          }
}

struct nnd_join_plain { long outer, inner0, inner1, inner2, inner3, inner4, inner5, inner6, inner7; };

NNDX void nnd_join_plain(const struct nnd_join_plain *s, float *out, const float *in0, const float *in1,
                         const float *in2, const float *in3, const float *in4, const float *in5, const float *in6,
                         const float *in7) {
  const float *const ins[8] = {in0, in1, in2, in3, in4, in5, in6, in7};
  const long inner[8] = {s->inner0, s->inner1, s->inner2, s->inner3, s->inner4, s->inner5, s->inner6, s->inner7};
  for (long i = 0; i < s->outer; i++)
    for (long k = 0; k < 8; k++) {
      if (!inner[k]) continue;
      memcpy(out, ins[k] + i * inner[k], (size_t)inner[k] * sizeof(float));
      out += inner[k];
    }
}

/* --- matrices ------------------------------------------------------------------------------------------------ */

struct nnd_fully_connected { long rows, inputs, outputs; };

NNDX void nnd_fully_connected(const struct nnd_fully_connected *s, nnd_epilogue then, float *out, const float *in,
                              const float *weights, const float *bias, const float *residual) {
  for (long row = 0; row < s->rows; row++)
    for (long block = 0; block < nnd_blocks_of(s->outputs); block++) {
      const float *w = weights + block / NND_P * s->inputs * NND_PANEL_LANES + block % NND_P * NND_L;
      vx sum = nndx_load(bias + block * NND_L);
      for (long i = 0; i < s->inputs; i++) sum += in[row * s->inputs + i] * nndx_load(w + i * NND_PANEL_LANES);
      const long at = row * s->outputs + block * NND_L, count = nnd_least(NND_L, s->outputs - block * NND_L);
      const vx r = residual ? nnd_spread(residual + at, 1, count) : nndx_all(0.0f);
      const vx result = then(sum, r, nndx_all(0.0f));
      if (count == NND_L)
        nndx_store(out + at, result);
      else
        for (long lane = 0; lane < count; lane++) out[at + lane] = result[lane];
    }
}

struct nnd_product { long batch, rows, inner, columns, b_is_shared; };

NNDX void nnd_product(const struct nnd_product *s, float *out, const float *a, const float *b) {
  for (long n = 0; n < s->batch; n++)
    for (long i = 0; i < s->rows; i++)
      for (long j = 0; j < s->columns; j += NND_L) {
        const long count = nnd_least(NND_L, s->columns - j);
        vx sum = nndx_all(0.0f);
        for (long k = 0; k < s->inner; k++) {
          const float *row = b + ((s->b_is_shared ? 0 : n) * s->inner + k) * s->columns + j;
          sum += a[(n * s->rows + i) * s->inner + k] * nnd_spread(row, 1, count);
        }
        for (long lane = 0; lane < count; lane++) out[(n * s->rows + i) * s->columns + j + lane] = sum[lane];
      }
}

/* --- resize -------------------------------------------------------------------------------------------------- */

struct nnd_resize { long batch, channels, in_h, in_w, out_h, out_w, taps_h, taps_w; };

NNDX void nnd_resize(const struct nnd_resize *s, float *out, const float *in, const int32_t *rows,
                     const float *row_weights, const int32_t *columns, const float *column_weights) {
  for (long plane = 0; plane < s->batch * nnd_blocks_of(s->channels); plane++)
    for (long y = 0; y < s->out_h; y++)
      for (long x = 0; x < s->out_w; x++) {
        vx sum = nndx_all(0.0f);
        for (long i = 0; i < s->taps_h; i++)
          for (long j = 0; j < s->taps_w; j++) {
            const long row = rows[y * s->taps_h + i], column = columns[x * s->taps_w + j];
            const float weight = row_weights[y * s->taps_h + i] * column_weights[x * s->taps_w + j];
            if (weight != 0.0f) sum += weight * nndx_load(in + ((plane * s->in_h + row) * s->in_w + column) * NND_L);
          }
        nndx_store(out, sum);
        out += NND_L;
      }
}

/* --- along one axis ------------------------------------------------------------------------------------------ */

struct nnd_along_axis { long outer, size, inner; };

NNDX float nnd_scalar_exp(float x) { return nndx_exp(nndx_all(x))[0]; }
NNDX float nnd_scalar_log(float x) { return nndx_log(nndx_all(x))[0]; }

NNDX void nnd_softmax_any(const struct nnd_along_axis *s, float *out, const float *in, int is_log) {
  for (long i = 0; i < s->outer; i++)
    for (long j = 0; j < s->inner; j++) {
      const long base = i * s->size * s->inner + j;
      float most = -__builtin_inff(), sum = 0.0f;
      for (long k = 0; k < s->size; k++) {
        const float value = in[base + k * s->inner];
        most = value > most || value != value ? value : most;
      }
      for (long k = 0; k < s->size; k++) {
        const float value = nnd_scalar_exp(in[base + k * s->inner] - most);
        out[base + k * s->inner] = value;
        sum += value;
      }
      const float log_sum = is_log ? nnd_scalar_log(sum) : 0.0f;
      for (long k = 0; k < s->size; k++) {
        const long at = base + k * s->inner;
        out[at] = is_log ? in[at] - most - log_sum : out[at] / sum;
      }
    }
}

NNDX void nnd_softmax(const struct nnd_along_axis *s, float *out, const float *in) { nnd_softmax_any(s, out, in, 0); }
NNDX void nnd_log_softmax(const struct nnd_along_axis *s, float *out, const float *in) { nnd_softmax_any(s, out, in, 1); }

/* Sums in parts of 64, so that rounding does not grow with the length. */
NNDX void nnd_reduce_any(const struct nnd_along_axis *s, float *out, const float *in, int is_max, float scale) {
  for (long i = 0; i < s->outer; i++)
    for (long j = 0; j < s->inner; j++) {
      const float *from = in + i * s->size * s->inner + j;
      float most = -__builtin_inff(), sum = 0.0f;
      for (long begin = 0; begin < s->size; begin += 64) {
        float part = 0.0f;
        for (long k = begin; k < nnd_least(begin + 64, s->size); k++) {
          const float value = from[k * s->inner];
          most = value > most || value != value ? value : most;
          part += value;
        }
        sum += part;
      }
      out[i * s->inner + j] = is_max ? most : sum * scale;
    }
}

NNDX void nnd_reduce_max(const struct nnd_along_axis *s, float *out, const float *in) {
  nnd_reduce_any(s, out, in, 1, 1.0f);
}
NNDX void nnd_reduce_sum(const struct nnd_along_axis *s, float *out, const float *in) {
  nnd_reduce_any(s, out, in, 0, 1.0f);
}
NNDX void nnd_reduce_mean(const struct nnd_along_axis *s, float *out, const float *in) {
  nnd_reduce_any(s, out, in, 0, 1.0f / (float)s->size);
}

#endif
