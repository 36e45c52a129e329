/* SPDX-License-Identifier: Apache-2.0
 *
 * From where a convolution reads its rows, decided when its sizes are known.
 */
#ifndef NND_CONVOLUTION_ROWS_H
#define NND_CONVOLUTION_ROWS_H

#include "kernels/convolution.h"
#include "model/model.h"

/* Decides which columns of the kernel are met, whether rows are copied, and of planes where the channels of each tap
 * lie; axes, channels and `is_planar` are known. Returns 1, or 0 with a message. */
NND_INLINE int nnd_make_rows(struct nnd_maker *m, struct nnd_convolution *s) {
  s->columns = s->x.kernel;
  if (!s->is_planar) nnd_leave_out_columns(s);
  s->copies_rows = nnd_needs_copies(s->x, s->is_planar);
  if (!s->is_planar) return 1;
  const nnd_size count = s->y.kernel * s->x.kernel * s->in_channels;
  nnd_size *offsets = nnd_memory_take(&m->table->memory, count * (nnd_size)sizeof *offsets);
  if (!offsets) return nnd_fail(m->message, "no memory for a convolution");
  nnd_planar_offsets(s, offsets);
  s->offsets = offsets;
  return 1;
}

#endif
