/* SPDX-License-Identifier: Apache-2.0
 *
 * The one JSON text of a value, as `nndeploy/files/strict_json.py` has it: ASCII, keys sorted, no spaces.
 */
#ifndef NND_RUNTIME_CANONICAL_H
#define NND_RUNTIME_CANONICAL_H

#include "runtime/json.h"

#define NND_CANONICAL_DEPTH 32

/* Text that grows; all zero at first. It is freed by who began it. */
struct nnd_writing {
  char *text;
  int64_t size, room;
  int is_lost; /* there was no memory for it */
};

void nnd_write(struct nnd_writing *to, const char *text, int64_t size);
void nnd_write_string(struct nnd_writing *to, const struct nnd_text *text); /* with its quotes */
/* Writes a value; where what was parsed has its keys in another order, so has what is written. */
void nnd_write_json(struct nnd_writing *to, const struct nnd_json *value);

/* Returns whether a text that says a value is the one for it; 0 and the error where it is not, or has too many levels. */
int nnd_json_check_canonical(const struct nnd_json *value, const struct nnd_text *text, nnd_error *error);

#endif
