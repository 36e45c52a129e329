/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pixel_thirds.h"

#if NND_HAS_THIRDS
#include "kernels/ended_pixels.h"

/* Where thirds of pixels begin: behind the ring, or two panels. */
NND_INLINE nnd_size nnd_weight_thirds_bytes(nnd_size channels) {
  return nnd_max(NND_THIRDS_RING, 2 * nnd_thirds_bytes(NND_MOST_VECTORS * NND_LANES, channels));
}

nnd_size nnd_pixel_thirds_bytes(nnd_size pixels, nnd_size channels) {
  return nnd_weight_thirds_bytes(channels) + nnd_thirds_bytes(pixels + 4 * NND_AMX_ROWS, channels);
}

int nnd_thirds_of_pixels(const float *in, nnd_size plane, nnd_size channels, nnd_size pixels, char *to) {
  const nnd_size each = nnd_thirds_strips(pixels).each, third = each * NND_AMX_BYTES;
  to += nnd_weight_thirds_bytes(channels);
  vf odd = nnd_splat(0.0f);
  vi lane;
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i++) lane[i] = i;
  for (nnd_size from = 0; from < pixels; from += each) {
    const nnd_size count = nnd_min(each, pixels - from);
    for (nnd_size channel = 0; channel < channels; channel += NND_THIRDS_K, to += NND_THIRDS * third) {
      const float *low = in + channel / NND_LANES * plane + from * NND_LANES;
      const nnd_size left = channels - channel;
      const float *high = left > NND_LANES ? low + plane : low;
      const vi held[2] = {lane < (int32_t)nnd_min(left, NND_LANES),
                          lane + NND_LANES < (int32_t)nnd_min(left, NND_THIRDS_K)};
      for (nnd_size p = 0; p < count; p++) {
        vf x[2] = {(vf)((vi)nnd_load(low + p * NND_LANES) & held[0]),
                   (vf)((vi)nnd_load(high + p * NND_LANES) & held[1])};
        nnd_thirds_of(x, third, to + p * NND_AMX_BYTES, &odd);
      }
    }
  }
  return !nnd_any_lane(odd != odd);
}

/* Returns 0 where a weight of the panel is not finite. */
static int nnd_pixel_quads(const struct nnd_pixel_job *j, nnd_size channels, nnd_size panel, int vectors,
                           const char *rows, struct nnd_pixel_state *state) {
  const nnd_size at_once = nnd_ceil_div(4 * NND_AMX_ROWS / NND_ENDED_AT_ONCE, nnd_thirds_blocks(channels));
  for (int v = 0; v < vectors; v++) {
    const nnd_size block = panel * NND_PANEL + v;
    struct nnd_pixel_tile *tile = &state->tiles[state->number];
    struct nnd_ending_pixels e = nnd_ending_before(j, state);
    struct nnd_thirds_quad q = {.rows = rows,
                                .height = (int)j->strips.each,
                                .k = channels,
                                .floats = j->weights + panel * NND_PANEL * NND_LANES * channels + v * NND_LANES,
                                .first = j->bias + block * NND_LANES,
                                .vectors = vectors,
                                .vector = v,
                                .ring = (char *)j->packed,
                                .sums = tile->sums[0]};
    nnd_thirds_multiply_quad(&q, nnd_end_some_pixels, &e, at_once);
    state->tiles[!state->number].num_ended = 0;
    if (!q.is_finite) return 0; /* the first vector's are those of the panel */
    tile->ended[0] = nnd_ended_of(j, 0, 0, j->width, block, tile->sums[0], NND_LANES); /* strips follow each other */
    tile->num_ended = 1;
    state->number = !state->number;
  }
  return 1;
}

/* A turn beside a product: the pair before ends, then the next panel is cut. */
struct nnd_pixel_turns {
  struct nnd_ending_pixels ending;
  struct nnd_thirds_cut *cut;
};

static int nnd_pixel_turn(void *turns) {
  struct nnd_pixel_turns *t = turns;
  if (nnd_end_some_pixels(&t->ending)) return 1;
  nnd_thirds_cut_some(t->cut, t->cut->each);
  return 0;
}

NND_INLINE int nnd_vectors_of_panel(const struct nnd_pixel_job *j, nnd_size panel) {
  return panel + 1 < j->panels ? NND_PANEL : j->last_vectors;
}

NND_INLINE struct nnd_thirds_cut nnd_cut_of_panel(const struct nnd_pixel_job *j, nnd_size channels, nnd_size panel) {
  char *weights = (char *)j->packed;
  return nnd_thirds_cut_of(j->weights + panel * NND_PANEL * NND_LANES * channels, panel < j->panels ? channels : 0,
                           nnd_vectors_of_panel(j, panel),
                           weights + panel % 2 * nnd_thirds_bytes(NND_MOST_VECTORS * NND_LANES, channels));
}

/* The same of pairs of strips; `cut` goes on to the next panel. */
static int nnd_pixel_pairs(const struct nnd_pixel_job *j, nnd_size channels, nnd_size panel, int vectors,
                           const char *rows, struct nnd_thirds_cut *cut, struct nnd_pixel_state *state) {
  const nnd_size of_strip = nnd_thirds_bytes(j->strips.each, channels);
  nnd_thirds_cut_some(cut, cut->all);
  if (!cut->is_finite) return 0;
  const char *weights = cut->to;
  struct nnd_amx_blocks b = {.taps = 1,
                             .count = nnd_thirds_blocks(channels),
                             .block = NND_THIRDS * j->strips.each * NND_AMX_BYTES,
                             .height = (int)j->strips.each,
                             .wide = vectors};
  *cut = nnd_cut_of_panel(j, channels, panel + 1);
  const nnd_size products = j->strips.count / 2 * nnd_ceil_div(vectors, 2);
  const nnd_size at_once = nnd_thirds_spread(cut, products, b.count, 2 * NND_PANEL * NND_AMX_ROWS / NND_ENDED_AT_ONCE);
  for (nnd_size strip = 0; strip < j->strips.count; strip += 2)
    for (int v = 0; v < vectors; v += 2) {
      b.rows[0] = rows + strip * of_strip, b.rows[1] = b.rows[0] + of_strip;
      b.weights = weights + v * NND_AMX_ROWS * NND_AMX_BYTES;
      struct nnd_pixel_turns turns = {
          nnd_next_pair(j, &b, strip, panel * NND_PANEL + v, (int)nnd_min(2, vectors - v), state), cut};
      nnd_thirds_multiply_pair(&b, nnd_pixel_turn, &turns, at_once);
    }
  return 1;
}

nnd_size nnd_multiply_pixel_thirds(const struct nnd_pixel_job *j, nnd_size channels) {
  const char *rows = (const char *)j->packed + nnd_weight_thirds_bytes(channels);
  const int is_quad = nnd_thirds_are_a_quad(j->width);
  struct nnd_thirds_cut cut = nnd_cut_of_panel(j, channels, 0);
  struct nnd_pixel_state state;
  state.number = state.tiles[0].num_ended = state.tiles[1].num_ended = 0;
  nnd_size panel = 0;
  for (int is_finite = 1; is_finite && panel < j->panels; panel += is_finite) {
    const int vectors = nnd_vectors_of_panel(j, panel);
    is_finite = is_quad ? nnd_pixel_quads(j, channels, panel, vectors, rows, &state)
                        : nnd_pixel_pairs(j, channels, panel, vectors, rows, &cut, &state);
  }
  struct nnd_ending_pixels e = nnd_ending_before(j, &state);
  while (nnd_end_some_pixels(&e)) {
  }
  return panel;
}
#endif
