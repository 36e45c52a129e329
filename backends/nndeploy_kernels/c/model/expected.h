/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NND_EXPECTED_H
#define NND_EXPECTED_H

#include "model/model.h"

/* Makes room for what will be taken in many pieces, `num_bytes` of it or about so many: in huge pages, where that is as
 * much as one; regions that grow from small ones would be as much in small pages first, and then a huge one for the rest. */
void nnd_memory_expect(struct nnd_memory *memory, nnd_size num_bytes);

#endif
