/* SPDX-License-Identifier: Apache-2.0
 *
 * --verify-key: whether the owner of a public key signed a bundle, as `nndeploy verify --signatures` finds with that key
 * as the only one that is trusted (`nndeploy/trust`).
 */
#ifndef NND_COMMAND_SIGNATURE_H
#define NND_COMMAND_SIGNATURE_H

#include "runtime/bundle.h"

/* A public key: its bytes, what it is called, and the SHA-256 of its SubjectPublicKeyInfo. */
struct nnd_public_key {
  uint8_t raw[32];
  char name[64], id[65];
};

int nnd_key_read(const char *path, struct nnd_public_key *key, nnd_error *error);
/* Checks the signature of a bundle of which nothing but the manifest was read; `key` is a struct nnd_public_key. */
int nnd_check_signature(struct nnd_bundle *bundle, const void *key, nnd_error *error);

#endif
