/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel of all products: a register tile of pixels x vectors of output channels,
 *
 *   out[o][p] = end(bias[o] + sum over taps and input channels of weights[tap][i][o] * in[tap][i][p], residual[o][p])
 *
 * P pixels x V vectors, P * V <= NND_ACCUMULATORS: every input channel costs V loads of weights and P broadcasts for
 * P * V multiply-adds, so with 14 x 2 the multipliers are the limit. P, V and the way from pixel to pixel are compiled
 * in; sizes, strides, taps and ends are arguments. Where at most half of the last vector are output channels (24 of
 * 32), two pixels share a vector of sums there: its weights are there twice, and halves of two broadcasts meet them.
 *
 * Weights: panels of NND_PANEL vectors, one after the other, each [rows of taps][columns][channels / NND_GROUP][vectors
 * of the panel][c][NND_GROUP].
 */
#ifndef NND_TILE_H
#define NND_TILE_H

#include "base/step.h"

/* How the pixels of a tile lie, from each to the next. */
enum nnd_way {
  NND_NEXT,     /* NCHWc, side by side */
  NND_SECOND,   /* NCHWc, every second one */
  NND_ANYWHERE, /* NCHWc, `pixel_step` apart: of few sizes, and of no halves */
  NND_PLANES,   /* floats of NCHW, side by side */
  NND_PLANES_2  /* floats of NCHW, every second one */
};
#define NND_WAYS 5
#define NND_MOST_VECTORS (NND_PANEL == 2 ? 3 : 4)

/* Where a tile is in a sum over channels that is taken in parts. */
enum nnd_sum { NND_WHOLE = 3, NND_FIRST = 1, NND_MIDDLE = 0, NND_LAST = 2 };

/* Some tiles, side by side. */
struct nnd_tile_job {
  nnd_size count;                    /* of tiles */
  const void *in;                    /* the first pixel's first tap */
  nnd_size in_plane;                 /* elements from one channel block to the next */
  nnd_size channels;                 /* to sum over */
  nnd_size rows, columns;            /* taps */
  nnd_size row_step, column_step;    /* elements of the input from one to the next */
  nnd_size column, dilation, width;  /* of the first tap, from tap to tap, of rows, beside which the first pixel of all
                                        and the last one may read zeros; 0: none does */
  const nnd_size *offsets;           /* of planes: where each channel of each tap lies, from `in` on */
  const void *weights;               /* of the first tap */
  nnd_size row_weights, tap_weights; /* elements from row to row of taps, and from tap to tap */
  const float *bias, *numbers;       /* of the first vector */
  const nnd_elem *residual;          /* laid out like the output */
  nnd_elem *out;
  nnd_size out_plane;
  const struct nnd_end *end;
  int sum;             /* enum nnd_sum; NND_WHOLE but for NND_NEXT */
  int stream;          /* store past the caches */
  nnd_size out_step;   /* NND_NEXT, without a residual: pixels of the output from one to the next; 0: side by side */
  nnd_size pixel_step; /* NND_ANYWHERE: pixels from one to the next */
  struct nnd_prefetch next_weights, next_input;
  nnd_size fetch_rows, fetch_ahead; /* of planes: the last rows of taps, and how many floats behind them to fetch */
};

typedef void (*nnd_tile_kernel)(const struct nnd_tile_job *job);

/* The most pixels of a tile of `vectors`, with `half` of the last one where two pixels share it. */
NND_INLINE int nnd_tile_pixels(int vectors, int half) {
  if (!half) return NND_ACCUMULATORS / vectors;
  return (2 * NND_ACCUMULATORS - NND_PANEL) / (2 * vectors - 1) / 2 * 2; /* registers for the halves' broadcasts */
}

#define NND_MOST_PIXELS 56
#define NND_FEW_FOR_HALVES 12 /* pixels: fewer sums of pairs would wait for each other */

/* The tiles that there are: [way][vectors - 1][half][pixels]; null where there is none of so many pixels. */
extern nnd_tile_kernel nnd_tiles[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];

/* For each number of pixels the next larger one that there is a tile of, and the next smaller one. */
extern uint8_t nnd_larger_tile[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];
extern uint8_t nnd_smaller_tile[NND_WAYS][NND_MOST_VECTORS][2][NND_MOST_PIXELS + 1];

/* How `pixels` pixels in a row are cut into `count` tiles: `large` of `each` + 1 pixels and the others of `each` where
 * there are kernels of both; else all of `each`, and what is left goes to smaller ones, of which the last overlaps
 * the one before. `exact`: no pixel may be met twice, for sums are taken in parts. */
struct nnd_cut {
  nnd_size pixels, count, large;
  int each, exact;
};

NND_INLINE struct nnd_cut nnd_cut_of(int way, int vectors, int half, nnd_size pixels, int exact) {
  const nnd_tile_kernel *kernels = nnd_tiles[way][vectors - 1][half];
  const nnd_size count = nnd_ceil_div(pixels, nnd_tile_pixels(vectors, half)), small = pixels / count,
                 large = pixels % count;
  if (kernels[small] && (large == 0 || kernels[small + 1]))
    return (struct nnd_cut){pixels, count, large, (int)small, exact};
  const uint8_t *smaller = nnd_smaller_tile[way][vectors - 1][half], *larger = nnd_larger_tile[way][vectors - 1][half];
  const int each = exact || larger[small + (large > 0)] > pixels ? smaller[nnd_min(pixels, NND_MOST_PIXELS)]
                                                                 : larger[small + (large > 0)];
  return (struct nnd_cut){pixels, nnd_ceil_div(pixels, each), -1, each, exact};
}

