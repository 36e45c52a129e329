/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing of NCHWc: each output place is a weighted sum of few rows and few columns, both from tables.
 *
 * An output row sums its rows into a buffer first, and the buffer's columns then; where every place is one input place,
 * vectors are copied. Workers share output rows of all channel blocks and images.
 */
#ifndef NND_RESIZE_H
#define NND_RESIZE_H

#include "step.h"

struct nnd_resize_step {
  nnd_size images, channels, in_h, in_w, out_h, out_w, taps_h, taps_w;
  int copies; /* every place is one input place */
};

struct nnd_resize_tables {
  const int32_t *rows;
  const float *row_weights;
  const int32_t *columns;
  const float *column_weights;
};

NND_INLINE void nnd_resize_copy(const struct nnd_resize_step *t, nnd_elem *out, const nnd_elem *row,
                                const int32_t *columns) {
  for (nnd_size x = 0; x < t->out_w; x++) nnd_write(out + x * NND_LANES, nnd_read(row + columns[x] * NND_LANES));
}

/* A weight of zero takes nothing, not even from an infinity. */
NND_INLINE void nnd_resize_row(const struct nnd_resize_step *t, nnd_size y, nnd_elem *out, const nnd_elem *plane,
                               struct nnd_resize_tables d, vf *buffer) {
  int is_first = 1;
  for (nnd_size i = 0; i < t->taps_h; i++) {
    const float weight = d.row_weights[y * t->taps_h + i];
    const nnd_elem *row = plane + d.rows[y * t->taps_h + i] * t->in_w * NND_LANES;
    if (weight == 0.0f) continue;
    if (is_first)
      for (nnd_size x = 0; x < t->in_w; x++) buffer[x] = weight * nnd_read(row + x * NND_LANES);
    else
      for (nnd_size x = 0; x < t->in_w; x++) buffer[x] += weight * nnd_read(row + x * NND_LANES);
    is_first = 0;
  }
  for (nnd_size x = 0; x < t->out_w; x++) {
    vf sum = nnd_splat(0.0f);
    for (nnd_size i = 0; i < t->taps_w; i++) {
      const float weight = d.column_weights[x * t->taps_w + i];
      if (weight != 0.0f) sum += weight * buffer[d.columns[x * t->taps_w + i]];
    }
    nnd_write(out + x * NND_LANES, sum);
  }
}

/* Every pixel of the input is there times_h x times_w times, side by side. */
struct nnd_repeat_step {
  nnd_size images, channels, in_h, in_w, times_h, times_w;
};

NND_INLINE void nnd_repeat_step(const struct nnd_repeat_step *t, nnd_elem *out, const nnd_elem *in,
                                struct nnd_part part) {
  nnd_size unit, last;
  nnd_share(t->images * nnd_blocks(t->channels) * t->in_h, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_elem *row = in + unit * t->in_w * NND_LANES;
    nnd_elem *to = out + unit * t->times_h * t->in_w * t->times_w * NND_LANES;
    for (nnd_size y = 0; y < t->times_h; y++)
      for (nnd_size x = 0; x < t->in_w; x++)
        for (nnd_size i = 0; i < t->times_w; i++, to += NND_LANES) nnd_write(to, nnd_read(row + x * NND_LANES));
  }
}

/* Scratch: a vector of floats for each input column, but for copies. */
NND_INLINE void nnd_resize_step(const struct nnd_resize_step *t, nnd_elem *out, const nnd_elem *in,
                                const int32_t *rows, const float *row_weights, const int32_t *columns,
                                const float *column_weights, struct nnd_part part) {
  const struct nnd_resize_tables d = {rows, row_weights, columns, column_weights};
  nnd_size unit, last;
  nnd_share(t->images * nnd_blocks(t->channels) * t->out_h, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_elem *plane = in + unit / t->out_h * t->in_h * t->in_w * NND_LANES;
    const nnd_size y = unit % t->out_h;
    nnd_elem *to = out + unit * t->out_w * NND_LANES;
    if (t->copies) nnd_resize_copy(t, to, plane + rows[y] * t->in_w * NND_LANES, columns);
    else nnd_resize_row(t, y, to, plane, d, (vf *)part.scratch);
  }
}

#endif
