/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of weights of 4 or 8 bits in blocks along k, or of float16 (kernels/bits.h):
 *
 *   numbers (uint8, or float16), bits (4, 8 or 16), are signed, inner, columns, numbers of a block,
 *   step from k to k, step from column to column (in numbers),
 *   scales (float32; -1 of float16), step from block to block, step from column to column,
 *   zero points (numbers as the weights are, or float32; -1: one for all), the same steps, zero point of all,
 *   whether rows may be rounded to bytes, block by block (of 4 bits alone)
 */
#ifndef NND_OPS_BITS_H
#define NND_OPS_BITS_H

#include "kernels/bits.h"
#include "model/model.h"

/* Reads and packs them; returns null, with a message, where they do not fit together. */
const struct nnd_bits *nnd_read_bits(struct nnd_opener *o);

#endif
