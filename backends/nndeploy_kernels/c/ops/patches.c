/* SPDX-License-Identifier: Apache-2.0
 *
 * What each pixel of the output meets is copied side by side, [tap][channel block][pixel][c], and is the input of a
 * pointwise convolution of taps x channels by the same panels of weights. So tiles go on from row to row, and a panel
 * is fetched while the one before it is at work, which large weights wait for when an image has few rows.
 */
#include "ops/patches.h"

#include <stdio.h>

#include "kernels/pointwise.h"
#include "ops/windows.h"

struct nnd_patches_fields {
  struct nnd_pointwise s;
  struct nnd_axis y, x;
  nnd_size images, blocks; /* of the input's channels */
};

/* Whether most taps meet the image: else rows of it, from which taps beside it are left out, are less work. */
static int nnd_most_meet(struct nnd_axis axis) {
  nnd_size met = 0;
  for (nnd_size at = 0; at < axis.out_size; at++) {
    const nnd_size first = at * axis.stride - axis.pad;
    met += nnd_max(0, nnd_tap_end(axis, first) - nnd_tap_begin(axis, first));
  }
  return 4 * met >= 3 * axis.out_size * axis.kernel;
}

/* Tuned: AMD Zen 5 class, L2 1 MiB, one thread, 2026-11-25. Weights of 2.25 MiB and more over 3 x 3 to 8 x 8 pixels take
 * 0.62 to 0.92 of the time; of 1.1 MiB, which the second cache nearly holds, 1.08. */
int nnd_patches_pay(const struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                    const struct nnd_axis *x) {
  const nnd_size channels = c->kernel[0] * c->kernel[1] * c->in_channels, l2 = nnd_l2(m);
  const nnd_size of_pixel = channels * (nnd_size)sizeof(nnd_elem);
  return c->in_channels % NND_LANES == 0 && channels * c->out_channels * (nnd_size)sizeof(nnd_weight) > 2 * l2 &&
         y->out_size <= l2 / of_pixel && x->out_size <= l2 / of_pixel / y->out_size && nnd_most_meet(*y) &&
         nnd_most_meet(*x);
}

/* One channel block of what tap (ky, kx) meets. */
static void nnd_fill_tap(const struct nnd_patches_fields *t, nnd_size ky, nnd_size kx, const nnd_elem *in,
                         nnd_elem *to) {
  const size_t pixel_bytes = NND_LANES * sizeof(nnd_elem);
  for (nnd_size row = 0; row < t->y.out_size; row++) {
    const nnd_size y = row * t->y.stride - t->y.pad + ky * t->y.dilation;
    for (nnd_size column = 0; column < t->x.out_size; column++, to += NND_LANES) {
      const nnd_size x = column * t->x.stride - t->x.pad + kx * t->x.dilation;
      if (y < 0 || y >= t->y.size || x < 0 || x >= t->x.size)
        memset(to, 0, pixel_bytes);
      else
        memcpy(to, in + (y * t->x.size + x) * NND_LANES, pixel_bytes);
    }
  }
}

static void nnd_fill_patches(const struct nnd_patches_fields *t, const nnd_elem *in, nnd_elem *to) {
  const nnd_size plane = t->y.size * t->x.size * NND_LANES;
  for (nnd_size ky = 0; ky < t->y.kernel; ky++)
    for (nnd_size kx = 0; kx < t->x.kernel; kx++)
      for (nnd_size block = 0; block < t->blocks; block++, to += t->s.in_plane)
        nnd_fill_tap(t, ky, kx, in + block * plane, to);
}

/* Workers share the panels of all images. */
static void nnd_run_patches(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_patches_fields *t = fields;
  const struct nnd_pointwise *s = &t->s;
  const nnd_size panels = nnd_full_panels(nnd_blocks(s->out_channels)) + 1, pixels = t->y.out_size * t->x.out_size;
  const struct nnd_pointwise_data d = {(const nnd_elem *)part.scratch, at[2], at[3], at[4], at[5], at[0]};
  nnd_size unit, last;
  nnd_share(t->images * panels, part, &unit, &last);
  while (unit < last) {
    const nnd_size image = unit / panels, first = unit % panels, end = nnd_min(panels, first + last - unit);
    const nnd_size offset = image * nnd_blocks(s->out_channels) * s->out_plane;
    struct nnd_pointwise_data of_image = d;
    of_image.out += offset;
    if (s->end.residual) of_image.residual += offset;
    nnd_fill_patches(t, (const nnd_elem *)at[1] + image * t->blocks * t->y.size * t->x.size * NND_LANES,
                     (nnd_elem *)part.scratch);
    nnd_pointwise_panels(s, NND_WHOLE, pixels, first, end, of_image, nnd_no_prefetch);
    unit += end - first;
  }
}

int nnd_make_patches(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                     const struct nnd_axis *x) {
  struct nnd_patches_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size channels = c->kernel[0] * c->kernel[1] * c->in_channels, pixels = y->out_size * x->out_size;
  t->s = (struct nnd_pointwise){.in_channels = channels,
                                .out_channels = c->out_channels,
                                .panel_channels = channels,
                                .in_plane = pixels * NND_LANES,
                                .out_plane = pixels * NND_LANES,
                                .end = c->end,
                                .prefetch_weights = 1};
  t->y = *y, t->x = *x, t->images = nnd_shape_of(m, c->in)->sizes[0], t->blocks = nnd_blocks(c->in_channels);
  m->scratch_bytes = channels * pixels * (nnd_size)sizeof(nnd_elem);
  m->instance->chunks = 1; /* each makes the patches of its images */
  m->instance->run = nnd_run_patches;
  snprintf(m->instance->shown, sizeof m->instance->shown, "over patches");
  return 1;
}
