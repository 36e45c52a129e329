/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gathered.h"

#include <stdio.h>

#include "kernels/pointwise.h"
#include "ops/windows.h"

#define NND_FEW_WINDOWS 8
/* Panels that would not pay for what they read being gathered: of two, 8 x 8 pixels of 128 channels take 1.1 times as
 * long, of eight, 6 x 6 pixels of 256 channels 0.7 (AMD Zen 5, 2026-11-25). */
#define NND_FEW_PANELS 2

int nnd_gathered_pays(const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x) {
  const int is_whole = c->groups == 1 && c->in_channels % NND_LANES == 0 && /* no lane of a block is nobody's, */
                       c->in_channels % NND_DEPTH == 0;                     /* nor one of the weights */
  const int is_near = y->dilation == 1 && x->dilation == 1;                 /* few zeros are gathered */
  const int is_read_again = nnd_blocks(c->out_channels) > NND_FEW_PANELS * NND_PANEL;
  return is_whole && is_near && is_read_again && y->out_size > 1 && x->out_size < NND_ACCUMULATORS / NND_PANEL;
}

/* Windows of `window` pixels of all images. Workers share windows, or panels where these are few. */
struct nnd_gathered_fields {
  struct nnd_pointwise s; /* over the gathered channels */
  struct nnd_axis y, x;
  nnd_size blocks, images, window; /* blocks: of the image's channels */
  int by_panels;
};

/* Gathers `count` pixels from `pixel` on: [kernel row][kernel column][channel block][pixel][c]; zeros beside the image. */
static void nnd_gather_window(const struct nnd_gathered_fields *t, const nnd_elem *in, nnd_size pixel, nnd_size count,
                              nnd_elem *to) {
  const struct nnd_axis y = t->y, x = t->x;
  const nnd_size plane = y.size * x.size * NND_LANES;
  for (nnd_size p = 0; p < count; p++, to += NND_LANES) {
    const nnd_size top = (pixel + p) / x.out_size * y.stride - y.pad,
                   left = (pixel + p) % x.out_size * x.stride - x.pad;
    nnd_elem *tap = to;
    for (nnd_size ky = 0; ky < y.kernel; ky++)
      for (nnd_size kx = 0; kx < x.kernel; kx++) {
        const nnd_size row = top + ky, column = left + kx;
        const int is_inside = row >= 0 && row < y.size && column >= 0 && column < x.size;
        const nnd_elem *from = in + (is_inside ? (row * x.size + column) * NND_LANES : 0);
        for (nnd_size block = 0; block < t->blocks; block++, tap += t->s.in_plane, from += plane) {
          if (is_inside)
            memcpy(tap, from, NND_LANES * sizeof(nnd_elem));
          else
            memset(tap, 0, NND_LANES * sizeof(nnd_elem));
        }
      }
  }
}

static void nnd_run_gathered(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_gathered_fields *t = fields;
  const struct nnd_pointwise *s = &t->s;
  const nnd_size pixels = t->y.out_size * t->x.out_size, windows = nnd_ceil_div(pixels, t->window);
  const nnd_size of_in = t->blocks * t->y.size * t->x.size * NND_LANES;
  const nnd_size of_out = nnd_blocks(s->out_channels) * s->out_plane;
  const nnd_size panels = nnd_full_panels(nnd_blocks(s->out_channels)) + 1;
  nnd_size first = 0, last = t->images * windows, first_panel = 0, last_panel = panels;
  if (t->by_panels)
    nnd_share(panels, part, &first_panel, &last_panel);
  else
    nnd_share(last, part, &first, &last);
  for (; first < last && first_panel < last_panel; first++) {
    const nnd_size image = first / windows, pixel = first % windows * t->window;
    const nnd_size count = nnd_min(t->window, pixels - pixel), to = image * of_out + pixel * NND_LANES;
    const struct nnd_pointwise_data d = {(const nnd_elem *)part.scratch,
                                         at[2],
                                         at[3],
                                         at[4],
                                         s->end.residual ? (const nnd_elem *)at[5] + to : NULL,
                                         (nnd_elem *)at[0] + to,
                                         nnd_pointwise_packed(s, part.scratch)};
    nnd_gather_window(t, (const nnd_elem *)at[1] + image * of_in, pixel, count, (nnd_elem *)part.scratch);
    nnd_pointwise_panels(s, NND_WHOLE, count, first_panel, last_panel, d, nnd_no_prefetch);
  }
}

int nnd_make_gathered(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                      const struct nnd_axis *x) {
  struct nnd_gathered_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size pixels = y->out_size * x->out_size, channels = c->kernel[0] * c->kernel[1] * c->in_channels;
  const nnd_size tile = NND_ACCUMULATORS / NND_PANEL, of_pixel = channels * (nnd_size)sizeof(nnd_elem);
  t->y = *y, t->x = *x;
  t->blocks = nnd_blocks(c->in_channels), t->images = nnd_shape_of(m, c->in)->sizes[0];
  const nnd_size chosen = nnd_evened(pixels, nnd_max(tile, nnd_l2(m) / 2 / of_pixel / tile * tile));
  const nnd_size rule = nnd_evened(pixels, nnd_max(tile, nnd_machine_l2(m) / 2 / of_pixel / tile * tile));
  t->window = nnd_same_bits(chosen, rule, pixels, c->out_channels);
  t->s = (struct nnd_pointwise){.in_channels = channels,
                                .out_channels = c->out_channels,
                                .panel_channels = channels,
                                .in_plane = t->window * NND_LANES,
                                .out_plane = pixels * NND_LANES,
                                .end = c->end,
                                .prefetch_weights = channels * c->out_channels > NND_PREFETCH_FROM};
  t->by_panels = t->images * nnd_ceil_div(pixels, t->window) < NND_FEW_WINDOWS;
  if (t->by_panels) m->instance->chunks = 1; /* each gathers all windows */
  m->scratch_bytes = t->window * of_pixel;
  nnd_take_tiles(m, &t->s, pixels, t->window);
  m->instance->run = nnd_run_gathered;
  snprintf(m->instance->shown, sizeof m->instance->shown, "gathered, window %lld%s", (long long)t->window,
           nnd_shown_tiles(t->s.by_tiles));
  return 1;
}
