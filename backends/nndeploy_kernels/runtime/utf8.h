/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters of UTF-8 (RFC 3629).
 */
#ifndef NND_RUNTIME_UTF8_H
#define NND_RUNTIME_UTF8_H

#include <stdint.h>

#define NND_UTF8_BYTES 4 /* the most of a character */

/* Returns the bytes of the character that begins at `at`, 0 where there is none in `left` bytes. */
int nnd_utf8_size(const uint8_t *at, int64_t left);

/* Writes a character; returns its bytes, 0 where it is none: a surrogate, or behind the last. */
int nnd_utf8_put(uint32_t character, char *to);

#endif
