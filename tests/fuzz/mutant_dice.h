/* SPDX-License-Identifier: Apache-2.0
 *
 * What is drawn for a mutant: the same for the same seed and number.
 */
#ifndef MUTANT_DICE_H
#define MUTANT_DICE_H

#include <stdint.h>

static uint64_t dice;

static uint64_t any(void) { /* xorshift64* */
  dice ^= dice >> 12, dice ^= dice << 25, dice ^= dice >> 27;
  return dice * 2685821657736338717ull;
}

static int64_t below(int64_t count) { return (int64_t)(any() % (uint64_t)count); }

static void seed_dice(uint64_t seed, int64_t number) {
  dice = (seed + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)number * 0xbf58476d1ce4e5b9ull + 1;
  if (!dice) dice = 1;
}

/* A number that sizes and counts seldom are, or that is one of `words`. */
static int64_t odd_number(const int64_t *words, int64_t count) {
  static const int64_t usual[] = {0,     1,     -1,        2,         3,         7,         8,         15,
                                  16,    17,    31,        33,        63,        64,        255,       256,
                                  65535, 65536, 1ll << 20, 1ll << 31, 1ll << 40, 1ll << 62, INT64_MAX, INT64_MIN};
  switch (below(4)) {
    case 0: return usual[below(sizeof usual / sizeof *usual)];
    case 1: return words[below(count)];
    case 2: return below(64);
    default: return (int64_t)any();
  }
}

#endif
