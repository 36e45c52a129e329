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
 *
 * Pixels of 16 or 32 channels are joined: those that lie side by side fill a vector of bytes together, and those of an
 * output row are made side by side. Each of the four vectors is in a plane of its own, pixel after pixel, from which
 * they are read at any pixel; windows that go on by more than one pixel have planes for each phase of their columns.
 */
#ifndef NND_INT8_DEPTHWISE_H
#define NND_INT8_DEPTHWISE_H

#include "kernels/int8_end.h"

#define NND_INT8_DEEP (4 * NND_LANES)
#if NND_LANES == 8
#define NND_INT8_PIXELS 2 /* whose sums stay in registers */
#elif !defined(__aarch64__) && NND_LANES == 4
#define NND_INT8_PIXELS 2
#else
#define NND_INT8_PIXELS 4
#endif

/* Where a channel of a block lies: vector * NND_LANES + lane. */
NND_INLINE nnd_size nnd_int8_deep_place(nnd_size channel) {
  return channel % 16 / 4 * NND_LANES + channel / 16 * 4 + channel % 4;
}

struct nnd_int8_deep_job {
  const char *quads;            /* of the first pixel's first column */
  int is_joined;                /* what is called a pixel here are those that are joined */
  nnd_size to_pixel, to_vector; /* bytes; the first one where pixels are not joined, the other one where they are */
  nnd_size to_group;
  const nnd_size *column_at; /* bytes to each column of a window */
  nnd_size columns, groups, passes;
  const int8_t *weights;          /* [pass][column][group][4 vectors]: passes add up to what does not fit a byte */
  const nnd_vu *first;            /* four vectors */
  const struct nnd_int8_end *end; /* a quick one; null: sums are stored */
  const float *factors;           /* four vectors */
  uint8_t *out;                   /* of bytes */
  nnd_size out_pixel, channels;   /* bytes from pixel to pixel, and of each that are stored */
  int32_t *sums;                  /* NND_INT8_DEEP of each pixel, in the order of the channels */
};

/* Does pixels side by side; at most NND_INT8_PIXELS where sums are stored. */
typedef void (*nnd_int8_deep_kernel)(const struct nnd_int8_deep_job *job, nnd_size pixels);
nnd_int8_deep_kernel nnd_int8_deep_kernel_here(int plain);

/* Whether kernels multiply bytes of the image as int8, and not as uint8. */
#if !defined(__aarch64__)
#define NND_INT8_DEEP_SIGNED 0
#else
#define NND_INT8_DEEP_SIGNED 1
#endif

/* How many pixels of so many channels are joined. */
NND_INLINE int nnd_int8_joined(nnd_size channels) {
  return channels % 16 || channels > NND_INT8_DEEP || NND_INT8_DEEP % channels ? 1 : (int)(NND_INT8_DEEP / channels);
}

/* A row of a window, bytes between pixels that are joined, and to the next quads. */
struct nnd_int8_column {
  const uint8_t *row;
  nnd_size to_joined, step;
};

/* Where quads go, in bytes, and how they are made. */
struct nnd_int8_quads {
  nnd_size groups, to_group, to_vector, to_next;
  int together; /* pixels that are joined one by one; 1: NND_INT8_DEEP bytes are read at once */
  uint8_t flip; /* turns the bytes */
};

/* Makes `count` vectors of quads, one after the other, of four rows for each group. */
void nnd_int8_quads(const struct nnd_int8_quads *to, const struct nnd_int8_column *rows, char *quads, nnd_size count);

#endif
