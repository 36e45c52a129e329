/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of a product of plain matrices, and how its sums end in the output.
 */
#ifndef NND_GEMM_END_H
#define NND_GEMM_END_H

#include "base/step.h"
#include "kernels/masked.h"

/* One tile. Of a packed row r the k from b * NND_GEMM_K on lie at in + (b * rows + r) * NND_GEMM_K. */
struct nnd_gemm_tile {
  const float *in, *weights;
  nnd_size in_row;      /* floats from row to row, where rows lie apart */
  nnd_size step, panel; /* floats of the weights from one k to the next, from one panel or column to the next */
  nnd_size k, columns;  /* columns that are stored */
  const float *bias, *numbers, *residual;
  float *out;
  nnd_size out_row;
  int adds;                  /* to what the output holds */
  const struct nnd_end *end; /* null where they will */
  const char *next;          /* to fetch while this is computed, `next_step` bytes for each k */
  nnd_size next_step, ahead; /* of several panels: floats from what is read to what is fetched */
  float *packed;             /* where a kernel that packs what it reads of a panel puts it */
};

/* Ends sums, [row][vector], by a program. */
NND_NOINLINE void nnd_gemm_program(const struct nnd_gemm_tile *t, int rows, int vectors, vf *sums) {
  vf results[NND_RESULTS * NND_AT_ONCE], added[NND_AT_ONCE], numbers[NND_AT_ONCE];
  const vf zero = nnd_splat(0.0f);
  const int is_added = t->residual != NULL, is_numbered = t->numbers != NULL;
  added[0] = numbers[0] = zero;
  for (int begin = 0; begin < rows * vectors; begin += NND_AT_ONCE) {
    const int some = (int)nnd_min(NND_AT_ONCE, rows * vectors - begin);
    for (int i = 0; (is_added || is_numbered) && i < some; i++) {
      const nnd_size r = (begin + i) / vectors, c = (begin + i) % vectors * NND_LANES;
      const nnd_size count = nnd_min(NND_LANES, t->columns - c);
      if (is_added) added[i] = nnd_load_first(t->residual + r * t->out_row + c, count);
      if (is_numbered) numbers[i] = nnd_load_first(t->numbers + c, count);
    }
    const struct nnd_source operands[NND_OPERANDS] = {
        {sums + begin, 1}, {added, is_added}, {numbers, is_numbered}, {&zero, 0}};
    nnd_program_put(t->end->program, operands, some, results, (float *)(sums + begin));
  }
}

/* Ends sums that lie in memory, and stores them. */
NND_NOINLINE void nnd_gemm_finish(const struct nnd_gemm_tile *t, int rows, int vectors, vf *sums) {
  const int kind = t->end ? t->end->kind : NND_END_PLAIN;
  const int adds = t->end && t->end->adds;
  for (int i = 0; t->adds && i < rows * vectors; i++) {
    const nnd_size c = i % vectors * NND_LANES;
    sums[i] += nnd_load_first(t->out + i / vectors * t->out_row + c, t->columns - c);
  }
  if (kind == NND_END_PROGRAM) nnd_gemm_program(t, rows, vectors, sums);
  const int is_done = kind == NND_END_PROGRAM && !adds && t->columns == vectors * NND_LANES;
  for (int i = 0, r = 0; is_done && r < rows; r++)
    for (int v = 0; v < vectors; v++, i++) nnd_store_any(t->out + r * t->out_row + v * NND_LANES, sums[i]);
  for (int r = 0; !is_done && r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      const nnd_size at = r * t->out_row + v * NND_LANES, count = nnd_min(NND_LANES, t->columns - v * NND_LANES);
      vf sum = sums[r * vectors + v];
      if (count <= 0) break;
      if (adds) sum += nnd_load_first(t->residual + at, count);
      if (kind != NND_END_PLAIN && kind != NND_END_PROGRAM) {
        const vf line = sum * t->end->scale + t->end->shift;
        const vf bounded = nnd_at_most(nnd_splat(t->end->high), nnd_at_least(nnd_splat(t->end->low), line));
        sum = kind == NND_END_GATED ? sum * bounded * t->end->factor : bounded;
      }
      nnd_store_first(t->out + at, sum, count);
    }
}

/* The common ends are done in registers; a copy for the others: an address would take the sums to memory everywhere. */
NND_INLINE void nnd_gemm_end(const struct nnd_gemm_tile *t, int rows, int vectors, const vf *sums) {
  const int kind = t->end ? t->end->kind : NND_END_PLAIN, is_full = t->columns == vectors * NND_LANES;
  const float *residual = t->end && t->end->adds ? t->residual : NULL;
  if (is_full && kind == NND_END_PLAIN && !(residual && t->adds)) { /* what short sums are worth */
    const float *more = t->adds ? t->out : residual;
    NND_UNROLL
    for (int r = 0; r < rows; r++) NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const nnd_size at = r * t->out_row + v * NND_LANES;
      nnd_store_any(t->out + at, more ? sums[r * vectors + v] + nnd_load_any(more + at) : sums[r * vectors + v]);
    }
    return;
  }
  if (is_full && kind <= NND_END_LINE && !t->adds) {
    const float infinity = __builtin_inff();
    const int is_line = kind == NND_END_LINE, is_plain = kind == NND_END_PLAIN;
    const vf scale = nnd_splat(is_line ? t->end->scale : 1.0f), shift = nnd_splat(is_line ? t->end->shift : -0.0f);
    const vf low = nnd_splat(is_plain ? -infinity : t->end->low), high = nnd_splat(is_plain ? infinity : t->end->high);
    NND_UNROLL
    for (int r = 0; r < rows; r++) NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const nnd_size at = r * t->out_row + v * NND_LANES;
      const vf sum = residual ? sums[r * vectors + v] + nnd_load_any(residual + at) : sums[r * vectors + v];
      nnd_store_any(t->out + at, nnd_at_most(high, nnd_at_least(low, sum * scale + shift)));
    }
    return;
  }
  vf kept[NND_ACCUMULATORS];
  NND_UNROLL
  for (int i = 0; i < rows * vectors; i++) kept[i] = sums[i];
  nnd_gemm_finish(t, rows, vectors, kept);
}

#endif
