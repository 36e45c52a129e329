/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of bytes in which each output channel is made of the input channel at the same place alone.
 */
#ifndef NND_INT8_DEPTHWISE_OP_H
#define NND_INT8_DEPTHWISE_OP_H

#include "ops/int8_window.h"

struct nnd_int8_deep;

/* Whether a convolution is one of these, whose quads fit the caches. */
int nnd_int8_is_deep(const struct nnd_int8_window *w, const struct nnd_int8_record *r);
/* Packs its weights; null with a message where there is no memory. */
const struct nnd_int8_deep *nnd_open_int8_deep(struct nnd_opener *o, const struct nnd_int8_window *w,
                                               const struct nnd_int8_record *r);
/* Returns 1, or 0 with a message. */
int nnd_make_int8_deep(struct nnd_maker *m, const struct nnd_int8_deep *deep, const struct nnd_int8_record *r,
                       const struct nnd_int8_image *image);

#endif
