/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/bf16_tiles.h"

#ifdef NND_BF16
#include "kernels/amx.h"
#include "kernels/begin.h"
#include "kernels/tile.h"

/* Products of fewer rows, k or multiplications are left to VDPBF16PS. */
#ifndef NND_AMX_LEAST_PRODUCTS /* tests take tiles for all */
#define NND_AMX_LEAST_ROWS 4
#define NND_AMX_LEAST_K 16
#define NND_AMX_LEAST_PRODUCTS ((nnd_size)1 << 14)
#endif

/* Panels by which pairs of strips are multiplied one after the other: their weights stay in the second cache. */
#define NND_PANELS_BYTES ((nnd_size)512 << 10)
#define NND_ENDED_AT_ONCE 8

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
  const nnd_size of_block = NND_AMX_ROWS * NND_PIXEL_BLOCK, each = nnd_bf16_pairs_of(pixels).each;
  for (nnd_size from = 0; from < pixels; from += each, to += nnd_pixel_blocks(channels) * of_block)
    nnd_bf16_pack_run(in + from * NND_LANES, plane, channels, nnd_min(each, pixels - from), of_block, to);
}

/* Sums of the pixels of a strip by one vector, on their way to the output. */
struct nnd_bf16_ended {
  const float *sums;
  nnd_size sums_row, pixels;
  const nnd_elem *residual;
  nnd_elem *out;
  vf number;
};

struct nnd_bf16_ending {
  const struct nnd_end *end;
  const struct nnd_bf16_ended *ended, *behind;
  nnd_size done; /* pixels */
  int stream;
};

NND_INLINE void nnd_bf16_end_pixels(int count, const struct nnd_bf16_ending *e, nnd_size pixel) {
  const struct nnd_bf16_ended *d = e->ended;
  const float *sums = d->sums + pixel * d->sums_row;
  nnd_elem *out = d->out + pixel * NND_LANES;
  vf run[NND_ENDED_AT_ONCE];
  NND_UNROLL
  for (int i = 0; i < count; i++) run[i] = nnd_load(sums + i * d->sums_row);
  nnd_end_sums(e->end, run, count, d->residual + pixel * NND_LANES, d->number);
  if (e->stream) NND_UNROLL
  for (int i = 0; i < count; i++) nnd_stream(out + i * NND_LANES, run[i]);
  else NND_UNROLL
  for (int i = 0; i < count; i++) nnd_write(out + i * NND_LANES, run[i]);
}

static int nnd_bf16_end_some(void *ending) {
  struct nnd_bf16_ending *e = ending;
  if (e->ended == e->behind) return 0;
  const nnd_size pixels = e->ended->pixels;
  if (pixels < NND_ENDED_AT_ONCE) {
    for (nnd_size p = 0; p < pixels; p++) nnd_bf16_end_pixels(1, e, p);
    e->done = pixels;
  } else { /* the last ones may be there already: they are the same */
    nnd_bf16_end_pixels(NND_ENDED_AT_ONCE, e, nnd_min(e->done, pixels - NND_ENDED_AT_ONCE));
    e->done += NND_ENDED_AT_ONCE;
  }
  if (e->done >= pixels) e->ended++, e->done = 0;
  return 1;
}

/* Sums of two strips by two vectors at most, and what becomes of them. */
struct nnd_bf16_tile {
  float sums[2][NND_AMX_ROWS * NND_PANEL * NND_LANES] __attribute__((aligned(NND_LINE_BYTES)));
  struct nnd_bf16_ended ended[2 * NND_PANEL];
  int num_ended;
};

NND_AMX_TARGET void nnd_bf16_blocks(const struct nnd_amx_blocks *b, nnd_amx_ender end_some, void *ending,
                                    nnd_size at_once) {
  if (b->vectors == 1)
    nnd_amx_multiply(2, 1, NND_AMX_BF16, b, end_some, ending, at_once);
  else
    nnd_amx_multiply(2, 2, NND_AMX_BF16, b, end_some, ending, at_once);
}

/* What is multiplied, and the tile before it, which ends meanwhile. */
struct nnd_bf16_state {
  struct nnd_bf16_tile tiles[2];
  int number; /* of the one that is next */
};

/* Strips `strip` and, where there is one, the next, counted from line to line, by `vectors` vectors from `block` on. */
NND_INLINE void nnd_bf16_pair(const struct nnd_bf16_job *j, struct nnd_amx_blocks *b, nnd_size strip, nnd_size block,
                              int vectors, struct nnd_bf16_state *state) {
  struct nnd_bf16_tile *tile = &state->tiles[state->number], *before = &state->tiles[!state->number];
  struct nnd_bf16_ending e = {j->end, before->ended, before->ended + before->num_ended, 0, j->stream};
  b->first = j->bias + block * NND_LANES;
  b->vectors = vectors, b->sums_row = vectors * NND_LANES;
  tile->num_ended = 0;
  for (int s = 0; s < 2; s++) {
    const nnd_size line = (strip + s) / j->strips.count, pixel = (strip + s) % j->strips.count * j->strips.each;
    const nnd_size pixels = line < j->lines ? nnd_min(j->strips.each, j->width - pixel) : 0;
    b->sums[s] = tile->sums[s];
    for (int v = 0; v < vectors && pixels > 0; v++) {
      const nnd_size at = (block + v) * j->out_plane + line * j->out_line + pixel * NND_LANES;
      tile->ended[tile->num_ended++] =
          (struct nnd_bf16_ended){tile->sums[s] + v * NND_LANES,
                                  b->sums_row,
                                  pixels,
                                  j->end->residual ? j->residual + at : j->out /* read where it is one */,
                                  j->out + at,
                                  nnd_end_number(j->end, j->numbers, block + v)};
    }
  }
  const nnd_size runs = before->num_ended * nnd_ceil_div(NND_AMX_ROWS, NND_ENDED_AT_ONCE);
  nnd_bf16_blocks(b, nnd_bf16_end_some, &e, nnd_ceil_div(runs, b->taps * b->count));
  state->number = !state->number;
}

NND_INLINE const char *nnd_strip_at(const struct nnd_bf16_job *j, nnd_size strip) {
  return (const char *)(j->packed + strip / j->strips.count * j->line_step + strip % j->strips.count * j->strip_step);
}

void nnd_bf16_multiply(const struct nnd_bf16_job *j) {
  const nnd_size of_vector = j->taps * j->blocks * NND_PIXEL_BLOCK * NND_LANES; /* weights */
  const nnd_size panel_bytes = NND_PANEL * of_vector * (nnd_size)sizeof(nnd_weight);
  const nnd_size at_once = nnd_max(1, NND_PANELS_BYTES / panel_bytes), strips = j->lines * j->strips.count;
  struct nnd_bf16_state state;
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
          nnd_bf16_pair(j, &b, strip, block + v, (int)nnd_min(2, b.wide - v), &state);
        }
      }
    }
  const struct nnd_bf16_tile *last = &state.tiles[!state.number];
  struct nnd_bf16_ending e = {j->end, last->ended, last->ended + last->num_ended, 0, j->stream};
  while (nnd_bf16_end_some(&e)) {
  }
}
#endif
