/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes by the tiles of AMX, for int8_tile.c. A tile holds 16 rows of 64 bytes; of weights these are 16
 * groups of k of one vector, as they are packed for all ways.
 *
 *   tiles 0 and 1   sums of the rows by the vectors of a panel
 *   tiles 2 and 3   the same of every second block of k: or a product waits for the one before
 *   tile 4          a block of k of the rows
 *   tiles 5 and 6   the block's weights of each vector
 *
 * How large tiles are is kept for each thread, from the first product of a run of a plan to nnd_int8_let_go(): between
 * two runs a thread is someone else's. Rows that do not lie evenly are copied block by block, and so is what is left of
 * k behind the last whole block, with zeros behind it; weights are read there as if the block was whole.
 *
 * The system saves tiles only for processes that asked for it; then signal handlers need more memory, so nobody asks
 * before a plan multiplies bytes.
 */
#ifndef NND_INT8_AMX_H
#define NND_INT8_AMX_H

#ifndef NND_AMX_MODEL /* a test includes functions that do what the instructions do */
#include <immintrin.h>
#endif
#include <stdatomic.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/int8_end.h"

#define NND_AMX_TARGET __attribute__((target("amx-tile,amx-int8")))
#define NND_AMX_BLOCK 64     /* k */
#define NND_AMX_LEAST_ROWS 4 /* fewer rows, or fewer k, are left to VNNI: tiles are stored and read again */
#define NND_AMX_LEAST_K NND_AMX_BLOCK

/* Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.3.1 (palette 1). */
struct nnd_amx_sizes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

/* The rows that tiles have; 0: they are the system's. */
static _Thread_local int nnd_amx_rows;

NND_AMX_TARGET static void nnd_amx_take(int rows) {
  if (nnd_amx_rows == rows) return;
  struct nnd_amx_sizes sizes = {.palette = 1};
  for (int tile = 0; tile < 7; tile++) {
    sizes.row_bytes[tile] = NND_AMX_BLOCK;
    sizes.rows[tile] = (uint8_t)(tile < 5 ? rows : 16);
  }
  _tile_loadconfig(&sizes);
  nnd_amx_rows = rows;
}

NND_AMX_TARGET static void nnd_amx_release(void) {
  _tile_release();
  nnd_amx_rows = 0;
}

void nnd_int8_let_go(void) {
  if (nnd_amx_rows) nnd_amx_release();
}

NND_AMX_TARGET static void nnd_amx_multiply(nnd_size times) {
  nnd_amx_take(16);
  for (nnd_size n = 0; n < times; n++) {
    _tile_dpbusd(0, 4, 5);
    _tile_dpbusd(1, 4, 6);
    _tile_dpbusd(2, 4, 5);
    _tile_dpbusd(3, 4, 6);
  }
  nnd_amx_release();
}

/* Whether rows lie evenly, and how many bytes apart. */
NND_INLINE int nnd_amx_is_even(int rows, const uint8_t *const *at, nnd_size *step) {
  const intptr_t apart = (intptr_t)((uintptr_t)at[1] - (uintptr_t)at[0]);
  intptr_t others = 0;
  for (int r = 2; r < rows; r++) others |= ((intptr_t)((uintptr_t)at[r] - (uintptr_t)at[r - 1])) ^ apart;
  *step = apart;
  return !others;
}

/* `count` bytes of each row, at most a block, and zeros behind them. */
NND_INLINE void nnd_amx_copy(int rows, const uint8_t *const *at, nnd_size count, char *to) {
  typedef char bytes __attribute__((vector_size(NND_AMX_BLOCK)));
  const uint64_t mask = ~(uint64_t)0 >> (NND_AMX_BLOCK - count);
  for (int r = 0; r < rows; r++)
    *(bytes *)(to + r * NND_AMX_BLOCK) = __builtin_ia32_loaddquqi512_mask((const bytes *)at[r], (bytes){0}, mask);
}

/* Adds the products of a block to two tiles of sums. */
#define NND_AMX_MULTIPLY(first, second, rows_at, rows_step, weights_at)                                                \
  do {                                                                                                                 \
    _tile_loadd(4, rows_at, rows_step);                                                                                \
    _tile_loadd(5, weights_at, group);                                                                                 \
    if (is_signed)                                                                                                     \
      _tile_dpbssd(first, 4, 5);                                                                                       \
    else                                                                                                               \
      _tile_dpbusd(first, 4, 5);                                                                                       \
    if (vectors == 1) break;                                                                                           \
    _tile_loadd(6, (weights_at) + NND_LANES * NND_INT8_DEPTH, group);                                                  \
    if (is_signed)                                                                                                     \
      _tile_dpbssd(second, 4, 6);                                                                                      \
    else                                                                                                               \
      _tile_dpbusd(second, 4, 6);                                                                                      \
  } while (0)

