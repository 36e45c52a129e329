/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions over images whose rows are shorter than a register tile: what each output pixel reads is gathered as
 * channels of one pixel, so that tiles go on over rows, and weights are read once for all of them.
 */
#ifndef NND_GATHERED_H
#define NND_GATHERED_H

#include "ops/conv_record.h"

/* Whether it pays for a convolution of blocked images with these axes. */
int nnd_gathered_pays(const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x);

/* Makes the instance, whose operands are given. */
int nnd_make_gathered(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                      const struct nnd_axis *x);

#endif
