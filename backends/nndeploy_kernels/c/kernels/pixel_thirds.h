/* SPDX-License-Identifier: Apache-2.0
 *
 * Pixels of NCHWc by float32 weights, in thirds (thirds.h).
 */
#ifndef NND_PIXEL_THIRDS_H
#define NND_PIXEL_THIRDS_H

#include "kernels/pixel_job.h"
#include "kernels/thirds.h"

#if NND_HAS_THIRDS
/* Bytes of the thirds of so many pixels, and of the weights' before them. */
nnd_size nnd_pixel_thirds_bytes(nnd_size pixels, nnd_size channels);

/* The thirds of `pixels` pixels, whose blocks of channels lie `plane` floats apart, strip after strip. Returns 0 where one
 * is not finite. */
int nnd_thirds_of_pixels(const float *in, nnd_size plane, nnd_size channels, nnd_size pixels, char *to);

/* Multiplies pixels whose thirds are at `packed` of the job. Returns how many panels: those
 * before the first one of which a weight is not finite. */
nnd_size nnd_multiply_pixel_thirds(const struct nnd_pixel_job *job, nnd_size channels);
#endif

#endif
