/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes by the tiles of AMX, for int8_tile.c: while some are multiplied, the sums of those before become
 * bytes.
 */
#ifndef NND_INT8_AMX_H
#define NND_INT8_AMX_H

#include "kernels/amx.h"
#include "kernels/int8_bytes.h"

/* Products of fewer rows, k or multiplications are left to VNNI: to take tiles, to store sums and to read them again
 * takes longer than that. Measured on an Intel Xeon, 2026-11-30. */
#ifndef NND_AMX_LEAST_PRODUCTS /* tests take tiles for all */
#define NND_AMX_LEAST_ROWS 4
#define NND_AMX_LEAST_K 32
#define NND_AMX_LEAST_PRODUCTS ((nnd_size)1 << 18)
#endif

_Thread_local int nnd_amx_taken;

NND_AMX_TARGET static void nnd_amx_release(void) {
  _tile_release();
  nnd_amx_taken = 0;
}

void nnd_amx_let_go(void) {
  if (nnd_amx_taken) nnd_amx_release();
}

NND_AMX_TARGET static void nnd_amx_multiply_registers(nnd_size times) {
  nnd_amx_take(NND_AMX_ROWS, NND_AMX_BYTES, 6);
  for (nnd_size n = 0; n < times; n++) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  nnd_amx_release();
}

/* Sums on their way to bytes, some rows after the other. */
struct nnd_int8_ending {
  struct nnd_int8_end end;
  const struct nnd_int8_ended *ended, *behind; /* strips */
  const int32_t *sums;
  char *out;
  nnd_size left, out_row; /* rows of the strip */
  int is_wide;            /* all columns of its vectors are an output's */
  vf factors[NND_PANEL], bias[NND_PANEL];
};

NND_INLINE void nnd_int8_begin_end(int vectors, const struct nnd_int8_blocks *b, struct nnd_int8_ending *e) {
  e->left = 0, e->ended = b->ended, e->behind = b->ended + b->num_ended;
  if (!b->num_ended) return;
  e->end = *b->end;
  e->out_row = b->ended->out_row, e->is_wide = b->ended->columns == vectors * NND_LANES;
  nnd_int8_load_columns(b->ended, vectors, e->factors, e->bias);
}

/* As many rows as fill four vectors; returns 0 where all are done. */
NND_INLINE int nnd_int8_end_some(int vectors, struct nnd_int8_ending *e) {
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

NND_INLINE int nnd_int8_end_one(void *ending) { return nnd_int8_end_some(1, ending); }
NND_INLINE int nnd_int8_end_two(void *ending) { return nnd_int8_end_some(2, ending); }

NND_INLINE void nnd_amx_end_all(int vectors, const struct nnd_int8_blocks *b) {
  struct nnd_int8_ending e;
  nnd_int8_begin_end(vectors, b, &e);
  while (nnd_int8_end_some(vectors, &e)) {
  }
}

NND_INLINE NND_AMX_TARGET void nnd_amx_bytes(int strips, int vectors, enum nnd_amx_kind kind,
                                             const struct nnd_int8_blocks *b) {
  const struct nnd_amx_blocks *t = &b->tiles;
  struct nnd_int8_ending e;
  nnd_int8_begin_end(vectors, b, &e);
  nnd_amx_multiply(strips, vectors, kind, t, vectors == 1 ? nnd_int8_end_one : nnd_int8_end_two, &e,
                   nnd_ceil_div(b->num_ended * t->height * vectors, 4 * t->taps * t->count));
}

#define NND_AMX_DEFINE(strips, vectors)                                                                                \
  NND_AMX_TARGET static void nnd_amx_##strips##_##vectors(const struct nnd_int8_blocks *b) {                           \
    if (b->is_signed)                                                                                                  \
      nnd_amx_bytes(strips, vectors, NND_AMX_INT8, b);                                                                 \
    else                                                                                                               \
      nnd_amx_bytes(strips, vectors, NND_AMX_UINT8, b);                                                                \
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
  of[b->tiles.strips][b->tiles.vectors - 1](b);
}

#endif
