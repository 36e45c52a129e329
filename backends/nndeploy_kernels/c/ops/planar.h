/* SPDX-License-Identifier: Apache-2.0
 *
 * What a convolution that reads planes needs beside its fields: where each channel of each tap lies.
 */
#ifndef NND_PLANAR_H
#define NND_PLANAR_H

#include "kernels/convolution.h"
#include "model/model.h"

/* Says where the channels of each tap lie, once it is known whether rows are copied. Returns 1, or 0 with a message. */
NND_INLINE int nnd_make_planar(struct nnd_maker *m, struct nnd_convolution *s) {
  const nnd_size count = s->y.kernel * s->x.kernel * s->in_channels;
  nnd_size *offsets = nnd_memory_take(&m->table->memory, count * (nnd_size)sizeof *offsets);
  if (!offsets) return nnd_fail(m->message, "no memory for a convolution");
  nnd_planar_offsets(s, offsets);
  s->offsets = offsets;
  return 1;
}

#endif
