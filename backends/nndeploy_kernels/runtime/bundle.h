/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle: its manifest, and its members, each read once and compared with its SHA-256 before anybody sees it.
 */
#ifndef NND_RUNTIME_BUNDLE_H
#define NND_RUNTIME_BUNDLE_H

#include "runtime/container.h"
#include "runtime/json.h"

struct nnd_bundle {
  struct nnd_arena arena; /* of all that is read, till the bundle is closed */
  struct nnd_container container;
  const struct nnd_json *manifest;
  struct nnd_text manifest_text;
};

int nnd_bundle_open(struct nnd_bundle *bundle, nnd_error *error); /* `container.source` is open */
void nnd_bundle_close(struct nnd_bundle *bundle);

/* Reads a member into pages of its own, with a zero behind it. Returns null and the error where it is damaged or not
 * there. */
uint8_t *nnd_bundle_member(struct nnd_bundle *bundle, const struct nnd_text *name, int64_t *size, nnd_error *error);

/* Checks every byte of a bundle against its hashes. */
int nnd_bundle_check(struct nnd_bundle *bundle, nnd_error *error);

/* A value that a bundle holds. */
struct nnd_held {
  struct nnd_text name;
  nnd_dtype dtype;
  int rank;
  int64_t shape[NND_MAX_RANK];
  const uint8_t *data;
};

/* Reads a member that holds values (`nndeploy/bundle/values.py`), all of them tensors of the types here. */
int nnd_bundle_values(struct nnd_bundle *bundle, const struct nnd_text *member, struct nnd_held **values, int *count,
                      nnd_error *error);

/* A tensor type: sizes that have a name are -1 with the name in `symbols`, those without are -1. */
struct nnd_type {
  nnd_dtype dtype;
  int rank; /* -1: any */
  int64_t shape[NND_MAX_RANK];
  struct nnd_text symbols[NND_MAX_RANK];
};

int nnd_dtype_named(const struct nnd_json *name, nnd_dtype *dtype);
int nnd_shape_of(const struct nnd_json *sizes, int *rank, int64_t shape[NND_MAX_RANK], struct nnd_text *symbols);
/* Returns how many bytes a shape has, -1 where that is more than memory. */
int64_t nnd_bytes_in(nnd_dtype dtype, int rank, const int64_t *shape);

#endif
