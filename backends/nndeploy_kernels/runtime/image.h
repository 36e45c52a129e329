/* SPDX-License-Identifier: Apache-2.0
 *
 * How an image becomes an input of a program: `image_input` of a manifest.
 */
#ifndef NND_RUNTIME_IMAGE_H
#define NND_RUNTIME_IMAGE_H

#include "runtime/program.h"

#define NND_MOST_PIXELS ((int64_t)1 << 26)

struct nnd_image_way {
  nnd_image_info info;
  nnd_dtype dtype;                 /* of the input */
  int channels, is_bgr, is_planar; /* 1 or 3 channels; planar: NCHW */
  float mean[3], std[3];
};

/* Reads what a manifest says of images; `*way` is null where it says nothing. */
int nnd_image_read(struct nnd_program *program, struct nnd_image_way **way, nnd_error *error);

/* Memory in which images become inputs, kept from call to call. */
struct nnd_image_memory {
  void *values, *pixels;
  int64_t values_bytes, pixels_bytes;
};

#endif
