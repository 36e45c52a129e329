/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes by the tiles of AMX, for int8_tile.c. A tile holds 16 rows of 64 bytes; of weights these are 16
 * groups of k of one vector, as they are packed for all ways.
 *
 *   tiles 0 and 1   sums of the first strip by the vectors of a panel
 *   tiles 2 and 3   those of the second strip
 *   tiles 4 and 5   a block of k of each strip
 *   tiles 6 and 7   the block's weights of each vector
 *
 * Where there is one strip or one vector, two of the tiles of sums are left: they hold those of every second block, or a
 * product would wait for the one before.
 *
 * How large tiles are is kept for each thread, from the first product of a run of a plan to nnd_int8_let_go(): between
 * two runs a thread is someone else's. Setting it takes as long as some ten products, so that all strips of a step have
 * as many rows.
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

#include "kernels/int8_bytes.h"

#define NND_AMX_TARGET __attribute__((target("amx-tile,amx-int8")))
/* Products of fewer rows, k or multiplications are left to VNNI: to take tiles, to store sums and to read them again
 * takes longer than that. Measured on an Intel Xeon, 2026-11-30. */
#ifndef NND_AMX_LEAST_PRODUCTS /* tests take tiles for all */
#define NND_AMX_LEAST_ROWS 4
#define NND_AMX_LEAST_K 32
#define NND_AMX_LEAST_PRODUCTS ((nnd_size)1 << 18)
#endif

/* Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.3.1 (palette 1). */
struct nnd_amx_sizes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

/* The rows that tiles have, and 256 times the bytes of a block; 0: they are the system's. */
static _Thread_local int nnd_amx_taken;

NND_AMX_TARGET static void nnd_amx_take(int rows, int block) {
  if (nnd_amx_taken == (block << 8 | rows)) return;
  struct nnd_amx_sizes sizes = {.palette = 1};
  for (int tile = 0; tile < 8; tile++) {
    sizes.row_bytes[tile] = (uint16_t)(tile / 2 == 2 ? block : NND_INT8_BLOCK);
    sizes.rows[tile] = (uint8_t)(tile < 6 ? rows : block / NND_INT8_DEPTH);
  }
  _tile_loadconfig(&sizes);
  nnd_amx_taken = block << 8 | rows;
}

NND_AMX_TARGET static void nnd_amx_release(void) {
  _tile_release();
  nnd_amx_taken = 0;
}

void nnd_int8_let_go(void) {
  if (nnd_amx_taken) nnd_amx_release();
}

NND_AMX_TARGET static void nnd_amx_multiply(nnd_size times) {
  nnd_amx_take(NND_INT8_STRIP, NND_INT8_BLOCK);
  for (nnd_size n = 0; n < times; n++) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  nnd_amx_release();
}

#define NND_AMX_ADD(sums, rows, weights)                                                                               \
  do {                                                                                                                 \
    if (is_signed)                                                                                                     \
      _tile_dpbssd(sums, rows, weights);                                                                               \
    else                                                                                                               \
      _tile_dpbusd(sums, rows, weights);                                                                               \
  } while (0)

/* Adds the sums of every second block, which are in tile `more`. */
#define NND_AMX_JOIN(more, to)                                                                                         \
  do {                                                                                                                 \
    nnd_vu others[NND_INT8_STRIP];                                                                                     \
    _tile_stored(more, others, sizeof *others);                                                                        \
    for (int r = 0; r < b->height; r++) *(nnd_vu_any *)((to) + r * b->sums_row) += others[r];                          \
  } while (0)

/* Sums on their way to bytes, some rows after the other. */
struct nnd_amx_ending {
  struct nnd_int8_end end;
  const struct nnd_int8_ended *ended, *behind; /* strips */
  const int32_t *sums;
  char *out;
  nnd_size left, out_row; /* rows of the strip */
  int is_wide;            /* all columns of its vectors are an output's */
  vf factors[NND_PANEL], bias[NND_PANEL];
};

NND_INLINE void nnd_amx_begin_end(int vectors, const struct nnd_int8_blocks *b, struct nnd_amx_ending *e) {
  e->left = 0, e->ended = b->ended, e->behind = b->ended + b->num_ended;
  if (!b->num_ended) return;
  e->end = *b->end;
  e->out_row = b->ended->out_row, e->is_wide = b->ended->columns == vectors * NND_LANES;
  nnd_int8_load_columns(b->ended, vectors, e->factors, e->bias);
}

/* As many rows as fill four vectors; returns 0 where all are done. */
NND_INLINE int nnd_amx_end_some(int vectors, struct nnd_amx_ending *e) {
  const int rows = 4 / vectors;
  if (e->left <= 0) {
    if (e->ended == e->behind) return 0;
    e->sums = e->ended->sums, e->out = e->ended->out, e->left = e->ended->rows, e->ended++;
  }
  vf x[4];
  NND_UNROLL
  for (int i = 0; i < 4; i++) /* behind the last row there are sums of others */
    x[i] = __builtin_convertvector((vi) * (const nnd_vu_any *)(e->sums + i * NND_LANES), vf) * e->factors[i % vectors] +
           e->bias[i % vectors];
  if (e->left >= rows && e->is_wide) {
    const nnd_vu bytes = (nnd_vu)nnd_int8_bytes_of(&e->end, x);
    nnd_store_rows(NND_IN_ORDER(bytes), rows, e->out_row, e->out);
  } else {
    struct nnd_int8_ended few = e->ended[-1];
    few.out = e->out;
    nnd_int8_store_rows(&e->end, &few, x, vectors, 0, (int)nnd_min(rows, e->left));
  }
  e->sums += 4 * NND_LANES, e->out += rows * e->out_row, e->left -= rows;
  return 1;
}

