/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of AMX, and the loop over blocks that multiplies by them, for int8_tile.c and bf16_tiles.c. A tile holds 16
 * rows of 64 bytes; of weights these are 16 groups of k of one vector, as they are packed for all ways.
 *
 *   tiles 0 and 1   sums of the first strip by the vectors of a panel
 *   tiles 2 and 3   those of the second strip
 *   tiles 4 and 5   a block of k of each strip
 *   tiles 6 and 7   the block's weights of each vector
 *
 * Where there is one strip or one vector, two of the tiles of sums are left: they hold those of every second block, or a
 * product would wait for the one before.
 *
 * How large tiles are is kept for each thread, from the first product of a run of a plan to nnd_amx_let_go(): between
 * two runs a thread is someone else's. Setting it takes as long as some ten products, so that all strips of a step have
 * as many rows.
 *
 * The system saves tiles only for processes that asked for it; then signal handlers need more memory, so nobody asks
 * before a plan wants them.
 */
#ifndef NND_AMX_H
#define NND_AMX_H

#ifndef NND_AMX_MODEL /* a test includes functions that do what the instructions do */
#include <immintrin.h>
#endif
#include <cpuid.h>
#include <stdatomic.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/amx_blocks.h"
#include "kernels/wanted.h"

#define NND_AMX_TARGET __attribute__((target("amx-tile,amx-int8,amx-bf16")))

enum nnd_amx_kind { NND_AMX_UINT8, NND_AMX_INT8, NND_AMX_BF16 };

/* Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.3.1 (palette 1). */
struct nnd_amx_sizes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

/* How many tiles hold rows or sums, the bytes of a block, and the rows that tiles have, 8 bits each; 0: tiles are the
 * system's. */
extern __attribute__((visibility("hidden"))) _Thread_local int nnd_amx_taken;

NND_AMX_TARGET NND_NOINLINE void nnd_amx_take_anew(int rows, int block, int of_rows) {
  struct nnd_amx_sizes sizes = {.palette = 1};
  for (int tile = 0; tile < 8; tile++) {
    sizes.row_bytes[tile] = (uint16_t)(tile / 2 == 2 ? block : NND_AMX_BYTES);
    sizes.rows[tile] = (uint8_t)(tile < of_rows ? rows : block / NND_AMX_GROUP);
  }
  _tile_loadconfig(&sizes);
  nnd_amx_taken = of_rows << 16 | block << 8 | rows;
}

/* The first `of_rows` tiles hold rows or sums, the others weights. */
NND_INLINE void nnd_amx_take(int rows, int block, int of_rows) {
  if (nnd_amx_taken != (of_rows << 16 | block << 8 | rows)) nnd_amx_take_anew(rows, block, of_rows);
}

#define NND_AMX_ADD(sums, rows, weights)                                                                               \
  do {                                                                                                                 \
    if (kind == NND_AMX_BF16)                                                                                          \
      _tile_dpbf16ps(sums, rows, weights);                                                                             \
    else if (kind == NND_AMX_INT8)                                                                                     \
      _tile_dpbssd(sums, rows, weights);                                                                               \
    else                                                                                                               \
      _tile_dpbusd(sums, rows, weights);                                                                               \
  } while (0)

/* Adds the sums of every second block, which are in tile `more`. */
#define NND_AMX_JOIN(more, to)                                                                                         \
  do {                                                                                                                 \
    vi others[NND_AMX_ROWS];                                                                                           \
    _tile_stored(more, others, sizeof *others);                                                                        \
    for (int r = 0; r < b->height; r++) {                                                                              \
      int32_t *at = (int32_t *)(to) + r * b->sums_row;                                                                 \
      if (kind == NND_AMX_BF16)                                                                                        \
        nnd_store_any((float *)at, nnd_load_any((const float *)at) + (vf)others[r]);                                   \
      else                                                                                                             \
        *(nnd_amx_whole *)at += (nnd_amx_whole)others[r];                                                              \
    }                                                                                                                  \
  } while (0)
typedef uint32_t nnd_amx_whole __attribute__((vector_size(4 * NND_LANES), aligned(4)));

/* Sums of a strip, or of two, by one vector or two begin in tiles 0 to 3; in those that are not used as zeros. */
NND_INLINE NND_AMX_TARGET void nnd_amx_begin_sums(int strips, int vectors, const void *first) {
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (!first) {
    _tile_zero(0);
    return;
  }
  const char *second = (const char *)first + NND_AMX_BYTES;
  _tile_loadd(0, first, 0);
  if (vectors > 1) _tile_loadd(1, second, 0);
  if (strips > 1) _tile_loadd(2, first, 0);
  if (strips > 1 && vectors > 1) _tile_loadd(3, second, 0);
}

