/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products and image operators of random shapes and forms by their tables, each array an allocation of exactly its
 * floats: for sanitizers, and for machines that only an emulator runs. Ends with 0 where all results equal sums in
 * double.
 */
#include <stdio.h>

#include "units/library.h"

static uint32_t state = 1;
static nnd_size drawn(nnd_size most) { return (nnd_size)((state = state * 1664525u + 1013904223u) >> 8) % most + 1; }
static float *made(nnd_size floats) {
  float *data = malloc((size_t)floats * sizeof(float));
  for (nnd_size i = 0; i < floats; i++) data[i] = (float)drawn(2000) / 1000 - 1;
  return data;
}
/* A matrix in an allocation of its own: rows or columns side by side, `gap` floats between them. */
static struct nnd_bound matrix(nnd_size rows, nnd_size columns, int transposed, nnd_size gap) {
  const nnd_size outer = transposed ? columns : rows, inner = transposed ? rows : columns;
  struct nnd_bound bound = {made((outer - 1) * (inner + gap) + inner), {0, 0}};
  nnd_bind_buffer(&bound, transposed, inner + gap, 0);
  nnd_bind_buffer(&bound, !transposed, 1, 0);
  return bound;
}

static int is_close(double a, double b) { return a - b < 1e-4 && a - b > -1e-4; }

static int is_right(const struct nnd_matmul *op, nnd_size m, nnd_size n, nnd_size k) {
  for (nnd_size i = 0; i < m; i++)
    for (nnd_size j = 0; j < n; j++) {
      double sum = op->bias ? op->bias[j] : 0;
      for (nnd_size l = 0; l < k; l++) sum += (double)*nnd_at(&op->in, i, l) * *nnd_at(&op->weights, l, j);
      if (!is_close(*nnd_at(&op->out, i, j), sum > 0 ? sum : 0)) return 0;
    }
  return 1;
}

static int product(const struct nnd_costs *costs) {
  const nnd_size m = drawn(60), n = drawn(drawn(3) == 1 ? 8 : 100), k = drawn(drawn(3) == 1 ? 10 : 40);
  const int constant = drawn(2) == 1, strided_in = drawn(3) == 1, strided = drawn(3) == 1;
  struct nnd_matmul op = {.in = matrix(m, k, strided_in, drawn(4) - 1), .weights = matrix(k, n, strided, drawn(4) - 1)};
  op.out = matrix(m, n, 0, drawn(4) - 1);
  const struct nnd_form form = {constant ? n : 0, constant ? k : 0, NND_RELU, strided_in, constant, strided};
  float *packed = 0, *bias = made(nnd_ceil_div(n, NND_PANEL_COLUMNS) * NND_PANEL_COLUMNS), *scratch = 0;
  if (constant) {
    packed = malloc((size_t)nnd_units_pack(&op.weights, k, n, 0) * sizeof(float));
    nnd_units_pack(&op.weights, k, n, packed);
  }
  op.packed = packed;
  op.bias = drawn(2) == 1 ? bias : 0;
  struct nnd_product *opened = nnd_units_open(&form, costs);
  int right = opened != 0;
  for (int time = 0; right && time < 2; time++) { /* composed, then out of the cache */
    const nnd_size needed = nnd_units_call(opened, &op, m, n, k, 0);
    free(scratch);
    if (posix_memalign((void **)&scratch, 64, (size_t)(needed + 1) * sizeof(float))) return 0;
    op.scratch = scratch;
    right = !nnd_units_call(opened, &op, m, n, k, needed);
    right &= is_right(&op, m, n, k);
  }
  if (!right) fprintf(stderr, "wrong: %td x %td x %td, constant %d\n", m, n, k, constant);
  nnd_units_close(opened);
  free(scratch);
  free(packed);
  free(bias);
  free(op.in.data);
  free(op.weights.data);
  free(op.out.data);
  return right;
}

/* A dense or depthwise convolution in double, of one output; taps outside the image are left out. */
static double convolved(const struct nnd_image_form *form, const float *weights, const float *in, nnd_size height,
                        nnd_size width, nnd_size o, nnd_size row, nnd_size column) {
  const nnd_size depth = form->channels / form->groups, first = o / (form->out_channels / form->groups) * depth;
  double sum = 0;
  for (nnd_size c = 0; c < depth; c++)
    for (nnd_size ky = 0; ky < form->kernel[0]; ky++)
      for (nnd_size kx = 0; kx < form->kernel[1]; kx++, weights++) {
        const nnd_size y = row * form->stride[0] + ky * form->dilation[0] - form->pad[0];
        const nnd_size x = column * form->stride[1] + kx * form->dilation[1] - form->pad[1];
        if (y >= 0 && y < height && x >= 0 && x < width)
          sum += (double)*weights * in[((first + c) * height + y) * width + x];
      }
  return sum;
}

