/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of bytes, copied at even steps.
 */
#ifndef NND_ROWS_H
#define NND_ROWS_H

#include "base/vector.h"

/* Copies `rows` rows of `num_bytes` each, which lie `to_step` and `from_step` bytes apart. Short rows of the usual
 * lengths are no calls. */
NND_INLINE void nnd_copy_rows(char *to, nnd_size to_step, const char *from, nnd_size from_step, nnd_size num_bytes,
                              nnd_size rows) {
#define NND_ROWS_OF(n)                                                                                                 \
  case n:                                                                                                              \
    for (nnd_size row = 0; row < rows; row++) memcpy(to + row * to_step, from + row * from_step, n);                   \
    return;
  switch (num_bytes) {
    NND_ROWS_OF(1)
    NND_ROWS_OF(2)
    NND_ROWS_OF(3)
    NND_ROWS_OF(4)
    NND_ROWS_OF(8)
    NND_ROWS_OF(12)
    NND_ROWS_OF(16)
    NND_ROWS_OF(20)
    NND_ROWS_OF(24)
    NND_ROWS_OF(28)
    NND_ROWS_OF(32)
    NND_ROWS_OF(48)
    NND_ROWS_OF(64)
    default:
      for (nnd_size row = 0; row < rows; row++) memcpy(to + row * to_step, from + row * from_step, (size_t)num_bytes);
  }
#undef NND_ROWS_OF
}

#endif
