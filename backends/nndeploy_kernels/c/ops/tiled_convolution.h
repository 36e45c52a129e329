/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense convolutions of blocked images by the tiles of AMX (kernels/bf16_tiles.h), tap by tap: rows of the input are
 * packed with zeros around them, so that each tap of a strip of pixels is rows of a tile where they lie.
 */
#ifndef NND_TILED_CONVOLUTION_H
#define NND_TILED_CONVOLUTION_H

#include "ops/conv_record.h"

#ifdef NND_BF16
/* Whether it pays for a convolution of blocked images, without groups, with these axes. */
int nnd_tiled_pays(const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x);

/* Makes the instance, whose operands are given. */
int nnd_make_tiled(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x);
#else
NND_INLINE int nnd_tiled_pays(const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x) {
  (void)c, (void)y, (void)x;
  return 0;
}
NND_INLINE int nnd_make_tiled(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                              const struct nnd_axis *x) {
  (void)m, (void)c, (void)y, (void)x;
  return 0;
}
#endif

#endif
