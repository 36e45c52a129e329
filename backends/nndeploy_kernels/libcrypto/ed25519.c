/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures of ed25519 by OpenSSL's libcrypto, of the system.
 */
#include "runtime/command/ed25519.h"

#include <openssl/evp.h>

int nnd_has_ed25519(nnd_error *error) {
  (void)error;
  return 1;
}

int nnd_is_signature(const uint8_t key[NND_KEY_BYTES], const uint8_t signature[NND_SIGNATURE_BYTES],
                     const void *message, int64_t size) {
  EVP_PKEY *public_key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, NND_KEY_BYTES);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  const int is_right = public_key && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, public_key) == 1 &&
                       EVP_DigestVerify(context, signature, NND_SIGNATURE_BYTES, message, (size_t)size) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(public_key);
  return is_right;
}
