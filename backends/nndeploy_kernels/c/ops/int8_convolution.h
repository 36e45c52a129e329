/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of bytes whose pixels are rows of products: what is packed when a step is opened, and the two ways to
 * find these rows, by pointers (int8_convolution.c) and in rows of the image that are copied with what is around them
 * (int8_padded.c).
 */
#ifndef NND_INT8_CONVOLUTION_OP_H
#define NND_INT8_CONVOLUTION_OP_H

#include "ops/int8_depthwise.h"
#include "ops/int8_strips.h"

struct nnd_int8_conv_own {
  struct nnd_int8_record record;
  struct nnd_int8_window window;
  nnd_size taps, k; /* of a product: one tap of all where they are copied */
  int is_of_runs, copies;
  const struct nnd_int8_deep *deep; /* null: it is another */
  const int8_t *packed;
  const int32_t *column_sums;
};

NND_INLINE nnd_size nnd_int8_conv_bytes(nnd_size taps, nnd_size k, nnd_size columns) {
  return taps * nnd_int8_packed_bytes(k, columns);
}

/* Whether rows of an image are copied; and the run for that. Returns 1, or 0 with a message. */
int nnd_int8_is_padded(const struct nnd_int8_conv_own *own, const struct nnd_int8_image *image,
                       const struct nnd_int8_kernels *kernels, nnd_int8_multiplier multiply);
int nnd_make_int8_padded(struct nnd_maker *m, const struct nnd_int8_conv_own *own, const struct nnd_int8_image *image,
                         const struct nnd_int8_kernels *kernels, nnd_int8_multiplier multiply);

#endif
