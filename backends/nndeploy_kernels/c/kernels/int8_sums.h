/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of int8_tile.c for one way to multiply, NND_HOW, whose functions have the attributes NND_TARGET. They call
 *
 *   NND_IN(step)(rows, vectors, is_signed, at, k, weights, sums)   adds what NND_IN_DEPTH k come to
 *   NND_IN_DEPTH                NND_INT8_DEPTH, or twice as many, and then there are also
 *   NND_IN(half)(...)           which adds what half as many come to
 *   NND_IN(turn)(rows, vectors, sums)   sums as rows have them -> as `step` adds to them, those of whole pairs of rows;
 *                               and back
 *   NND_IN_FLIPS(is_signed)     whether `step` takes rows of the other sign, 128 less or more: it is made up for here
 *   NND_IN_TURNS                whether rows of int8 take longer
 *   NND_IN_ROWS                 the most rows whose sums stay in registers
 *   NND_IN_IS_EVEN              whether there are kernels of even rows
 *
 * No guard: it is included once for each way.
 */
#define NND_IN__(name, how) nnd_int8_##name##_##how
#define NND_IN_(name, how) NND_IN__(name, how)
#define NND_IN(name) NND_IN_(name, NND_HOW)

#define NND_IN_IS_DEEP (NND_IN_DEPTH > NND_INT8_DEPTH)
#if NND_IN_IS_DEEP
#define NND_IN_ALL(rows) (((rows) + 1) / 2 * 2) /* of which there are sums */
#else
#define NND_IN_ALL(rows) (rows)
#endif

/* Bytes of sums that are still in registers. */
NND_INLINE NND_TARGET void NND_IN(end)(int rows, int vectors, const nnd_vu *sums, const struct nnd_int8_job *j) {
  const struct nnd_int8_end e = *j->end;
  const struct nnd_int8_ended t = *j->ended;
  const int each = 4 / vectors;
  vf factors[NND_PANEL], bias[NND_PANEL];
  nnd_int8_load_columns(&t, vectors, factors, bias);
  NND_UNROLL
  for (int r = 0; r < rows; r += each) {
    vf x[4];
    NND_UNROLL
    for (int i = 0; i < 4; i++) {
      const int at = r * vectors + i, v = i % vectors;
      x[i] = nnd_splat(0.0f);
      if (at < rows * vectors) x[i] = __builtin_convertvector((vi)sums[at], vf) * factors[v] + bias[v];
    }
    nnd_int8_store_rows(&e, &t, x, vectors, r, (int)nnd_min(each, rows - r));
  }
}

/* Where sums begin. */
NND_INLINE NND_TARGET void NND_IN(begin)(int rows, int vectors, int is_signed, const struct nnd_int8_job *j,
                                         nnd_vu *sums) {
  NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    nnd_vu begin = {0};
    if (j->first) begin += *(const nnd_vu_any *)(j->first + v * NND_LANES);
    if (NND_IN_FLIPS(is_signed)) {
      const nnd_vu lost = *(const nnd_vu_any *)(j->column_sums + v * NND_LANES) * 128;
      begin += is_signed ? -lost : lost;
    }
    NND_UNROLL
    for (int r = 0; r < NND_IN_ALL(rows); r++) sums[r * vectors + v] = begin;
  }
#if NND_IN_IS_DEEP
  NND_IN(turn)(rows, vectors, sums);
#endif
}

NND_INLINE NND_TARGET void NND_IN(finish)(int rows, int vectors, nnd_vu *sums, const struct nnd_int8_job *j) {
#if NND_IN_IS_DEEP
  NND_IN(turn)(rows, vectors, sums);
#endif
  if (j->end && vectors != 3) {
    NND_IN(end)(rows, vectors, sums, j);
    return;
  }
  NND_UNROLL
  for (int r = 0; r < rows; r++) NND_UNROLL
  for (int v = 0; v < vectors; v++) *(nnd_vu_any *)(j->sums + r * j->sums_row + v * NND_LANES) = sums[r * vectors + v];
}

