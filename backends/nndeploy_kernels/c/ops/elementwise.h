/* SPDX-License-Identifier: Apache-2.0
 *
 * What the halves of an elementwise step share: of images in channel blocks, and of plain tensors.
 */
#ifndef NND_ELEMENTWISE_H
#define NND_ELEMENTWISE_H

#include "model/words.h"

NND_RECORD(any_operand)

struct nnd_elementwise_own {
  NND_FIELDS(elementwise)
  const nnd_elem *blocks[NND_OPERANDS]; /* of constants of a blocked output */
};

int nnd_make_plain_elementwise(struct nnd_maker *m, const struct nnd_elementwise_own *own);

#endif