NND_INLINE NND_AMX_TARGET void nnd_amx_store_sums(int strips, int vectors, const struct nnd_amx_blocks *b) {
  const nnd_size row = b->sums_row * (nnd_size)sizeof(int32_t);
  char *sums = b->sums[0], *below = b->sums[strips - 1];
  _tile_stored(0, sums, row);
  if (vectors > 1) _tile_stored(1, sums + NND_AMX_BYTES, row);
  if (strips > 1) _tile_stored(2, below, row);
  if (strips > 1 && vectors > 1) _tile_stored(3, below + NND_AMX_BYTES, row);
}

/* `at_once`: how often to go on with what ends after each block. */
NND_INLINE NND_AMX_TARGET void nnd_amx_multiply(int strips, int vectors, enum nnd_amx_kind kind,
                                                const struct nnd_amx_blocks *b, nnd_amx_ender end_some, void *ending,
                                                nnd_size at_once) {
  const nnd_size group = (nnd_size)b->wide * NND_AMX_BYTES, step = b->step, of_block = b->size * b->wide * NND_LANES;
  const char *weights = b->weights;
  int is_second = 0;
  nnd_amx_take(b->height, (int)b->size, 6);
  nnd_amx_begin_sums(strips, vectors, b->first);
  for (nnd_size tap = 0; tap < b->taps; tap++) {
    const char *one = b->rows[0] + b->offsets[tap], *other = b->rows[strips - 1] + b->offsets[tap];
    for (nnd_size i = 0; i < b->count; i++, weights += of_block, one += b->block, other += b->block) {
      _tile_loadd(4, one, step);
      _tile_loadd(6, weights, group);
      if (strips > 1 && vectors > 1) {
        NND_AMX_ADD(0, 4, 6);
        _tile_loadd(7, weights + NND_AMX_BYTES, group);
        NND_AMX_ADD(1, 4, 7);
        _tile_loadd(5, other, step);
        NND_AMX_ADD(2, 5, 6);
        NND_AMX_ADD(3, 5, 7);
        for (nnd_size n = 0; n < at_once; n++) end_some(ending);
        continue;
      }
      if (strips > 1) _tile_loadd(5, other, step);
      if (vectors > 1) _tile_loadd(7, weights + NND_AMX_BYTES, group);
      if (is_second) {
        NND_AMX_ADD(3, 4, 6);
        if (strips > 1) NND_AMX_ADD(1, 5, 6);
        if (vectors > 1) NND_AMX_ADD(2, 4, 7);
      } else {
        NND_AMX_ADD(0, 4, 6);
        if (strips > 1) NND_AMX_ADD(2, 5, 6);
        if (vectors > 1) NND_AMX_ADD(1, 4, 7);
      }
      is_second = !is_second;
      for (nnd_size n = 0; n < at_once; n++) end_some(ending);
    }
  }
  while (end_some(ending)) {
  }
  nnd_amx_store_sums(strips, vectors, b);
  if ((strips > 1 && vectors > 1) || b->taps * b->count == 1) return;
  char *sums = b->sums[0], *below = b->sums[strips - 1];
  NND_AMX_JOIN(3, sums);
  if (strips > 1) NND_AMX_JOIN(1, below);
  if (vectors > 1) NND_AMX_JOIN(2, sums + NND_AMX_BYTES);
}

/* Whether the processor has tiles for a kind of products, and the system keeps them (XCR0); and nobody does without them.
 */
static inline int nnd_amx_is_there(enum nnd_amx_kind kind) {
  if (!nnd_is_wanted("amx")) return 0;
#ifdef NND_AMX_MODEL
  (void)kind;
  return 1;
#else
  unsigned a = 0, b = 0, c = 0, d = 0, kept = 0, high;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  const unsigned wanted = 1u << 24 | 1u << (kind == NND_AMX_BF16 ? 22 : 25); /* AMX_TILE; AMX_BF16, AMX_INT8 */
  if ((d & wanted) != wanted || !__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* OSXSAVE */
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  return (kept >> 17 & 3) == 3; /* XTILECFG, XTILEDATA */
#endif
}

/* Whether the system lets this process have them; Linux is asked once, others are not asked. Source: Linux,
 * Documentation/arch/x86/xstate.rst. */
static inline int nnd_amx_is_permitted(void) {
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
