/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels of NCHWc by some panels of weights, as the tiles of AMX multiply them: in pairs of strips.
 */
#ifndef NND_PIXEL_JOB_H
#define NND_PIXEL_JOB_H

#include "base/step.h"
#include "kernels/amx_blocks.h"

/* Lines of pixels, which lie side by side in the output, by some panels. */
struct nnd_pixel_job {
  nnd_size lines, width;
  struct nnd_amx_strips strips; /* of a line */
  const nnd_elem *packed;       /* the first pixel's first tap; steps from there are of elements, to the next */
  nnd_size pixel_step, strip_step, line_step, block_step;
  nnd_size blocks, taps;
  const nnd_size *offsets;   /* of taps: bytes */
  const nnd_weight *weights; /* of the first panel */
  const float *bias, *numbers;
  const nnd_elem *residual; /* laid out like the output */
  nnd_elem *out;
  nnd_size out_line, out_plane;
  nnd_size panels;
  int last_vectors; /* of the last of these panels */
  const struct nnd_end *end;
  int stream;
};

#endif
