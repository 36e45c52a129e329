/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the parts of a manifest fit together, as `nndeploy/bundle/manifest_check.py` has it, in the same words. Only
 * how many places a machine has is left to it: nothing of this runtime is placed.
 */
#ifndef NND_RUNTIME_FIT_H
#define NND_RUNTIME_FIT_H

#include "runtime/json.h"

/* Returns 1, or 0 and the error; the manifest is of its form (`nnd_check_form`). */
int nnd_check_fit(const struct nnd_json *manifest, nnd_error *error);

#endif