NND_INLINE void nnd_amx_end_all(int vectors, const struct nnd_int8_blocks *b) {
  struct nnd_amx_ending e;
  nnd_amx_begin_end(vectors, b, &e);
  while (nnd_amx_end_some(vectors, &e)) {
  }
}

NND_INLINE NND_AMX_TARGET void nnd_amx_blocks(int strips, int vectors, int is_signed, const struct nnd_int8_blocks *b) {
  const nnd_size group = vectors * NND_LANES * NND_INT8_DEPTH, step = b->step, of_block = b->size * vectors * NND_LANES;
  const int8_t *weights = b->weights;
  int is_second = 0;
  struct nnd_amx_ending e;
  nnd_amx_begin_end(vectors, b, &e);
  const nnd_size at_once = nnd_ceil_div(b->num_ended * b->height * vectors, 4 * b->taps * b->count);
  nnd_amx_take(b->height, (int)b->size);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (b->first) {
    _tile_loadd(0, b->first, 0);
    if (vectors > 1) _tile_loadd(1, b->first + NND_LANES, 0);
    if (strips > 1) _tile_loadd(2, b->first, 0);
    if (strips > 1 && vectors > 1) _tile_loadd(3, b->first + NND_LANES, 0);
  } else {
    _tile_zero(0);
  }
  for (nnd_size tap = 0; tap < b->taps; tap++) {
    const char *one = b->rows[0] + b->offsets[tap], *other = b->rows[strips - 1] + b->offsets[tap];
    for (nnd_size i = 0; i < b->count; i++, weights += of_block, one += b->block, other += b->block) {
      _tile_loadd(4, one, step);
      _tile_loadd(6, weights, group);
      if (strips > 1 && vectors > 1) {
        NND_AMX_ADD(0, 4, 6);
        _tile_loadd(7, weights + NND_LANES * NND_INT8_DEPTH, group);
        NND_AMX_ADD(1, 4, 7);
        _tile_loadd(5, other, step);
        NND_AMX_ADD(2, 5, 6);
        NND_AMX_ADD(3, 5, 7);
        for (nnd_size n = 0; n < at_once; n++) nnd_amx_end_some(vectors, &e);
        continue;
      }
      if (strips > 1) _tile_loadd(5, other, step);
      if (vectors > 1) _tile_loadd(7, weights + NND_LANES * NND_INT8_DEPTH, group);
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
      for (nnd_size n = 0; n < at_once; n++) nnd_amx_end_some(vectors, &e);
    }
  }
  while (nnd_amx_end_some(vectors, &e)) {
  }
  const nnd_size row = b->sums_row * (nnd_size)sizeof(int32_t);
  _tile_stored(0, b->sums[0], row);
  if (vectors > 1) _tile_stored(1, b->sums[0] + NND_LANES, row);
  if (strips > 1) _tile_stored(2, b->sums[1], row);
  if (strips > 1 && vectors > 1) _tile_stored(3, b->sums[1] + NND_LANES, row);
  if ((strips > 1 && vectors > 1) || b->taps * b->count == 1) return;
  NND_AMX_JOIN(3, b->sums[0]);
  if (strips > 1) NND_AMX_JOIN(1, b->sums[1]);
  if (vectors > 1) NND_AMX_JOIN(2, b->sums[0] + NND_LANES);
}

#define NND_AMX_DEFINE(strips, vectors)                                                                                \
  NND_AMX_TARGET static void nnd_amx_##strips##_##vectors(const struct nnd_int8_blocks *b) {                           \
    if (b->is_signed)                                                                                                  \
      nnd_amx_blocks(strips, vectors, 1, b);                                                                           \
    else                                                                                                               \
      nnd_amx_blocks(strips, vectors, 0, b);                                                                           \
  }
static void nnd_amx_0_1(const struct nnd_int8_blocks *b) { nnd_amx_end_all(1, b); }
static void nnd_amx_0_2(const struct nnd_int8_blocks *b) { nnd_amx_end_all(2, b); }
NND_AMX_DEFINE(1, 1)
NND_AMX_DEFINE(1, 2)
NND_AMX_DEFINE(2, 1)
NND_AMX_DEFINE(2, 2)

static void nnd_int8_amx(const struct nnd_int8_blocks *b) {
  static const nnd_int8_multiplier of[3][2] = {
      {nnd_amx_0_1, nnd_amx_0_2}, {nnd_amx_1_1, nnd_amx_1_2}, {nnd_amx_2_1, nnd_amx_2_2}};
  of[b->strips][b->vectors - 1](b);
}

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
