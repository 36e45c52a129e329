/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/winograd.h"

#include <stdio.h>

#include "kernels/winograd.h"
#include "ops/windows.h"

/* Costs in multiply-adds of a direct convolution: of 16 to 512 channels, 4 x 4 to 80 x 80 pixels, these tell where it
 * wins, and by how much within some 20% (Intel Xeon, AVX-512, 2026-11-24). Transformed weights are read again for each
 * register tile of tiles; more of them than the last caches of small machines hold cost half as much again. */
#define NND_TRANSFORM 700 /* of a tile and channel */
#define NND_MANY_WEIGHTS ((nnd_size)16 << 20)
#define NND_WINOGRAD_GAIN 1.15 /* less than this is not worth four times the memory */

/* A size of a plan that is the same in every call, 0 of others. */
static nnd_size nnd_fixed_size(const struct nnd_opener *o, nnd_size rule) {
  const struct nnd_size_rule *one = &o->model->rules[rule];
  return one->kind == NND_SIZE_CONSTANT ? one->a : 0;
}

int nnd_winograd_fits(const struct nnd_opener *o, const struct nnd_conv *c) {
#ifdef NND_BF16
  return 0; /* sums of what was rounded so far would keep too few digits */
#endif
  const struct nnd_tensor *out = &o->model->tensors[c->out];
  for (int axis = 0; axis < 2; axis++)
    if (c->kernel[axis] != 3 || c->stride[axis] != 1 || c->dilation[axis] != 1) return 0;
  if (c->groups != 1 || out->rank != 4) return 0;
  const nnd_size rows = nnd_fixed_size(o, out->sizes[2]), columns = nnd_fixed_size(o, out->sizes[3]);
  const nnd_size most = (nnd_size)1 << 20;
  return rows > 0 && columns > 0 && rows <= most && columns <= most && c->in_channels <= most &&
         c->out_channels <= most;
}

int nnd_winograd_pays(const struct nnd_opener *o, const struct nnd_conv *c) {
  const struct nnd_tensor *out = &o->model->tensors[c->out];
  const nnd_size rows = nnd_fixed_size(o, out->sizes[2]), columns = nnd_fixed_size(o, out->sizes[3]);
  const nnd_size at_once = NND_ACCUMULATORS / NND_PANEL;
  const nnd_size tiles = nnd_ceil_div(rows, NND_WINOGRAD_TILE) * nnd_ceil_div(columns, NND_WINOGRAD_TILE);
  const double pairs = (double)c->in_channels * (double)c->out_channels, products = NND_WINOGRAD_PRODUCTS * pairs;
  const double slower = products * sizeof(nnd_weight) > NND_MANY_WEIGHTS ? 1.5 : 1.0;
  const double multiplied = products * slower * (double)(nnd_ceil_div(tiles, at_once) * at_once);
  const double transformed = NND_TRANSFORM * (double)tiles * (double)(c->in_channels + c->out_channels);
  return 9.0 * pairs * (double)rows * (double)columns > NND_WINOGRAD_GAIN * (multiplied + transformed);
}

struct nnd_winograd_weights {
  const float *from;
  nnd_size out_channels, in_channels;
  nnd_weight *to;
};

/* Panels [first, last) of all products. */
static void nnd_pack_winograd_panels(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_winograd_weights *t = fields;
  const nnd_size blocks = nnd_blocks(t->out_channels), full = nnd_full_panels(blocks);
  const nnd_size of_product = blocks * NND_LANES * t->in_channels;
  for (nnd_size panel = first; panel < last; panel++) {
    const nnd_size begin = panel * NND_PANEL * NND_LANES;
    const nnd_size wide = (panel < full ? NND_PANEL : nnd_last_panel(blocks)) * NND_LANES;
    for (nnd_size lane = 0; lane < wide; lane++) {
      const nnd_size o = nnd_output_of_lane(t->out_channels, begin + lane);
      for (nnd_size i = 0; o >= 0 && i < t->in_channels; i++) {
        double g[9], half[18], whole[NND_WINOGRAD_PRODUCTS];
        for (int k = 0; k < 9; k++) g[k] = t->from[(o * t->in_channels + i) * 9 + k];
        for (int k = 0; k < 3; k++) nnd_winograd_weights(g + k, 3, half + k, 3);
        for (int k = 0; k < NND_WINOGRAD_SIDE; k++)
          nnd_winograd_weights(half + 3 * k, 1, whole + NND_WINOGRAD_SIDE * k, 1);
        nnd_weight *to = t->to + begin * t->in_channels + i * wide + lane;
        for (int k = 0; k < NND_WINOGRAD_PRODUCTS; k++) to[k * of_product] = (nnd_weight)whole[k];
      }
    }
  }
}

