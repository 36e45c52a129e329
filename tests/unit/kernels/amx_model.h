/* SPDX-License-Identifier: Apache-2.0
 *
 * What the instructions of AMX do, for machines without them: a source that is compiled with this header before all
 * others calls these functions. What the processor answers with a fault ends the process.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILESTORED,
 * TILEZERO, TILERELEASE, TDPBSSD, TDPBUSD, TDPBF16PS, and the classes of exceptions AMX-E1 to AMX-E6.
 */
#ifndef NND_AMX_MODEL_H
#define NND_AMX_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_BYTES = 64 };

struct amx_tile {
  int rows, bytes;
  uint8_t at[AMX_ROWS][AMX_BYTES];
};

__attribute__((weak)) _Thread_local struct amx_state {
  int is_configured;
  struct amx_tile tiles[AMX_TILES];
} amx_state;

static void amx_must(int is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "AMX: %s\n", what);
  abort();
}

static struct amx_tile *amx_of(int number) {
  amx_must(amx_state.is_configured, "a tile without a configuration");
  amx_must(number >= 0 && number < AMX_TILES, "no such tile");
  amx_must(amx_state.tiles[number].rows > 0, "a tile that is not configured");
  return &amx_state.tiles[number];
}

static void _tile_release(void) { memset(&amx_state, 0, sizeof amx_state); }

static void _tile_loadconfig(const void *memory) {
  const uint8_t *at = memory;
  amx_must(at[0] <= 1, "a palette above 1");
  _tile_release();
  if (!at[0]) return;
  for (int i = 1; i < 16; i++) amx_must(at[i] == 0, "a start row, or reserved bytes that are not zero");
  for (int number = 0; number < 16; number++) {
    const int bytes = at[16 + 2 * number] | at[17 + 2 * number] << 8, rows = at[48 + number];
    amx_must(number < AMX_TILES || (!bytes && !rows), "more tiles than the palette has");
    amx_must(rows <= AMX_ROWS && bytes <= AMX_BYTES, "more than 16 rows or 64 bytes");
    amx_must(!rows == !bytes, "rows without bytes, or bytes without rows");
    if (number < AMX_TILES) amx_state.tiles[number].rows = rows, amx_state.tiles[number].bytes = bytes;
  }
  amx_state.is_configured = 1;
}

static void _tile_zero(int number) { memset(amx_of(number)->at, 0, sizeof amx_of(number)->at); }

static void _tile_loadd(int number, const void *from, int64_t step) {
  struct amx_tile *tile = amx_of(number);
  _tile_zero(number);
  for (int row = 0; row < tile->rows; row++)
    memcpy(tile->at[row], (const char *)from + row * step, (size_t)tile->bytes);
}

static void _tile_stored(int number, void *to, int64_t step) {
  const struct amx_tile *tile = amx_of(number);
  for (int row = 0; row < tile->rows; row++) memcpy((char *)to + row * step, tile->at[row], (size_t)tile->bytes);
}

/* The tiles of a product a x b, whose rows of b hold four bytes of k for each column. */
static struct amx_tile *amx_product(int sums, int a, int b) {
  amx_must(sums != a && sums != b && a != b, "a tile that is two operands");
  const struct amx_tile *x = amx_of(a), *y = amx_of(b);
  struct amx_tile *to = amx_of(sums);
  amx_must(to->bytes % 4 == 0 && x->bytes % 4 == 0 && y->bytes % 4 == 0, "rows that are not whole words");
  amx_must(to->bytes == y->bytes, "other columns than the second factor has");
  amx_must(to->rows == x->rows, "other rows than the first factor has");
  amx_must(x->bytes / 4 == y->rows, "factors that do not fit together");
  return to;
}

static void amx_bytes(int sums, int a, int b, int first_is_signed) {
  struct amx_tile *to = amx_product(sums, a, b);
  const struct amx_tile *x = amx_of(a), *y = amx_of(b);
  for (int row = 0; row < to->rows; row++)
    for (int column = 0; column < to->bytes / 4; column++) {
      uint32_t sum;
      memcpy(&sum, to->at[row] + 4 * column, 4);
      for (int k = 0; k < x->bytes; k++) {
        const int factor = first_is_signed ? (int8_t)x->at[row][k] : x->at[row][k];
        sum += (uint32_t)(factor * (int8_t)y->at[k / 4][4 * column + k % 4]);
      }
      memcpy(to->at[row] + 4 * column, &sum, 4);
    }
}

static float amx_float(const uint8_t *bfloat16) {
  const uint32_t bits = (uint32_t)bfloat16[0] << 16 | (uint32_t)bfloat16[1] << 24;
  float found;
  memcpy(&found, &bits, sizeof found);
  return found;
}

static float amx_normal(float x) { return __builtin_fabsf(x) < 0x1p-126f ? 0.0f * x : x; }

/* Sums of even k and of odd k, which are added up then; denormal numbers are zeros. */
static void _tile_dpbf16ps(int sums, int a, int b) {
  struct amx_tile *to = amx_product(sums, a, b);
  const struct amx_tile *x = amx_of(a), *y = amx_of(b);
  for (int row = 0; row < to->rows; row++)
    for (int column = 0; column < to->bytes / 4; column++) {
      float parts[2] = {0.0f, 0.0f}, sum;
      for (int k = 0; k < x->bytes / 2; k++) {
        const float first = amx_normal(amx_float(x->at[row] + 2 * k));
        const float second = amx_normal(amx_float(y->at[k / 2] + 4 * column + k % 2 * 2));
        parts[k % 2] = amx_normal(__builtin_fmaf(first, second, parts[k % 2]));
      }
      memcpy(&sum, to->at[row] + 4 * column, 4);
      sum = amx_normal(amx_normal(sum) + amx_normal(parts[0] + parts[1]));
      memcpy(to->at[row] + 4 * column, &sum, 4);
    }
}

static void _tile_dpbssd(int sums, int a, int b) { amx_bytes(sums, a, b, 1); }
static void _tile_dpbusd(int sums, int a, int b) { amx_bytes(sums, a, b, 0); }

#endif
