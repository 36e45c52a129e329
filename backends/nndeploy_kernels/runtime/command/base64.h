/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648), of which a text is taken only if it is the one that its bytes have.
 */
#ifndef NND_COMMAND_BASE64_H
#define NND_COMMAND_BASE64_H

#include <stdint.h>

/* Returns how many bytes a text stands for, which are written into `bytes` of 3 / 4 of its size; -1 where it is none. */
int64_t nnd_base64_read(const char *text, int64_t size, uint8_t *bytes);

#endif