NND_INLINE NND_TARGET void NND_IN(tile)(int rows, int vectors, int is_signed, const struct nnd_int8_job *j) {
  const int each = NND_IN_ALL(rows) * vectors;
  const int split = rows == 1                      ? 4 / NND_IN_ALL(1)
                    : 2 * each <= NND_ACCUMULATORS ? 2
                                                   : 1; /* or few sums wait for others */
  nnd_vu sums[4 * NND_IN_ALL(NND_INT8_ROWS) * NND_PANEL];
  NND_IN(begin)(rows, vectors, is_signed, j, sums);
  NND_UNROLL
  for (int i = each; i < split * each; i++) sums[i] = (nnd_vu){0};
  const int8_t *weights = j->weights;
  const nnd_size step = vectors * NND_LANES * NND_IN_DEPTH, whole = j->k / NND_IN_DEPTH * NND_IN_DEPTH;
  for (nnd_size tap = 0; tap < j->taps; tap++) {
    const uint8_t *at[NND_INT8_ROWS];
    NND_UNROLL
    for (int r = 0; r < rows; r++) at[r] = j->rows[tap * j->tap_rows + r];
    nnd_size k = 0;
    if (split > 1) NND_NO_UNROLL
    for (; k + split * NND_IN_DEPTH <= whole; k += split * NND_IN_DEPTH) {
      NND_UNROLL
      for (int s = 0; s < split; s++)
        NND_IN(step)(rows, vectors, is_signed, at, k + s * NND_IN_DEPTH, weights + s * step, sums + s * each);
      if (rows == 1) NND_UNROLL
      for (int i = 0; i < split * vectors * NND_LANES * NND_IN_DEPTH; i += NND_LINE_BYTES)
        __builtin_prefetch(weights + NND_INT8_AHEAD + i, 0, 3);
      weights += split * step;
    }
    NND_NO_UNROLL
    for (; k < whole; k += NND_IN_DEPTH, weights += step) NND_IN(step)(rows, vectors, is_signed, at, k, weights, sums);
    if (k < j->k) {
      uint8_t last[NND_INT8_ROWS * NND_IN_DEPTH];
      const int is_half = NND_IN_IS_DEEP && j->k - k <= NND_INT8_DEPTH;
      if (!is_half || j->k - k < NND_INT8_DEPTH) {
        nnd_int8_copy_last(rows, NND_IN_DEPTH, j->rows + tap * j->tap_rows, k, j->k, last);
        NND_UNROLL
        for (int r = 0; r < rows; r++) at[r] = last + r * NND_IN_DEPTH;
        k = 0;
      }
#if NND_IN_IS_DEEP
      if (is_half)
        NND_IN(half)(rows, vectors, is_signed, at, k, weights, sums);
      else
#endif
        NND_IN(step)(rows, vectors, is_signed, at, k, weights, sums);
      weights += is_half ? step / 2 : step;
    }
  }
  NND_UNROLL
  for (int i = each; i < split * each; i++) sums[i % each] += sums[i];
  NND_IN(finish)(rows, vectors, sums, j);
}

NND_INLINE void NND_IN(point)(int rows, nnd_size step, const uint8_t **third, const uint8_t **at) {
  NND_UNROLL
  for (int i = 0; i < (rows + 2) / 3; i++)
    __asm__("" : "+r"(third[i])); /* or there would be a sum, or a pointer, for each row */
  NND_UNROLL
  for (int r = 0; r < rows; r++) at[r] = third[r / 3] + r % 3 * step;
}

/* Rows that lie evenly: every third has a pointer, and the others are reached by the step and twice of it, as addresses
 * are made; or pointers would not fit the registers. */
NND_INLINE NND_TARGET void NND_IN(even)(int rows, int vectors, int is_signed, const struct nnd_int8_job *j) {
  nnd_vu sums[NND_INT8_ROWS * NND_PANEL];
  NND_IN(begin)(rows, vectors, is_signed, j, sums);
  const int8_t *weights = j->weights;
  const nnd_size k = j->k, step = j->step;
  for (nnd_size tap = 0; tap < j->taps; tap++) {
    const uint8_t *third[(NND_INT8_ROWS + 2) / 3], *at[NND_INT8_ROWS];
    third[0] = j->rows[tap * j->tap_rows];
    NND_UNROLL
    for (int i = 1; i < (rows + 2) / 3; i++) third[i] = third[i - 1] + 3 * step;
    const uint8_t *const end = third[0] + k / NND_IN_DEPTH * NND_IN_DEPTH;
    NND_NO_UNROLL
    for (; third[0] < end; weights += vectors * NND_LANES * NND_IN_DEPTH) {
      NND_IN(point)(rows, step, third, at);
      NND_IN(step)(rows, vectors, is_signed, at, 0, weights, sums);
      NND_UNROLL
      for (int i = 0; i < (rows + 2) / 3; i++) third[i] += NND_IN_DEPTH;
    }
#if NND_IN_IS_DEEP
    if (k % NND_IN_DEPTH) {
      NND_IN(point)(rows, step, third, at);
      NND_IN(half)(rows, vectors, is_signed, at, 0, weights, sums);
      weights += vectors * NND_LANES * NND_INT8_DEPTH;
    }
#endif
  }
  NND_IN(finish)(rows, vectors, sums, j);
}

