/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that a plan may name.
 */
#include "../plan_words.h"
#include "model/model.h"

#define NND_DECLARE(name, words) extern const struct nnd_op nnd_op_##name;
NND_EVERY_OP(NND_DECLARE)

#define NND_LISTED(name, words) &nnd_op_##name,
const struct nnd_op *const nnd_ops[] = {NND_EVERY_OP(NND_LISTED) NULL};
