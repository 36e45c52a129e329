/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/utf8.h"

int nnd_utf8_size(const uint8_t *at, int64_t left) {
  const uint8_t a = at[0];
  const int size = a < 0x80 ? 1 : a >= 0xc2 && a < 0xe0 ? 2 : a >= 0xe0 && a < 0xf0 ? 3 : a >= 0xf0 && a < 0xf5 ? 4 : 0;
  if (!size || left < size) return 0;
  for (int i = 1; i < size; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  if ((a == 0xe0 && at[1] < 0xa0) || (a == 0xed && at[1] > 0x9f) || (a == 0xf0 && at[1] < 0x90) ||
      (a == 0xf4 && at[1] > 0x8f))
    return 0;
  return size;
}

int nnd_utf8_put(uint32_t character, char *to) {
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return 0;
  if (character < 0x80) {
    *to = (char)character;
    return 1;
  }
  const int size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (int i = size - 1; i > 0; i--, character >>= 6) to[i] = (char)(0x80 | (character & 0x3f));
  *to = (char)((size == 2 ? 0xc0 : size == 3 ? 0xe0 : 0xf0) | character);
  return size;
}