int nnd_pack_winograd(struct nnd_opener *o, const struct nnd_conv *c, const void **to) {
  const nnd_size blocks = nnd_blocks(c->out_channels), of_product = blocks * NND_LANES * c->in_channels;
  const nnd_size zeros = blocks * NND_LANES * (nnd_size)sizeof(float);
  const nnd_size num_bytes = zeros + NND_WINOGRAD_PRODUCTS * of_product * (nnd_size)sizeof(nnd_weight);
  char *packed = nnd_packed_of(o, c->plain, num_bytes);
  if (!packed) return 0;
  *to = packed;
  const struct nnd_winograd_weights t = {c->weights, c->out_channels, c->in_channels, (nnd_weight *)(packed + zeros)};
  const nnd_size of_panel = NND_PANEL * NND_LANES * c->in_channels * 9 * (nnd_size)sizeof(float);
  nnd_pack(o, c->plain, nnd_pack_winograd_panels, &t, sizeof t, nnd_full_panels(blocks) + 1, of_panel);
  return 1;
}

struct nnd_winograd_fields {
  struct nnd_winograd s;
  nnd_size tiles;
};

static void nnd_run_winograd(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_winograd_fields *t = fields;
  const nnd_size zeros = nnd_blocks(t->s.out_channels) * NND_LANES;
  const struct nnd_winograd_data d = {.in = at[1],
                                      .weights = (const nnd_weight *)((const float *)at[2] + zeros),
                                      .bias = at[3],
                                      .zeros = at[2],
                                      .numbers = at[4],
                                      .residual = at[5],
                                      .out = at[0]};
  nnd_size first, last;
  nnd_share(nnd_ceil_div(t->tiles, t->s.at_once), part, &first, &last);
  for (; first < last; first++)
    nnd_winograd_tiles(&t->s, &d, first * t->s.at_once, nnd_min(t->tiles, (first + 1) * t->s.at_once), part.scratch);
}

int nnd_make_winograd(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                      const struct nnd_axis *x) {
  struct nnd_winograd_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size of_tile = nnd_winograd_tile_bytes(c->in_channels, c->out_channels);
  const nnd_size pixels = NND_ACCUMULATORS / NND_PANEL;
  t->s = (struct nnd_winograd){.rows = y->size,
                               .columns = x->size,
                               .out_rows = y->out_size,
                               .out_columns = x->out_size,
                               .top = y->pad,
                               .left = x->pad,
                               .tiles_down = nnd_ceil_div(y->out_size, NND_WINOGRAD_TILE),
                               .tiles_across = nnd_ceil_div(x->out_size, NND_WINOGRAD_TILE),
                               .in_channels = c->in_channels,
                               .out_channels = c->out_channels,
                               .end = c->end};
  t->tiles = nnd_shape_of(m, c->in)->sizes[0] * t->s.tiles_down * t->s.tiles_across;
  nnd_size at_once[2]; /* by the rule, as chosen */
  for (int i = 0; i < 2; i++) {
    const nnd_size fitting = nnd_max(1, (i ? nnd_l2(m) : nnd_machine_l2(m)) / 2 / of_tile / pixels) * pixels;
    nnd_size chunks = nnd_ceil_div(t->tiles, fitting);
    if (nnd_threads(m) > 1) chunks = nnd_min(t->tiles, nnd_ceil_div(chunks, nnd_threads(m)) * nnd_threads(m));
    at_once[i] = nnd_ceil_div(t->tiles, chunks);
  }
  t->s.at_once = nnd_same_bits(at_once[1], at_once[0], t->tiles, c->out_channels);
  m->scratch_bytes = t->s.at_once * of_tile;
  m->instance->run = nnd_run_winograd;
  snprintf(m->instance->shown, sizeof m->instance->shown, "by Winograd, %lld of %lld tiles at once",
           (long long)t->s.at_once, (long long)t->tiles);
  return 1;
}
