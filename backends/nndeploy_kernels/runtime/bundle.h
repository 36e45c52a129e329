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

/* Checks that a manifest, whose form is right, says of each variant whether it is code as the backends would. */
int nnd_check_code(const struct nnd_json *manifest, nnd_error *error);

/* Reads a member into pages of its own, with a zero behind it. Returns null and the error where it is damaged or not
 * there. */
uint8_t *nnd_bundle_member(struct nnd_bundle *bundle, const struct nnd_text *name, int64_t *size, nnd_error *error);

/* Finds a member in the memory of a bundle that stays; returns 0 where it cannot be used as it lies there: it is
 * compressed, or does not begin at a cache line. Who uses it checks it first. */
int nnd_bundle_in_place(const struct nnd_bundle *bundle, const struct nnd_text *name, const uint8_t **data,
                        int64_t *size);
int nnd_bundle_check_bytes(const struct nnd_bundle *bundle, const struct nnd_text *name, const uint8_t *data,
                           int64_t size, nnd_error *error);

/* Reads a member that the manifest does not list, a signature, into memory of its size. */
int nnd_bundle_unlisted(const struct nnd_bundle *bundle, const struct nnd_member *member, void *target,
                        nnd_error *error);

/* Checks every byte of a bundle against its hashes. */
int nnd_bundle_check(struct nnd_bundle *bundle, nnd_error *error);

/* Returns the item of an object by its key, null where it has none. */
const struct nnd_json *nnd_listed(const struct nnd_json *list, const struct nnd_text *name);

/* A value that a bundle holds: a tensor, or a list of maps to numbers that all have the same `keys`. */
struct nnd_held {
  struct nnd_text name;
  nnd_dtype dtype;
  int rank;
  int64_t shape[NND_MAX_RANK];
  const void *data;
  const nnd_tensor *keys;
};

/* Reads a member that holds values (`nndeploy/bundle/values.py`), each of a type that is run here. */
int nnd_bundle_values(struct nnd_bundle *bundle, const struct nnd_text *member, struct nnd_held **values, int *count,
                      nnd_error *error);

/* A tensor type: sizes that have a name are -1 with the name in `symbols`, those without are -1. Where it `is_maps`, it
 * is a list of maps to float32: of rows of numbers, whose keys are of the type `keys`. */
struct nnd_type {
  nnd_dtype dtype, keys;
  int is_maps;
  int rank; /* -1: any */
  int64_t shape[NND_MAX_RANK];
  struct nnd_text symbols[NND_MAX_RANK];
};

int nnd_dtype_named(const struct nnd_json *name, nnd_dtype *dtype);
/* Reads a type of the manifest; returns 0 where no such value is run here. */
int nnd_type_of(const struct nnd_json *said, struct nnd_type *type);
void nnd_be_maps(struct nnd_type *type, nnd_dtype keys);
int nnd_sizes_of(const struct nnd_json *sizes, int *rank, int64_t shape[NND_MAX_RANK], struct nnd_text *symbols);
/* Returns how many bytes a shape has, -1 where that is more than memory. */
int64_t nnd_bytes_in(nnd_dtype dtype, int rank, const int64_t *shape);

#endif
