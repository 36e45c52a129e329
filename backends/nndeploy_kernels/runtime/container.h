/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of a bundle: the one ZIP archive that `nndeploy/bundle/container.py` writes of its members. What this
 * reads is written again and compared, so that no other archive is taken.
 */
#ifndef NND_RUNTIME_CONTAINER_H
#define NND_RUNTIME_CONTAINER_H

#include "runtime/inside.h"

struct nnd_member {
  char name[256];
  int64_t header, offset, size;
  uint32_t crc32;
};

struct nnd_container {
  struct nnd_source source;
  struct nnd_member *members; /* by name */
  int64_t count;
};

/* Returns why a member cannot be called so, null where it can. */
const char *nnd_name_fault(const struct nnd_text *name);
int nnd_container_read(struct nnd_container *container, struct nnd_arena *arena, nnd_error *error);
/* Returns null where there is none. */
const struct nnd_member *nnd_member_named(const struct nnd_container *container, const struct nnd_text *name);

#endif
