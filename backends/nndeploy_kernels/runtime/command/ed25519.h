/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures of ed25519 (RFC 8032), which a cryptographic library of the system checks: `libcrypto/ed25519.c`. What is
 * built without one has `ed25519_absent.c` in its place.
 */
#ifndef NND_COMMAND_ED25519_H
#define NND_COMMAND_ED25519_H

#include "runtime/nndeploy.h"

#define NND_KEY_BYTES 32
#define NND_SIGNATURE_BYTES 64

/* Returns whether there is a library, or 0 and the error. */
int nnd_has_ed25519(nnd_error *error);
/* Returns whether the owner of a public key signed a message. */
int nnd_is_signature(const uint8_t key[NND_KEY_BYTES], const uint8_t signature[NND_SIGNATURE_BYTES],
                     const void *message, int64_t size);

#endif
