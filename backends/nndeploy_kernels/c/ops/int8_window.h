/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows over images of bytes whose channels lie side by side, (N, H, W, C): what steps over them have in common.
 */
#ifndef NND_INT8_WINDOW_H
#define NND_INT8_WINDOW_H

#include "ops/int8_record.h"

NND_RECORD(int8_convolution)

struct nnd_int8_window {
  nnd_size kernel[2], stride[2], dilation[2], pad[2], groups, channels; /* pads are rules; channels of a group */
};

struct nnd_int8_image {
  struct nnd_axis y, x;
  nnd_size images, channels, pixels; /* pixels: of all images of the output */
};

/* All return 1, or 0 with a message. */
int nnd_open_int8_window(struct nnd_opener *o, struct nnd_int8_window *w, const struct nnd_int8_convolution *words,
                         struct nnd_int8_record *r);
/* The axes for these shapes. */
int nnd_make_int8_window(struct nnd_maker *m, const struct nnd_int8_window *w, const struct nnd_int8_record *r,
                         struct nnd_int8_image *image);

#endif
