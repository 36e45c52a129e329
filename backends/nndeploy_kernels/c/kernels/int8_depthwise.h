/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise windows over images of bytes whose channels lie side by side, NND_INT8_DEEP channels at a time.
 *
 * First the bytes of up to four rows of a window are put side by side for each channel, column by column: a *quad* of
 * 32 bits. Then each output pixel sums products of four bytes, of the quads of its columns by those of the weights.
 * Quads are the same for all pixels whose windows hold their column.
 *
 * Quads lie in four vectors, in the order in which halves of vectors of 16 bytes are interleaved: lane i of vector v is
 * channel 16 * (i / 4) + 4 * v + i % 4, and so are weights and whatever else is read by columns.
 */
#ifndef NND_INT8_DEPTHWISE_H
#define NND_INT8_DEPTHWISE_H

#include "kernels/int8_end.h"

#define NND_INT8_DEEP (4 * NND_LANES)
#if NND_LANES == 8
#define NND_INT8_PIXELS 2 /* whose sums stay in registers */
#elif defined(__x86_64__) && NND_LANES == 4
#define NND_INT8_PIXELS 2
#else
#define NND_INT8_PIXELS 4
#endif

/* Where a channel of a block lies: vector * NND_LANES + lane. */
NND_INLINE nnd_size nnd_int8_deep_place(nnd_size channel) {
  return channel % 16 / 4 * NND_LANES + channel / 16 * 4 + channel % 4;
}

struct nnd_int8_deep_job {
  const nnd_vu *quads;            /* of the first pixel's first column: [column][group of rows][4] */
  nnd_size to_pixel, to_column;   /* vectors from pixel to pixel, and from column to column of a window */
  nnd_size columns, groups, passes;
  const int8_t *weights;          /* [pass][column][group][4 vectors]: passes add up to what does not fit a byte */
  const nnd_vu *first;            /* four vectors */
  const struct nnd_int8_end *end; /* a quick one; null: sums are stored */
  const float *factors;           /* four vectors */
  uint8_t *out;                   /* of bytes */
  nnd_size out_pixel, channels;   /* bytes from pixel to pixel, and of each that are stored */
  int32_t *sums;                  /* NND_INT8_DEEP of each pixel, in the order of the channels */
};

/* Does at most NND_INT8_PIXELS pixels. */
typedef void (*nnd_int8_deep_kernel)(const struct nnd_int8_deep_job *job, int pixels);
nnd_int8_deep_kernel nnd_int8_deep_kernel_here(int plain);

/* Whether kernels multiply bytes of the image as int8, and not as uint8. */
#if defined(__x86_64__)
#define NND_INT8_DEEP_SIGNED 0
#else
#define NND_INT8_DEEP_SIGNED 1
#endif

/* A row of a window, and bytes from pixel to pixel; NND_INT8_DEEP of each may be read. */
struct nnd_int8_column {
  const uint8_t *row;
  nnd_size step;
};

/* Makes the quads of `columns` pixels of `groups` of four rows, whose bytes are turned by `flip`. */
void nnd_int8_quads(const struct nnd_int8_column *rows, nnd_size groups, nnd_size columns, uint8_t flip, nnd_vu *to);

#endif