/* The pixels of tiles that are all alike, the last of which overlaps the one before. */
NND_INLINE int nnd_even_tile(int way, int vectors, int half, nnd_size pixels) {
  const nnd_size count = nnd_ceil_div(pixels, nnd_tile_pixels(vectors, half));
  const int each = nnd_larger_tile[way][vectors - 1][half][nnd_ceil_div(pixels, count)];
  return each > pixels ? nnd_smaller_tile[way][vectors - 1][half][pixels] : each;
}

/* The pixels of the input from one pixel of a tile to the next, and their bytes. */
NND_INLINE nnd_size nnd_pixel_step(int way, const struct nnd_tile_job *job) {
  if (way == NND_ANYWHERE) return job->pixel_step;
  return way == NND_SECOND || way == NND_PLANES_2 ? 2 : 1;
}
NND_INLINE nnd_size nnd_pixel_bytes(int way, const struct nnd_tile_job *job) {
  return nnd_pixel_step(way, job) * (nnd_size)(way >= NND_PLANES ? sizeof(float) : NND_LANES * sizeof(nnd_elem));
}

/* Whether the pixels of the output have others between them. */
NND_INLINE int nnd_is_spread(int way, const struct nnd_tile_job *job) { return way == NND_NEXT && job->out_step > 1; }

/* The elements of the output from one pixel to the next. */
NND_INLINE nnd_size nnd_out_pixel(int way, const struct nnd_tile_job *job) {
  return (nnd_is_spread(way, job) ? job->out_step : 1) * NND_LANES;
}

/* Moves a job so many pixels and tiles further on. */
NND_INLINE void nnd_move_job(struct nnd_tile_job *job, int way, nnd_size pixels, nnd_size tiles) {
  job->in = (const char *)job->in + pixels * nnd_pixel_bytes(way, job);
  job->column += pixels * nnd_pixel_step(way, job);
  job->out += pixels * nnd_out_pixel(way, job);
  if (job->residual) job->residual += pixels * NND_LANES;
  job->next_weights.from += tiles * job->next_weights.lines * NND_LINE_BYTES;
  job->next_input.from += tiles * job->next_input.lines * NND_LINE_BYTES;
}

/* Runs `count` tiles of `each` pixels and moves the job behind them. */
NND_INLINE void nnd_run_tiles(const nnd_tile_kernel *kernels, int way, nnd_size count, int each,
                              struct nnd_tile_job *job) {
  if (count == 0) return;
  job->count = count;
  kernels[each](job);
  nnd_move_job(job, way, count * each, count);
}

/* Runs the tiles of a cut; `job` is at its first pixel, and somewhere else behind. */
NND_INLINE void nnd_run_cut(struct nnd_cut cut, int way, int vectors, int half, struct nnd_tile_job *job) {
  const nnd_tile_kernel *kernels = nnd_tiles[way][vectors - 1][half];
  if (cut.large >= 0) {
    nnd_run_tiles(kernels, way, cut.large, cut.each + 1, job);
    nnd_run_tiles(kernels, way, cut.count - cut.large, cut.each, job);
    return;
  }
  nnd_size left = cut.pixels;
  for (int each = cut.each; left > 0; each = nnd_smaller_tile[way][vectors - 1][half][left]) {
    nnd_run_tiles(kernels, way, left / each, each, job);
    left %= each;
    if (left == 0 || cut.exact) continue;
    const int last = nnd_larger_tile[way][vectors - 1][half][left]; /* ends where the row does */
    nnd_move_job(job, way, left - last, 0);
    nnd_run_tiles(kernels, way, 1, last, job);
    return;
  }
}

/* Few sums are kept twice, for even and for odd channels: an addition waits for the one before. */
NND_INLINE int nnd_sums_are_split(nnd_size pixels, int vectors, int half) {
  return !half && pixels * vectors <= 8 && NND_GROUP == 1;
}

/* Whether some tile of a cut keeps its sums twice, which round otherwise. */
NND_INLINE int nnd_cut_splits(struct nnd_cut cut, int way, int vectors, int half) {
  if (cut.large >= 0) return nnd_sums_are_split(cut.count > cut.large ? cut.each : cut.each + 1, vectors, half);
  nnd_size left = cut.pixels;
  for (int each = cut.each; left > 0; each = nnd_smaller_tile[way][vectors - 1][half][left]) {
    if (nnd_sums_are_split(each, vectors, half)) return 1;
    left %= each;
    if (left > 0 && !cut.exact) return nnd_sums_are_split(nnd_larger_tile[way][vectors - 1][half][left], vectors, half);
  }
  return 0;
}

/* The last panel takes what is left, but never a single vector where it can be joined to the panel before. */
NND_INLINE int nnd_last_panel(nnd_size blocks) {
  const int rest = (int)(blocks % NND_PANEL);
  if (rest == 0) return (int)nnd_min(blocks, NND_PANEL);
  return NND_PANEL == 2 && blocks > 1 ? rest + NND_PANEL : rest;
}

/* Panels before the last one. */
NND_INLINE nnd_size nnd_full_panels(nnd_size blocks) { return (blocks - nnd_last_panel(blocks)) / NND_PANEL; }

/* Whether two pixels share a vector of sums in tiles of a way, where a panel has so few channels. */
NND_INLINE int nnd_way_has_halves(int way) { return way < NND_ANYWHERE; }

/* True where at most half of the last vector are channels. */
NND_INLINE int nnd_has_half(nnd_size channels) {
  const nnd_size held = channels % NND_LANES;
  return NND_LANES > 4 && held > 0 && held <= NND_LANES / 2;
}

#endif
