/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of pixels that the tiles of AMX made, on their way to the output: while a pair of strips is multiplied, the one
 * before ends.
 */
#ifndef NND_ENDED_PIXELS_H
#define NND_ENDED_PIXELS_H

#include "kernels/pixel_job.h"
#include "kernels/tile.h"

#define NND_ENDED_AT_ONCE 8

/* Sums of the pixels of a strip by one vector, on their way to the output. */
struct nnd_ended_pixels {
  const float *sums;
  nnd_size sums_row, pixels;
  const nnd_elem *residual;
  nnd_elem *out;
  vf number;
};

struct nnd_ending_pixels {
  const struct nnd_end *end;
  const struct nnd_ended_pixels *ended, *behind;
  nnd_size done; /* pixels */
  int stream;
};

NND_INLINE void nnd_end_pixels(int count, const struct nnd_ending_pixels *e, nnd_size pixel) {
  const struct nnd_ended_pixels *d = e->ended;
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

static int nnd_end_some_pixels(void *ending) {
  struct nnd_ending_pixels *e = ending;
  if (e->ended == e->behind) return 0;
  const nnd_size pixels = e->ended->pixels;
  if (pixels < NND_ENDED_AT_ONCE) {
    for (nnd_size p = 0; p < pixels; p++) nnd_end_pixels(1, e, p);
    e->done = pixels;
  } else { /* the last ones may be there already: they are the same */
    nnd_end_pixels(NND_ENDED_AT_ONCE, e, nnd_min(e->done, pixels - NND_ENDED_AT_ONCE));
    e->done += NND_ENDED_AT_ONCE;
  }
  if (e->done >= pixels) e->ended++, e->done = 0;
  return 1;
}

/* Sums of two strips by two vectors at most, and what becomes of them. */
struct nnd_pixel_tile {
  float sums[2][NND_AMX_ROWS * NND_PANEL * NND_LANES] __attribute__((aligned(NND_LINE_BYTES)));
  struct nnd_ended_pixels ended[2 * NND_PANEL];
  int num_ended;
};

/* What is multiplied, and the tile before it, which ends meanwhile. */
struct nnd_pixel_state {
  struct nnd_pixel_tile tiles[2];
  int number; /* of the one that is next */
};

/* What ends beside the next product. */
NND_INLINE struct nnd_ending_pixels nnd_ending_before(const struct nnd_pixel_job *j,
                                                      const struct nnd_pixel_state *state) {
  const struct nnd_pixel_tile *before = &state->tiles[!state->number];
  return (struct nnd_ending_pixels){j->end, before->ended, before->ended + before->num_ended, 0, j->stream};
}

/* What becomes of sums of some pixels of a line by one vector, `row` floats apart. */
NND_INLINE struct nnd_ended_pixels nnd_ended_of(const struct nnd_pixel_job *j, nnd_size line, nnd_size pixel,
                                                nnd_size pixels, nnd_size block, const float *sums, nnd_size row) {
  const nnd_size at = block * j->out_plane + line * j->out_line + pixel * NND_LANES;
  return (struct nnd_ended_pixels){sums,        row,
                                   pixels,      j->end->residual ? j->residual + at : j->out /* read where it is one */,
                                   j->out + at, nnd_end_number(j->end, j->numbers, block)};
}

/* Strips `strip` and, where there is one, the next, counted from line to line, by `vectors` vectors from `block` on: what
 * is to be multiplied next. Returns what ends meanwhile. */
NND_INLINE struct nnd_ending_pixels nnd_next_pair(const struct nnd_pixel_job *j, struct nnd_amx_blocks *b,
                                                  nnd_size strip, nnd_size block, int vectors,
                                                  struct nnd_pixel_state *state) {
  struct nnd_pixel_tile *tile = &state->tiles[state->number];
  const struct nnd_ending_pixels e = nnd_ending_before(j, state);
  b->first = j->bias + block * NND_LANES;
  b->vectors = vectors, b->sums_row = vectors * NND_LANES;
  tile->num_ended = 0;
  for (int s = 0; s < 2; s++) {
    const nnd_size line = (strip + s) / j->strips.count, pixel = (strip + s) % j->strips.count * j->strips.each;
    const nnd_size pixels = line < j->lines ? nnd_min(j->strips.each, j->width - pixel) : 0;
    b->sums[s] = tile->sums[s];
    for (int v = 0; v < vectors && pixels > 0; v++)
      tile->ended[tile->num_ended++] =
          nnd_ended_of(j, line, pixel, pixels, block + v, tile->sums[s] + v * NND_LANES, b->sums_row);
  }
  state->number = !state->number;
  return e;
}

#endif
