/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_record.h"

#include "kernels/layout.h"
#include "kernels/tile.h"

const float *nnd_pack_channels(struct nnd_opener *o, const struct nnd_weight_data *values, nnd_size channels) {
  if (values && values->count != channels) {
    nnd_fail(o->message, "there are %lld numbers for %lld channels", (long long)values->count, (long long)channels);
    return NULL;
  }
  float *packed = nnd_packed(o, nnd_blocks(channels) * NND_LANES * (nnd_size)sizeof(float));
  if (packed && values) memcpy(packed, values->data, (size_t)channels * sizeof(float));
  return packed;
}

int nnd_open_conv(struct nnd_opener *o, const struct nnd_conv_record *words, struct nnd_conv *c, int reads,
                  int writes) {
  const struct nnd_weight_data *weights = words->weights, *numbers = words->epilogue.channel;
  c->in = words->in, c->out = words->out, c->residual = words->epilogue.residual, c->groups = words->groups;
  for (int i = 0; i < 2; i++) {
    c->stride[i] = words->window.strides[i], c->dilation[i] = words->window.dilations[i];
    c->pad[i] = words->window.pads[i];
  }
  if (reads) nnd_reads(o, c->in);
  if (writes) nnd_writes(o, c->out);
  if (o->message->failed) return 0;
  if (!weights || weights->rank != 4 || weights->sizes[0] % c->groups || weights->sizes[1] > NND_MOST_BYTES / c->groups)
    return nnd_fail(o->message, "a convolution without weights that fit it");
  c->out_channels = weights->sizes[0];
  c->in_channels = weights->sizes[1] * c->groups;
  c->kernel[0] = weights->sizes[2], c->kernel[1] = weights->sizes[3];
  c->plain = weights, c->weights = weights->data;
  c->end = nnd_end_of_words(o, &words->epilogue);
  c->bias = nnd_pack_channels(o, words->bias, c->out_channels);
  c->numbers = numbers ? nnd_pack_channels(o, numbers, c->out_channels) : NULL;
  return !o->message->failed;
}

int nnd_is_depthwise(const struct nnd_conv *c) { return c->groups == c->in_channels && c->groups == c->out_channels; }

NND_INLINE nnd_weight nnd_weight_of(float value) {
#ifdef NND_BF16
  return nnd_to_elem(value);
#else
  return value;
#endif
}

nnd_size nnd_output_of_lane(nnd_size outputs, nnd_size lane) {
  const int is_second = nnd_has_half(outputs) && lane >= outputs / NND_LANES * NND_LANES + NND_LANES / 2;
  const nnd_size output = is_second ? lane - NND_LANES / 2 : lane;
  return output < outputs ? output : -1;
}

#define NND_PACKED_AT_ONCE 64 /* taps of input channels: what is written stays in the first cache */

/* A panel of floats, transposed in registers, so that each line is written once; an output has at least NND_LANES. Half
 * the time of AVX-512 (ultraface_rfb320, AMD Zen 4, 2026-12-01); vectors of 4 lanes are a quarter of a line. */
static void nnd_turn_panel(const float *weights, nnd_size outputs, nnd_size inputs, nnd_size taps, nnd_size first,
                           int vectors, float *to) {
  const nnd_size each = inputs * taps, wide = vectors * NND_LANES;
  for (nnd_size begin = 0; begin < each; begin += NND_LANES) {
    const nnd_size at = nnd_min(begin, each - NND_LANES); /* the last ones may overlap those before */
    for (int v = 0; v < vectors; v++) {
      vf rows[NND_LANES];
      NND_UNROLL
      for (int k = 0; k < NND_LANES; k++) {
        const nnd_size o = nnd_output_of_lane(outputs, first + v * NND_LANES + k);
        rows[k] = o < 0 ? nnd_splat(0.0f) : nnd_load_any(weights + o * each + at);
      }
      nnd_transpose(rows);
      nnd_size i = at / taps, tap = at % taps;
      NND_UNROLL
      for (int k = 0; k < NND_LANES; k++) {
        nnd_store(to + (tap * inputs + i) * wide + v * NND_LANES, rows[k]);
        if (++tap == taps) tap = 0, i++;
      }
    }
  }
}