/* One convolution, separable pair or pooling of one image; pooling is compared where it is a mean over all taps. */
static int image(const struct nnd_image_costs *costs) {
  const int kind = (int)drawn(5) - 1;
  const nnd_size channels = drawn(20), point_channels = drawn(40), kernel = drawn(5), stride = drawn(3);
  const nnd_size pad = drawn(kernel) - 1;
  struct nnd_image_form form = {.channels = channels, .out_channels = kind ? channels : drawn(40),
                                .groups = kind ? channels : 1, .kernel = {kernel, drawn(5)},
                                .stride = {stride, drawn(3)}, .dilation = {drawn(2), drawn(2)},
                                .pad = {pad, 0, pad, 0}};
  if (drawn(2) == 1) form.kernel[1] = kernel, form.stride[1] = stride, form.dilation[0] = form.dilation[1] = 1;
  const nnd_size height = drawn(30) + 8, width = drawn(60) + 8, depth = channels / form.groups;
  const struct nnd_axis y = nnd_image_axis(&form, 0, height), x = nnd_image_axis(&form, 1, width);
  const nnd_size pixels = y.out_size * x.out_size, taps = form.kernel[0] * form.kernel[1];
  float *weights = made(form.out_channels * depth * taps), *bias = made(form.out_channels);
  float *point_weights = made(point_channels * channels), *point_bias = made(point_channels);
  const struct nnd_pointwise_part point = {point_channels, point_weights, point_bias, NND_IDENTITY};
  struct nnd_images *op = nnd_units_images_open(kind, &form, kind < NND_MAXIMA ? weights : 0, bias, &point, 1, costs);
  struct nnd_image_array in = {.image = {made(channels * height * width), {0, height * width, width, 1}},
                               .size = {1, channels, height, width}};
  struct nnd_image_array out = {.image = {made(op->out_channels * pixels), {0, pixels, x.out_size, 1}}};
  const nnd_size needed = nnd_images_run(op, 0, &in, &out, 0, 0);
  float *scratch = 0;
  if (posix_memalign((void **)&scratch, 64, (size_t)needed * sizeof(float))) return 0;
  int right = !nnd_images_run(op, 0, &in, &out, scratch, needed);
  double first[20] = {0};
  for (nnd_size i = 0; kind == NND_MEANS && i < form.channels * taps; i++) weights[i] = 1.0f / (float)taps;
  for (nnd_size pixel = 0; kind != NND_MAXIMA && pixel < pixels; pixel++) {
    const nnd_size row = pixel / x.out_size, column = pixel % x.out_size;
    for (nnd_size o = 0; o < form.out_channels; o++) {
      double sum = convolved(&form, weights + o * depth * taps, in.image.data, height, width, o, row, column);
      if (kind < NND_MAXIMA) sum += bias[o];
      if (kind == NND_SEPARABLE) first[o] = sum;
      else right &= is_close(sum, out.image.data[o * pixels + pixel]);
    }
    for (nnd_size o = 0; kind == NND_SEPARABLE && o < point_channels; o++) {
      double sum = point_bias[o];
      for (nnd_size c = 0; c < channels; c++) sum += first[c] * point_weights[o * channels + c];
      right &= is_close(sum, out.image.data[o * pixels + pixel]);
    }
  }
  if (!right) fprintf(stderr, "wrong: image operator %d of %td channels, %td x %td\n", kind, channels, height, width);
  nnd_units_images_close(op);
  free(weights);
  free(bias);
  free(point_weights);
  free(point_bias);
  free(in.image.data);
  free(out.image.data);
  free(scratch);
  return right;
}

int main(void) {
  struct nnd_costs costs;
  struct nnd_image_costs image_costs;
  nnd_units_default_costs(&costs);
  nnd_units_default_image_costs(&image_costs);
  int right = 1;
  for (int time = 0; time < 200; time++) right &= product(&costs);
  for (int time = 0; time < 150; time++) right &= image(&image_costs);
  return !right;
}