NND_INLINE NND_TARGET void NND_IN(some)(int rows, int vectors, const struct nnd_int8_job *j) {
  if (j->is_signed)
    NND_IN(tile)(rows, vectors, 1, j);
  else
    NND_IN(tile)(rows, vectors, 0, j);
}

/* More rows than there are registers for are done in two. */
static const struct nnd_int8_kernels NND_IN(kernels);
#define NND_IN_DEFINE(count, wide, how)                                                                                \
  static NND_TARGET __attribute__((noinline)) void NND_IN_(wide##_##count, how)(const struct nnd_int8_job *job) {      \
    if ((count) <= NND_IN_ROWS)                                                                                        \
      NND_IN(some)(count, wide, job);                                                                                  \
    else                                                                                                               \
      nnd_int8_in_two(&NND_IN(kernels), count, wide, job);                                                             \
  }
#define NND_IN_LISTED(rows, vectors, how) NND_IN_(vectors##_##rows, how),

NND_EACH_INT8_ROW(NND_IN_DEFINE, 1, NND_HOW)
NND_EACH_INT8_ROW(NND_IN_DEFINE, 2, NND_HOW)
#if NND_PANEL == 4
NND_EACH_INT8_ROW(NND_IN_DEFINE, 3, NND_HOW)
NND_EACH_INT8_ROW(NND_IN_DEFINE, 4, NND_HOW)
#endif

#define NND_IN_DEFINE_EVEN(count, wide, how)                                                                           \
  static NND_TARGET __attribute__((noinline)) void NND_IN_(even_##wide##_##count, how)(const struct nnd_int8_job *j) { \
    if ((count) < NND_INT8_EVEN_ROWS) return;                                                                          \
    if (j->is_signed)                                                                                                  \
      NND_IN(even)(count, wide, 1, j);                                                                                 \
    else                                                                                                               \
      NND_IN(even)(count, wide, 0, j);                                                                                 \
  }
#define NND_IN_LISTED_EVEN(rows, vectors, how) NND_IN_(even_##vectors##_##rows, how),
#if NND_IN_IS_EVEN
NND_EACH_INT8_ROW(NND_IN_DEFINE_EVEN, 1, NND_HOW)
NND_EACH_INT8_ROW(NND_IN_DEFINE_EVEN, 2, NND_HOW)
#if NND_PANEL == 4
NND_EACH_INT8_ROW(NND_IN_DEFINE_EVEN, 3, NND_HOW)
NND_EACH_INT8_ROW(NND_IN_DEFINE_EVEN, 4, NND_HOW)
#endif
#endif

#define NND_QUOTED_(how) #how
#define NND_QUOTED(how) NND_QUOTED_(how)
static const struct nnd_int8_kernels NND_IN(kernels) = {NND_QUOTED(NND_HOW),
                                                        NND_IN_DEPTH,
                                                        NND_IN_TURNS,
                                                        {
                                                            {0},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED, 1, NND_HOW)},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED, 2, NND_HOW)},
#if NND_PANEL == 4
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED, 3, NND_HOW)},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED, 4, NND_HOW)},
#endif
                                                        },
#if NND_IN_IS_EVEN
                                                        {
                                                            {0},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED_EVEN, 1, NND_HOW)},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED_EVEN, 2, NND_HOW)},
#if NND_PANEL == 4
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED_EVEN, 3, NND_HOW)},
                                                            {0, NND_EACH_INT8_ROW(NND_IN_LISTED_EVEN, 4, NND_HOW)},
#endif
                                                        }
#else
                                                        {{0}}
#endif
};

#undef NND_IN__
#undef NND_IN_
#undef NND_IN
#undef NND_IN_DEFINE
#undef NND_IN_DEFINE_EVEN
#undef NND_IN_LISTED_EVEN
#undef NND_IN_IS_EVEN
#undef NND_IN_LISTED
#undef NND_QUOTED_
#undef NND_QUOTED
#undef NND_HOW
#undef NND_TARGET
#undef NND_IN_FLIPS
#undef NND_IN_ROWS
#undef NND_IN_TURNS
#undef NND_IN_DEPTH
#undef NND_IN_IS_DEEP
#undef NND_IN_ALL
