/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizing of NCHWc: each output place is a weighted sum of few rows and few columns, both from tables.
 *
 * Workers share output rows of all channel blocks and images.
 */
#ifndef NND_RESIZE_H
#define NND_RESIZE_H

#include "step.h"

struct nnd_resize_step {
  nnd_size images, channels, in_h, in_w, out_h, out_w, taps_h, taps_w;
};

NND_INLINE void nnd_resize_step(const struct nnd_resize_step *t, nnd_elem *out, const nnd_elem *in,
                                const int32_t *rows, const float *row_weights, const int32_t *columns,
                                const float *column_weights, struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->images * nnd_blocks(t->channels) * t->out_h, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_elem *plane = in + unit / t->out_h * t->in_h * t->in_w * NND_LANES;
    const nnd_size y = unit % t->out_h;
    for (nnd_size x = 0; x < t->out_w; x++) {
      vf sum = nnd_splat(0.0f);
      for (nnd_size i = 0; i < t->taps_h; i++)
        for (nnd_size j = 0; j < t->taps_w; j++) {
          const nnd_size row = rows[y * t->taps_h + i], column = columns[x * t->taps_w + j];
          const float weight = row_weights[y * t->taps_h + i] * column_weights[x * t->taps_w + j];
          if (weight != 0.0f) sum += weight * nnd_read(plane + (row * t->in_w + column) * NND_LANES);
        }
      nnd_write(out + (unit * t->out_w + x) * NND_LANES, sum);
    }
  }
}

#endif
