/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel templates behind the calls that steps make: one function each, with the struct of c/reference.h.
 *
 * Weights are packed as kernels/packing.py says. Padding lanes of the output hold activation(0): nobody reads them.
 */
#ifndef NND_TEMPLATES_H
#define NND_TEMPLATES_H

#include "convolution.h"
#include "inverted_residual.h"
#include "reference.h"
#include "separable.h"

NNDX struct nnd_axis nnd_axis_y(const struct nnd_images *s) {
  return (struct nnd_axis){s->in_h, s->out_h, s->kernel_h, s->stride_h, s->dilation_h, s->pad_top};
}
NNDX struct nnd_axis nnd_axis_x(const struct nnd_images *s) {
  return (struct nnd_axis){s->in_w, s->out_w, s->kernel_w, s->stride_w, s->dilation_w, s->pad_left};
}

NNDX struct nnd_pointwise nnd_pointwise_of(const struct nnd_images *s, struct nnd_activation activation) {
  const nnd_size plane = s->out_h * s->out_w * NND_LANES;
  return (struct nnd_pointwise){.in_channels = s->in_c, .out_channels = s->out_c, .panel_channels = s->in_c,
                                .in_plane = plane, .out_plane = plane, .activation = activation,
                                .residual = (int)s->has_residual, .stream = (int)s->stream,
                                .prefetch_weights = (int)s->prefetch_weights};
}

NNDX void nnd_fast_pointwise(const struct nnd_images *s, struct nnd_activation activation, float *out,
                             const float *in, const float *weights, const float *bias, const float *residual,
                             const float *slopes) {
  const nnd_size pixels = s->out_h * s->out_w, window = s->window_columns;
  nnd_pointwise_run(nnd_pointwise_of(s, activation),
                    (struct nnd_pointwise_data){in, weights, bias, slopes, residual, out}, pixels, window, 0,
                    s->batch * nnd_ceil_div(pixels, window));
}

NNDX void nnd_fast_dense_any(const struct nnd_images *s, struct nnd_activation activation, float *out,
                             const float *in, const float *weights, const float *bias, const float *residual,
                             const float *slopes, int planar) {
  const struct nnd_convolution all = {.y = nnd_axis_y(s), .x = nnd_axis_x(s), .in_channels = s->in_c,
                                      .out_channels = s->out_c, .images = s->batch, .activation = activation,
                                      .planar = planar, .residual = (int)s->has_residual, .stream = (int)s->stream};
  nnd_convolution_run(all, (struct nnd_pointwise_data){in, weights, bias, slopes, residual, out}, 0,
                      s->batch * s->out_h);
}

NNDX void nnd_fast_dense(const struct nnd_images *s, struct nnd_activation activation, float *out, const float *in,
                         const float *weights, const float *bias, const float *residual, const float *slopes) {
  nnd_fast_dense_any(s, activation, out, in, weights, bias, residual, slopes, 0);
}

NNDX void nnd_fast_dense_plain(const struct nnd_images *s, struct nnd_activation activation, float *out,
                               const float *in, const float *weights, const float *bias, const float *residual,
                               const float *slopes) {
  nnd_fast_dense_any(s, activation, out, in, weights, bias, residual, slopes, 1);
}

NNDX void nnd_fast_depthwise(const struct nnd_images *s, struct nnd_activation activation, float *out,
                             const float *in, const float *weights, const float *bias, const float *slopes) {
  const struct nnd_depthwise d = {nnd_axis_y(s), nnd_axis_x(s), activation, 0};
  nnd_depthwise_run(d, (struct nnd_depthwise_data){in, weights, bias, slopes, out}, s->out_c, 0,
                    s->batch * nnd_blocks(s->out_c));
}

NNDX void nnd_fast_separable(const struct nnd_images *s, struct nnd_activation first,
                             struct nnd_activation second, float *out, const float *in, const float *first_weights,
                             const float *first_bias, const float *first_slopes, const float *weights,
                             const float *bias, const float *residual, const float *slopes, float *buffer) {
  const struct nnd_separable all = {.depthwise = {nnd_axis_y(s), nnd_axis_x(s), first, 0},
                                    .pointwise = nnd_pointwise_of(s, second),
                                    .channels = s->in_c, .images = s->batch, .window_rows = s->window_rows,
                                    .window_columns = s->window_columns, .window_channels = s->window_channels,
                                    .prefetch_input = (int)s->prefetch_input};
  nnd_separable_run(all, (struct nnd_separable_data){in, first_weights, first_bias, first_slopes,
                                                     {.weights = weights, .bias = bias, .slopes = slopes,
                                                      .residual = residual, .out = out}},
                    0, nnd_separable_windows(all), buffer);
}

/* window_channels counts panels here: those that one projection sums over. */
NNDX void nnd_fast_inverted_residual(const struct nnd_images *s, struct nnd_activation expand,
                                     struct nnd_activation first, struct nnd_activation second, float *out,
                                     const float *in, const float *expand_weights, const float *expand_bias,
                                     const float *expand_slopes, const float *first_weights, const float *first_bias,
                                     const float *first_slopes, const float *weights, const float *bias,
                                     const float *residual, const float *slopes, float *buffer) {
  const struct nnd_inverted all = {
      .expand = {.in_channels = s->in_c, .out_channels = s->mid_c, .panel_channels = s->in_c, .activation = expand},
      .project = {.in_channels = s->mid_c, .out_channels = s->out_c, .panel_channels = s->mid_c,
                  .activation = second, .residual = (int)s->has_residual},
      .depthwise = {nnd_axis_y(s), nnd_axis_x(s), first, 0},
      .channels = s->mid_c, .images = s->batch, .window_rows = s->window_rows, .group_panels = s->window_channels};
  nnd_inverted_run(all,
                   (struct nnd_inverted_data){
                       {.in = in, .weights = expand_weights, .bias = expand_bias, .slopes = expand_slopes},
                       {.weights = weights, .bias = bias, .slopes = slopes, .residual = residual, .out = out},
                       {.weights = first_weights, .bias = first_bias, .slopes = first_slopes}},
                   0, nnd_inverted_windows(all), buffer);
}

#endif
