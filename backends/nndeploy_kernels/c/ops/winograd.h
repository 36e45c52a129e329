/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions that are done by Winograd's products (kernels/winograd.h).
 */
#ifndef NND_WINOGRAD_OP_H
#define NND_WINOGRAD_OP_H

#include "ops/conv_record.h"

/* Whether a convolution of blocked images can be done so: a plan must fix its sizes. */
int nnd_winograd_fits(const struct nnd_opener *o, const struct nnd_conv *c);

/* Whether it pays for one that can: its weights are four times as many. */
int nnd_winograd_pays(const struct nnd_opener *o, const struct nnd_conv *c);

/* Packs the transformed weights, behind as many zeros as there are output channels; `to` is where they are. */
int nnd_pack_winograd(struct nnd_opener *o, const struct nnd_conv *c, const void **to);

/* Makes the instance, whose operands are given. */
int nnd_make_winograd(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                      const struct nnd_axis *x);

#endif
