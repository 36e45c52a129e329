/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/bf16_tiles.h"

#ifdef NND_BF16
#include "kernels/amx.h"
#include "kernels/begin.h"
#include "kernels/ended_pixels.h"

/* Products of fewer rows, k or multiplications are left to VDPBF16PS. */
#ifndef NND_AMX_LEAST_PRODUCTS /* tests take tiles for all */
#define NND_AMX_LEAST_ROWS 4
#define NND_AMX_LEAST_K 16
#define NND_AMX_LEAST_PRODUCTS ((nnd_size)1 << 14)
#endif

/* Panels by which pairs of strips are multiplied one after the other: their weights stay in the second cache. */
#define NND_PANELS_BYTES ((nnd_size)512 << 10)

static int nnd_bf16_has_tiles;

void nnd_begin_bf16_tiles(void) { nnd_bf16_has_tiles = nnd_amx_is_there(NND_AMX_BF16); }

int nnd_bf16_takes_tiles(nnd_size rows, nnd_size k, nnd_size columns) {
  if (rows < NND_AMX_LEAST_ROWS || k < NND_AMX_LEAST_K || rows * columns < NND_AMX_LEAST_PRODUCTS / k) return 0;
  return nnd_bf16_has_tiles && nnd_amx_is_permitted();
}

/* All of 32 channels, of which `held` are a pixel's. */
typedef uint16_t nnd_pixel __attribute__((vector_size(NND_AMX_BYTES), aligned(2)));
NND_INLINE nnd_pixel nnd_held_channels(nnd_size held) {
  nnd_pixel mask;
  NND_UNROLL
  for (int i = 0; i < NND_PIXEL_BLOCK; i++) mask[i] = i < held ? 0xffff : 0;
  return mask;
}
NND_INLINE nnd_pixel nnd_joined_blocks(const nnd_elem *low, const nnd_elem *high) {
  return __builtin_shufflevector(*(const nnd_elems *)low, *(const nnd_elems *)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}

void nnd_bf16_pack_run(const nnd_elem *in, nnd_size plane, nnd_size channels, nnd_size pixels, nnd_size block_step,
                       nnd_elem *to) {
  for (; channels > 0; channels -= NND_PIXEL_BLOCK, in += 2 * plane, to += block_step) {
    const nnd_elem *high = channels > NND_LANES ? in + plane : in;
    if (channels >= NND_PIXEL_BLOCK) {
      for (nnd_size p = 0; p < pixels; p++)
        *(nnd_pixel *)(to + p * NND_PIXEL_BLOCK) = nnd_joined_blocks(in + p * NND_LANES, high + p * NND_LANES);
      continue;
    }
    const nnd_pixel held = nnd_held_channels(channels);
    for (nnd_size p = 0; p < pixels; p++)
      *(nnd_pixel *)(to + p * NND_PIXEL_BLOCK) = nnd_joined_blocks(in + p * NND_LANES, high + p * NND_LANES) & held;
  }
}

void nnd_bf16_pack_pixels(const nnd_elem *in, nnd_size plane, nnd_size channels, nnd_size pixels, nnd_elem *to) {
  const nnd_size of_block = NND_AMX_ROWS * NND_PIXEL_BLOCK, each = nnd_amx_pairs_of(pixels).each;
  for (nnd_size from = 0; from < pixels; from += each, to += nnd_pixel_blocks(channels) * of_block)
    nnd_bf16_pack_run(in + from * NND_LANES, plane, channels, nnd_min(each, pixels - from), of_block, to);
}

NND_AMX_TARGET void nnd_bf16_blocks(const struct nnd_amx_blocks *b, nnd_amx_ender end_some, void *ending,
                                    nnd_size at_once) {
  if (b->vectors == 1)
    nnd_amx_multiply(2, 1, NND_AMX_BF16, b, end_some, ending, at_once);
  else
    nnd_amx_multiply(2, 2, NND_AMX_BF16, b, end_some, ending, at_once);
}

NND_INLINE const char *nnd_strip_at(const struct nnd_pixel_job *j, nnd_size strip) {
  return (const char *)(j->packed + strip / j->strips.count * j->line_step + strip % j->strips.count * j->strip_step);
}

void nnd_bf16_multiply(const struct nnd_pixel_job *j) {
  const nnd_size of_vector = j->taps * j->blocks * NND_PIXEL_BLOCK * NND_LANES; /* weights */
  const nnd_size panel_bytes = NND_PANEL * of_vector * (nnd_size)sizeof(nnd_weight);
  const nnd_size at_once = nnd_max(1, NND_PANELS_BYTES / panel_bytes), strips = j->lines * j->strips.count;
  struct nnd_pixel_state state;
  state.number = state.tiles[0].num_ended = state.tiles[1].num_ended = 0;
  struct nnd_amx_blocks b = {.offsets = j->offsets,
                             .taps = j->taps,
                             .count = j->blocks,
                             .size = NND_AMX_BYTES,
                             .step = j->pixel_step * (nnd_size)sizeof(nnd_elem),
                             .block = j->block_step * (nnd_size)sizeof(nnd_elem),
                             .strips = 2,
                             .height = (int)j->strips.each};
  for (nnd_size begin = 0; begin < j->panels; begin += at_once)
    for (nnd_size strip = 0; strip < strips; strip += 2) {
      b.rows[0] = nnd_strip_at(j, strip), b.rows[1] = nnd_strip_at(j, nnd_min(strip + 1, strips - 1));
      for (nnd_size panel = begin; panel < nnd_min(j->panels, begin + at_once); panel++) {
        const nnd_size block = panel * NND_PANEL;
        b.wide = panel + 1 < j->panels ? NND_PANEL : j->last_vectors;
        for (int v = 0; v < b.wide; v += 2) {
          b.weights = j->weights + block * of_vector + v * NND_GROUP * NND_LANES;
          struct nnd_ending_pixels e = nnd_next_pair(j, &b, strip, block + v, (int)nnd_min(2, b.wide - v), &state);
          const nnd_size runs = (e.behind - e.ended) * nnd_ceil_div(NND_AMX_ROWS, NND_ENDED_AT_ONCE);
          nnd_bf16_blocks(&b, nnd_end_some_pixels, &e, nnd_ceil_div(runs, b.taps * b.count));
        }
      }
    }
  struct nnd_ending_pixels e = nnd_ending_before(j, &state);
  while (nnd_end_some_pixels(&e)) {
  }
}
#endif