/* The sums of each row's vectors, but for those with which they begin. */
NND_AMX_TARGET static void nnd_amx_sums(int rows, int vectors, int is_signed, int is_even, const struct nnd_int8_job *j,
                                        nnd_vu *sums) {
  char copied[NND_INT8_ROWS * NND_AMX_BLOCK] __attribute__((aligned(NND_AMX_BLOCK)));
  nnd_vu more[NND_INT8_ROWS * NND_PANEL];
  const nnd_size group = vectors * NND_LANES * NND_INT8_DEPTH;
  const int8_t *weights = j->weights;
  int is_second = 0;
  nnd_amx_take(rows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (nnd_size tap = 0; tap < j->taps; tap++, weights += nnd_int8_groups(j->k) * group) {
    const uint8_t *at[NND_INT8_ROWS];
    nnd_size step = j->step;
    for (int r = 0; r < rows; r++)
      at[r] = is_even ? (const uint8_t *)j->rows[tap * j->tap_rows] + r * step : j->rows[tap * j->tap_rows + r];
    const int is_read = is_even || nnd_amx_is_even(rows, at, &step);
    for (nnd_size k = 0; k < j->k; k += NND_AMX_BLOCK, is_second = !is_second) {
      const int8_t *block = weights + k / NND_INT8_DEPTH * group;
      const char *from = (const char *)at[0];
      nnd_size apart = step;
      if (!is_read || k + NND_AMX_BLOCK > j->k) {
        nnd_amx_copy(rows, at, nnd_min(NND_AMX_BLOCK, j->k - k), copied);
        from = copied, apart = NND_AMX_BLOCK;
      }
      if (is_second)
        NND_AMX_MULTIPLY(2, 3, from, apart, block);
      else
        NND_AMX_MULTIPLY(0, 1, from, apart, block);
      for (int r = 0; r < rows; r++) at[r] += NND_AMX_BLOCK;
    }
  }
  _tile_stored(0, sums, group);
  _tile_stored(2, more, group);
  if (vectors > 1) {
    _tile_stored(1, sums + 1, group);
    _tile_stored(3, more + 1, group);
  }
  for (int i = 0; i < rows * vectors; i++) sums[i] += more[i];
}

static void nnd_int8_amx(int rows, int vectors, int is_even, const struct nnd_int8_job *j) {
  if (rows < NND_AMX_LEAST_ROWS || j->taps * j->k < NND_AMX_LEAST_K) {
    (is_even ? nnd_int8_kernels_vnni.even : nnd_int8_kernels_vnni.of)[vectors][rows](j);
    return;
  }
  nnd_vu sums[NND_INT8_ROWS * NND_PANEL];
  nnd_amx_sums(rows, vectors, j->is_signed, is_even, j, sums);
  for (int v = 0; v < vectors; v++) {
    const nnd_vu first = j->first ? *(const nnd_vu_any *)(j->first + v * NND_LANES) : (nnd_vu){0};
    for (int r = 0; r < rows; r++) {
      sums[r * vectors + v] += first;
      if (!j->end) *(nnd_vu_any *)(j->sums + r * j->sums_row + v * NND_LANES) = sums[r * vectors + v];
    }
  }
  if (!j->end) return;
  struct nnd_int8_ended ended = *j->ended;
  ended.sums = (const int32_t *)sums, ended.sums_row = vectors * NND_LANES, ended.rows = rows;
  nnd_int8_finish(j->end, &ended);
}

#define NND_AMX_DEFINE(rows, vectors)                                                                                  \
  static void nnd_int8_amx_##vectors##_##rows(const struct nnd_int8_job *job) { nnd_int8_amx(rows, vectors, 0, job); } \
  static void nnd_int8_amx_even_##vectors##_##rows(const struct nnd_int8_job *job) {                                   \
    nnd_int8_amx(rows, vectors, 1, job);                                                                               \
  }
#define NND_AMX_LISTED(rows, vectors) nnd_int8_amx_##vectors##_##rows,
#define NND_AMX_LISTED_EVEN(rows, vectors) nnd_int8_amx_even_##vectors##_##rows,
NND_EACH_INT8_ROW(NND_AMX_DEFINE, 1)
NND_EACH_INT8_ROW(NND_AMX_DEFINE, 2)

static const struct nnd_int8_kernels nnd_int8_kernels_amx = {
    "amx",
    NND_INT8_DEPTH,
    0,
    {{0}, {0, NND_EACH_INT8_ROW(NND_AMX_LISTED, 1)}, {0, NND_EACH_INT8_ROW(NND_AMX_LISTED, 2)}},
    {{0}, {0, NND_EACH_INT8_ROW(NND_AMX_LISTED_EVEN, 1)}, {0, NND_EACH_INT8_ROW(NND_AMX_LISTED_EVEN, 2)}}};

/* Whether the processor has tiles of bytes, and the system keeps them: XCR0. */
static int nnd_amx_is_there(void) {
#ifdef NND_AMX_MODEL
  return 1;
#else
  unsigned a = 0, b = 0, c = 0, d = 0, kept = 0, high;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  const unsigned wanted = 1u << 24 | 1u << 25;                                               /* AMX_TILE, AMX_INT8 */
  if ((d & wanted) != wanted || !__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* OSXSAVE */
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  return (kept >> 17 & 3) == 3; /* XTILECFG, XTILEDATA */
#endif
}

/* Whether the system lets this process have them; Linux is asked once, others are not asked. Source: Linux,
 * Documentation/arch/x86/xstate.rst. */
static int nnd_amx_is_permitted(void) {
#ifdef NND_AMX_MODEL
  return 1;
#elif !defined(__linux__)
  return 0;
#else
  enum { UNKNOWN, NO, YES, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  static atomic_int known = UNKNOWN;
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found == UNKNOWN) {
    found = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) ? NO : YES;
    atomic_store_explicit(&known, found, memory_order_relaxed);
  }
  return found == YES;
#endif
}

#endif
