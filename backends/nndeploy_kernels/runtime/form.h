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

/* Writes an error of a place in the manifest, as "submodels[0].id"; returns 0. */
__attribute__((format(printf, 3, 4))) int nnd_bad_manifest(nnd_error *error, const char *where, const char *format,
                                                           ...);
/* Returns whether a text is 64 lower-case hexadecimal digits. */
int nnd_is_sha256(const struct nnd_text *text);

#endif
