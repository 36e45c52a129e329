/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant weights of 4 or 8 bits in blocks along k, or of float16 (kernels/bits.h).
 */
#ifndef NND_OPS_BITS_H
#define NND_OPS_BITS_H

#include "kernels/bits.h"
#include "model/words.h"

#define NND_MOST_OF_BITS ((int64_t)1 << 30) /* of sizes and steps: no place is beyond 64 bits */

NND_RECORD(of_blocks)
NND_RECORD(bit_weights)

/* Packs them; returns null, with a message, where they do not fit together. */
const struct nnd_bits *nnd_open_bits(struct nnd_opener *o, const struct nnd_bit_weights *words);

#endif
