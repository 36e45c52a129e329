/* SPDX-License-Identifier: Apache-2.0
 *
 * A member that is stored smaller than it is (`nndeploy/bundle/compressed_member.py`): deflated, and made of parts of
 * other members where these repeat.
 */
#ifndef NND_RUNTIME_EXPAND_H
#define NND_RUNTIME_EXPAND_H

#include "runtime/container.h"

/* Fills `target` with the real bytes of a member; `bases` are the members that it is made of, none of them compressed.
 * Whether they are the right ones tells their hash. */
int nnd_expand(const uint8_t *stored, int64_t stored_bytes, const struct nnd_source *source,
               const struct nnd_member *const *bases, int64_t num_bases, uint8_t *target, int64_t size,
               nnd_error *error);

/* Inflates a zlib stream (RFC 1950, 1951) of at most `most` bytes; returns how many, -1 where it is none. */
int64_t nnd_inflate(const uint8_t *from, int64_t from_bytes, uint8_t *to, int64_t most);

#endif