/* One panel: [tap][i / group][vector][c][group] of (O, I, taps). */
#define NND_PACK_PANEL(name, type, of, GROUP, DEPTH)                                                                   \
  static void name(const float *weights, nnd_size outputs, nnd_size inputs, nnd_size taps, nnd_size first,             \
                   int vectors, type *to) {                                                                            \
    const nnd_size wide = vectors * NND_LANES, padded = nnd_ceil_div(inputs, DEPTH) * DEPTH;                           \
    const nnd_size at_once = nnd_max(1, NND_PACKED_AT_ONCE / taps);                                                    \
    if (NND_LANES > 4 && GROUP == 1 && DEPTH == 1 && sizeof(type) == 4 && inputs * taps >= NND_LANES) {                \
      nnd_turn_panel(weights, outputs, inputs, taps, first, vectors, (float *)to);                                     \
      return;                                                                                                          \
    }                                                                                                                  \
    for (nnd_size begin = 0; begin < inputs; begin += at_once) {                                                       \
      const nnd_size end = nnd_min(inputs, begin + at_once);                                                           \
      for (nnd_size lane = 0; lane < wide; lane++) {                                                                   \
        const nnd_size o = nnd_output_of_lane(outputs, first + lane);                                                  \
        if (o < 0) continue;                                                                                           \
        const float *from = weights + o * inputs * taps;                                                               \
        for (nnd_size i = begin; i < end; i++)                                                                         \
          for (nnd_size tap = 0; tap < taps; tap++)                                                                    \
            to[((tap * padded + i / GROUP * GROUP) * wide) + lane * GROUP + i % GROUP] = of(from[i * taps + tap]);     \
      }                                                                                                                \
    }                                                                                                                  \
  }
NND_PACK_PANEL(nnd_pack_panel, nnd_weight, nnd_weight_of, NND_GROUP, NND_DEPTH)
NND_PACK_PANEL(nnd_pack_planar_panel, float, , 1, 1)

struct nnd_panels {
  const float *weights;
  nnd_size out_channels, in_channels, taps, of_block;
  void *to;
};

#define NND_PACK_PANELS(name, type, pack_panel)                                                                        \
  static void name(const void *fields, nnd_size first, nnd_size last) {                                                \
    const struct nnd_panels *t = fields;                                                                               \
    const nnd_size blocks = nnd_blocks(t->out_channels), full = nnd_full_panels(blocks);                               \
    for (nnd_size panel = first; panel < last; panel++) {                                                              \
      const nnd_size block = panel * NND_PANEL;                                                                        \
      pack_panel(t->weights, t->out_channels, t->in_channels, t->taps, block * NND_LANES,                              \
                 panel < full ? NND_PANEL : nnd_last_panel(blocks), (type *)t->to + block * t->of_block);              \
    }                                                                                                                  \
  }
NND_PACK_PANELS(nnd_pack_panels, nnd_weight, nnd_pack_panel)
NND_PACK_PANELS(nnd_pack_planar_panels, float, nnd_pack_planar_panel)

/* Packs by panels for input channels that are `padded`, each weight in `each` bytes. */
static int nnd_pack_by_panels(struct nnd_opener *o, struct nnd_conv *c, nnd_size padded, size_t each, nnd_packer pack) {
  const nnd_size blocks = nnd_blocks(c->out_channels), taps = c->kernel[0] * c->kernel[1];
  struct nnd_panels t = {c->weights, c->out_channels, c->in_channels, taps, padded * taps * NND_LANES, NULL};
  c->packed = t.to = nnd_packed_of(o, c->plain, blocks * t.of_block * (nnd_size)each);
  const nnd_size of_panel = NND_PANEL * NND_LANES * c->in_channels * taps * (nnd_size)sizeof(float);
  if (t.to) nnd_pack(o, c->plain, pack, &t, sizeof t, nnd_full_panels(blocks) + 1, of_panel);
  return t.to != NULL;
}

static int nnd_pack_products(struct nnd_opener *o, struct nnd_conv *c) {
  return nnd_pack_by_panels(o, c, nnd_grouped_channels(c->in_channels), sizeof(nnd_weight), nnd_pack_panels);
}

static int nnd_pack_planar(struct nnd_opener *o, struct nnd_conv *c) {
  return nnd_pack_by_panels(o, c, c->in_channels, sizeof(float), nnd_pack_planar_panels);
}

/* (C, 1, kh, kw) as [C / c][kh][kw][c]. */
static int nnd_pack_depthwise(struct nnd_opener *o, struct nnd_conv *c) {
  const nnd_size taps = c->kernel[0] * c->kernel[1];
  float *to = nnd_packed(o, nnd_blocks(c->out_channels) * taps * NND_LANES * (nnd_size)sizeof *to);
  if (!to) return 0;
  c->packed = to;
  for (nnd_size channel = 0; channel < c->out_channels; channel++)
    for (nnd_size tap = 0; tap < taps; tap++)
      to[(channel / NND_LANES * taps + tap) * NND_LANES + channel % NND_LANES] = c->weights[channel * taps + tap];
  return 1;
}

int nnd_pack_conv(struct nnd_opener *o, struct nnd_conv *c, enum nnd_packing how) {
  switch (how) {
    case NND_PACK_PRODUCTS: return nnd_pack_products(o, c);
    case NND_PACK_PLANAR: return nnd_pack_planar(o, c);
    default: return nnd_pack_depthwise(o, c);
  }
}

