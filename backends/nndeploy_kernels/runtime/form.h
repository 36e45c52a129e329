/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of manifest.json, as `nndeploy/bundle/manifest_json.py` and `json_fields.py` have it: each field is there
 * once, with its type, and none is left over. What is refused is refused in the same words.
 */
#ifndef NND_RUNTIME_FORM_H
#define NND_RUNTIME_FORM_H

#include "runtime/json.h"

/* Returns 1, or 0 and the error, which names the field and what it holds. */
int nnd_check_form(const struct nnd_json *manifest, nnd_error *error);

#endif
