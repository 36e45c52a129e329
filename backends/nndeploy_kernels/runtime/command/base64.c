/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/base64.h"

static int nnd_six_bits_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int64_t nnd_base64_read(const char *text, int64_t size, uint8_t *bytes) {
  int64_t count = 0;
  if (size % 4) return -1;
  const int padding = size ? (text[size - 1] == '=') + (text[size - 1] == '=' && text[size - 2] == '=') : 0;
  for (int64_t i = 0; i < size; i += 4) {
    const int letters = i + 4 < size ? 4 : 4 - padding;
    uint32_t value = 0;
    for (int k = 0; k < 4; k++) {
      const int bits = k < letters ? nnd_six_bits_of(text[i + k]) : 0;
      if (bits < 0) return -1;
      value = value << 6 | (uint32_t)bits;
    }
    if (value & ((1u << 8 * (4 - letters)) - 1)) return -1; /* bits that stand for nothing */
    for (int k = 0; k < letters - 1; k++) bytes[count++] = (uint8_t)(value >> (16 - 8 * k));
  }
  return count;
}
