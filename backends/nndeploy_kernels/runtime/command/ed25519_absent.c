/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/command.h"
#include "runtime/command/ed25519.h"

int nnd_has_ed25519(nnd_error *error) {
  return nnd_fail(error, NND_UNAVAILABLE, "--verify-key",
                  "this program was built without a cryptographic library (hint: nndeploy verify --signatures, or the "
                  "program of make runtime ARGS=--with-libcrypto)");
}

int nnd_is_signature(const uint8_t key[NND_KEY_BYTES], const uint8_t signature[NND_SIGNATURE_BYTES],
                     const void *message, int64_t size) {
  (void)key, (void)signature, (void)message, (void)size;
  return 0;
}
