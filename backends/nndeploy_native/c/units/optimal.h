/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimal composition along M: the runs of blocks of least cost. The dynamic program is filled once for a set of costs;
 * a table is then read off it. Long first shapes are whole blocks and a remainder, so that they share tables.
 */
#ifndef NND_UNITS_OPTIMAL_H
#define NND_UNITS_OPTIMAL_H

#include "compose.h"
#include "costs.h"

#define NND_PLANNED (9 * NND_UNIT_ROWS) /* first shapes from here on share tables by their remainder */

struct nnd_program {
  uint8_t first[NND_PLANNED]; /* rows of the first block, whose panels come from memory */
  uint8_t next[NND_PLANNED];  /* rows of the first of the blocks that follow it */
  uint8_t one[NND_MOST_UNIT_ROWS + 1], of_many[NND_MOST_UNIT_ROWS + 1]; /* family of a single block, of one of many */
};

/* The family of least cost for blocks of `rows`. */
NND_INLINE int nnd_best_unit(const struct nnd_costs *costs, int streamed, int rows) {
  int best = NND_WIDE_1;
  for (int unit = NND_WIDE_1; unit <= NND_WIDE_4; unit++) {
    const float cost = costs->of[streamed][unit][rows];
    if (cost > 0 && cost < costs->of[streamed][best][rows]) best = unit;
  }
  return best;
}

/* The rows of one more block, which with what `rest` says of the others cost least; 1% is worth a block less. */
NND_INLINE int nnd_best_block(const struct nnd_costs *costs, const struct nnd_program *program, int streamed, int m,
                              const float *rest, float *least) {
  int best = 0;
  *least = 1e30f;
  for (int rows = (int)nnd_min(NND_UNIT_ROWS, m); rows >= 1; rows--) {
    const int unit = streamed && rows == m ? program->one[rows] : program->of_many[rows];
    const float cost = rest[m - rows] + costs->of[streamed][unit][rows];
    if (cost >= *least * 0.99f) continue;
    *least = cost;
    best = rows;
  }
  return best;
}

static void nnd_fill_program(const struct nnd_costs *costs, struct nnd_program *program) {
  float rest[NND_PLANNED] = {0}, all;
  memset(program, 0, sizeof *program);
  for (int rows = 1; rows <= NND_UNIT_ROWS; rows++) {
    program->one[rows] = (uint8_t)nnd_best_unit(costs, 1, rows);
    program->of_many[rows] = (uint8_t)nnd_best_unit(costs, 0, rows);
  }
  for (int m = 1; m < NND_PLANNED; m++) {
    program->next[m] = (uint8_t)nnd_best_block(costs, program, 0, m, rest, &rest[m]);
    program->first[m] = (uint8_t)nnd_best_block(costs, program, 1, m, rest, &all);
  }
}

/* Blocks of as equal rows as can be. */
NND_INLINE int nnd_equal_runs(const struct nnd_program *program, nnd_size m, struct nnd_run *runs) {
  const nnd_size blocks = nnd_ceil_div(m, NND_UNIT_ROWS), rows = m / blocks, longer = m % blocks;
  int count = 0;
  if (longer) runs[count++] = (struct nnd_run){rows + 1, longer, program->of_many[rows + 1]};
  runs[count++] = (struct nnd_run){rows, blocks - longer, program->of_many[rows]};
  return count;
}

/* The runs that cover m < NND_PLANNED, longest blocks first; equal ones where these are of more than `most` kinds. */
NND_INLINE int nnd_runs_of(const struct nnd_program *program, nnd_size m, struct nnd_run *runs, int most) {
  const int only = program->first[m] == m;
  const nnd_size all = m;
  int count = 0;
  for (int rows = program->first[m]; m > 0; rows = program->next[m]) {
    int i = 0;
    while (i < count && runs[i].rows != rows) i++;
    if (i == most) return nnd_equal_runs(program, all, runs);
    if (i == count) runs[count++] = (struct nnd_run){rows, 0, only ? program->one[rows] : program->of_many[rows]};
    runs[i].count++;
    m -= rows;
  }
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && runs[j].rows > runs[j - 1].rows; j--) {
      const struct nnd_run swapped = runs[j];
      runs[j] = runs[j - 1];
      runs[j - 1] = swapped;
    }
  return count;
}

/* The first of the shapes that share the table of m, or the one that the table is of. */
NND_INLINE nnd_size nnd_base_of(nnd_size m, nnd_size columns, nnd_size k) {
  const int only = nnd_only_unit(k, columns), most = only ? nnd_most_rows(only, columns) : 0;
  if (only) return most * (m > most ? 2 : 1);
  return m < NND_PLANNED ? m : NND_PLANNED + (m - NND_PLANNED) % NND_UNIT_ROWS;
}

static void nnd_compose_optimal(const struct nnd_program *program, const struct nnd_form *form, nnd_size m,
                                struct nnd_table *table) {
  const nnd_size base = nnd_base_of(m, form->n, form->k);
  const nnd_size rest = base < NND_PLANNED ? base : base % NND_UNIT_ROWS + NND_UNIT_ROWS;
  struct nnd_run runs[NND_SEGMENTS + 1];
  int count = nnd_only_unit(form->k, form->n) ? -1 : nnd_runs_of(program, rest, runs + 1, NND_SEGMENTS);
  const int has_whole = count > 0 && runs[1].rows == NND_UNIT_ROWS;
  if (count < 0 || (base != rest && !has_whole && count == NND_SEGMENTS)) { /* one family, or too many kinds of blocks */
    nnd_compose_quick(form, m, table);
    return;
  }
  struct nnd_run *begin = runs + 1;
  if (base != rest) {
    const struct nnd_run whole = {NND_UNIT_ROWS, (base - rest) / NND_UNIT_ROWS, NND_WIDE_1};
    if (has_whole) begin->count += whole.count;
    else {
      *--begin = whole;
      count++;
    }
  }
  nnd_table_of_runs(form, base, begin, count, base == rest ? NND_EXACT : NND_PART, table);
}

#endif