/* Weights of groups: [O / c] dense panels of one vector over `span` channels, zeros where another group is. */
int nnd_pack_grouped(struct nnd_opener *o, struct nnd_conv *c, struct nnd_grouped *g) {
  const nnd_size blocks = nnd_blocks(c->out_channels), of_group = c->out_channels / c->groups;
  const nnd_size in_group = c->in_channels / c->groups, taps = c->kernel[0] * c->kernel[1];
  g->begins = nnd_packed(o, blocks * (nnd_size)sizeof *g->begins);
  if (!g->begins) return 0;
  nnd_size span = 0; /* in blocks */
  for (nnd_size block = 0; block < blocks; block++) {
    const nnd_size first = block * NND_LANES, last = nnd_min(first + NND_LANES, c->out_channels) - 1;
    g->begins[block] = first / of_group * in_group / NND_LANES;
    span = nnd_max(span, nnd_blocks((last / of_group + 1) * in_group) - g->begins[block]);
  }
  for (nnd_size block = 0; block < blocks; block++)
    g->begins[block] = nnd_min(g->begins[block], nnd_blocks(c->in_channels) - span);
  g->span = nnd_min(span * NND_LANES, c->in_channels);
  const nnd_size padded = nnd_grouped_channels(g->span), of_block = padded * taps * NND_LANES;
  if (of_block > NND_MOST_BYTES / 8 / blocks) return nnd_fail(o->message, "groups of a convolution are too large");
  nnd_weight *to = nnd_packed(o, blocks * of_block * (nnd_size)sizeof *to);
  if (!to) return 0;
  c->packed = to;
  for (nnd_size out = 0; out < c->out_channels; out++) {
    const nnd_size block = out / NND_LANES, begin = out / of_group * in_group - g->begins[block] * NND_LANES;
    for (nnd_size i = 0; i < in_group; i++)
      for (nnd_size tap = 0; tap < taps; tap++) {
        const nnd_size at = begin + i;
        nnd_weight *place = to + block * of_block + (tap * padded + at / NND_GROUP * NND_GROUP) * NND_LANES +
                            out % NND_LANES * NND_GROUP + at % NND_GROUP;
        *place = nnd_weight_of(c->weights[(out * in_group + i) * taps + tap]);
      }
  }
  return 1;
}

nnd_size nnd_grouped_held(const struct nnd_grouped *g, nnd_size in_channels, nnd_size block) {
  return nnd_min(g->span, in_channels - g->begins[block] * NND_LANES);
}

int nnd_fits_depth(struct nnd_opener *o, const struct nnd_conv *c, const struct nnd_depth *depth) {
  return c->kernel[0] % depth->kernel == 0 ||
         nnd_fail(o->message, "a convolution of volumes without weights that fit it");
}

int nnd_volume_axes(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_depth *depth,
                    struct nnd_axis axes[3]) {
  if (!nnd_conv_axes(m, c, &axes[1], &axes[2])) return 0;
  struct nnd_axis *z = &axes[0], *y = &axes[1];
  *z = (struct nnd_axis){
      nnd_size_of(m, depth->size), nnd_size_of(m, depth->out_size), depth->kernel, depth->stride, depth->dilation,
      nnd_size_of(m, depth->pad)};
  if (z->size < 1 || z->out_size < 1 || y->size % z->size || y->out_size % z->out_size || z->pad < 0 ||
      z->pad > NND_MOST_STEP)
    return nnd_fail(m->message, "volumes do not fit the images that make them");
  y->size /= z->size, y->out_size /= z->out_size, y->kernel /= z->kernel;
  return 1;
}

int nnd_conv_axes(struct nnd_maker *m, const struct nnd_conv *c, struct nnd_axis *y, struct nnd_axis *x) {
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  if (in->rank != 4 || out->rank != 4 || in->sizes[0] != out->sizes[0] || in->sizes[1] != c->in_channels ||
      out->sizes[1] != c->out_channels || !out->is_blocked)
    return nnd_fail(m->message, "the images of a convolution do not fit its weights");
  struct nnd_axis *axes[2] = {y, x};
  for (int i = 0; i < 2; i++) {
    const nnd_size pad = nnd_size_of(m, c->pad[i]);
    *axes[i] = (struct nnd_axis){in->sizes[2 + i], out->sizes[2 + i], c->kernel[i], c->stride[i], c->dilation[i], pad};
    if (pad < 0 || pad > NND_MOST_STEP)
      return nnd_fail(m->message, "a convolution has %lld zeros before it", (long long)pad);
  }
  if (c->residual >= 0) {
    const struct nnd_shape *residual = nnd_shape_of(m, c->residual);
    int is_same = residual->is_blocked && residual->rank == 4;
    for (int axis = 0; is_same && axis < 4; axis++) is_same = residual->sizes[axis] == out->sizes[axis];
    if (!is_same) return nnd_fail(m->message, "a residual has another shape than what it is added to");
  }
  return 1;
}

int nnd_is_pointwise(const struct nnd_maker *m, const struct nnd_conv *c) {
  return c->groups == 1 && c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1 &&
         nnd_size_of(m, c->pad[0]) == 0 && nnd_size_of(m, c->pad[1]) == 0;
}
