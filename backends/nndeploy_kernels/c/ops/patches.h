/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense convolutions of small images by large weights: a pointwise one over patches.
 */
#ifndef NND_PATCHES_H
#define NND_PATCHES_H

#include "ops/conv_record.h"

/* Whether it pays for a convolution of blocked images, which is neither pointwise nor grouped. */
int nnd_patches_pay(const struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                    const struct nnd_axis *x);

/* Makes the instance, whose operands are given. */
int nnd_make_patches(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x);

#endif
