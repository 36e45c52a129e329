/* SPDX-License-Identifier: Apache-2.0
 *
 * Composition: a first shape -> a table. Quick: one unit size. Optimal: blocks of several sizes along M, of least cost
 * by the measured cost of each number of rows; a dynamic program that is filled once for a product.
 */
#ifndef NND_UNITS_COMPOSE_H
#define NND_UNITS_COMPOSE_H

#include "matmul.h"

/* What of a product does not change with M. */
struct nnd_form {
  nnd_size n, k; /* of a dynamic form: those of the table that is composed */
  int activation;
  int in_is_strided;      /* not contiguous along K */
  int weights_are_packed; /* constant */
  int weights_are_strided; /* an input that is not contiguous along N */
};

#define NND_FEW_COLUMNS (8 * NND_PANEL_COLUMNS) /* up to here rows are read where they lie: Xeon with AMX, 2026-11-22 */

/* Tiles that are packed at once: with a panel and the next one they stay in the second cache. */
NND_INLINE nnd_size nnd_tiles_at_once(nnd_size k) {
  const nnd_size floats = (1 << 20) / 4 * 3 / 4;
  return nnd_max(4, nnd_min(16, (floats / nnd_max(k, 1) - 2 * NND_PANEL_COLUMNS) / NND_UNIT_ROWS));
}

NND_INLINE struct nnd_table_row *nnd_add_row(struct nnd_table *table, int unit) {
  struct nnd_table_row *row = &table->row[table->header.rows++];
  *row = (struct nnd_table_row){.unit = (uint16_t)unit, .repeat = 1};
  return row;
}

NND_INLINE void nnd_place_row(struct nnd_table_row *row, const nnd_size *offset, const nnd_size *length) {
  for (int axis = 0; axis < 3; axis++) {
    row->offset[axis] = (int32_t)offset[axis];
    row->length[axis] = (int32_t)length[axis];
  }
}

/* A run of blocks of equal rows, and the family that computes them over whole panels. */
struct nnd_run {
  nnd_size rows, count;
  int unit;
};

/* Weights that are packed here: from which column on. */
NND_INLINE nnd_size nnd_packed_from(const struct nnd_form *form, nnd_size blocks) {
  if (form->weights_are_packed) return form->n;
  const int only = nnd_only_unit(form->k, form->n);
  if (form->weights_are_strided || only == NND_DOT || (blocks > 2 && !only)) return 0;
  if (only == NND_THIN) return form->n;
  return form->n / NND_PANEL_COLUMNS * NND_PANEL_COLUMNS;
}

/* Writes the table of some runs of blocks, one after the other along M. The first run grows and the last block gives way
 * as the range says; its modulus is the rows of the block that does. */
static void nnd_table_of_runs(const struct nnd_form *form, nnd_size m, const struct nnd_run *runs, int num_runs,
                              enum nnd_range range, struct nnd_table *table) {
  table->header = (struct nnd_table_header){.magic = NND_TABLE_MAGIC, .version = NND_TABLE_VERSION, .axes = 3,
                                            .first = {(int32_t)m, (int32_t)form->n, (int32_t)form->k}};
  table->header.range = (uint8_t)range;
  table->header.modulus = (uint16_t)(range == NND_EXACT ? 0 : runs[0].rows);
  const int grows = range == NND_WHOLE || range == NND_PART, gives_way = range == NND_WHOLE || range == NND_TAIL;
  const nnd_size whole = form->n - form->n % NND_PANEL_COLUMNS;
  nnd_size blocks = 0;
  for (int i = 0; i < num_runs; i++) blocks += runs[i].count;
  const int dot = runs->unit == NND_DOT, thin = runs->unit == NND_THIN;
  const nnd_size packed_from = nnd_packed_from(form, grows ? blocks + 1 : blocks);
  const int partial = form->n - whole > NND_LANES; /* a last panel of more than a vector: packed, it is like the others */
  const nnd_size main = thin || (partial && (packed_from == 0 || packed_from == form->n)) ? form->n : whole;
  if (packed_from < form->n)
    nnd_place_row(nnd_add_row(table, NND_PACK_WEIGHTS), (nnd_size[]){0, packed_from, 0},
                  (nnd_size[]){0, form->n - packed_from, form->k});
  if (!thin && (form->in_is_strided || (!dot && form->n > NND_FEW_COLUMNS))) {
    struct nnd_table_row *row = nnd_add_row(table, NND_PACK_INPUT);
    nnd_place_row(row, (nnd_size[]){0, 0, 0}, (nnd_size[]){m, 0, form->k});
    row->repeat = (uint32_t)nnd_tiles_at_once(form->k);
  }
  for (int zone = 0; zone < 2; zone++) {
    const nnd_size begin = zone ? main : 0, end = zone ? form->n : main;
    if (begin == end) continue;
    nnd_size at = 0;
    for (int i = 0; i < num_runs; i++) {
      struct nnd_table_row *row = nnd_add_row(table, zone && !dot && !partial ? NND_LANE : runs[i].unit);
      nnd_place_row(row, (nnd_size[]){at, begin, 0}, (nnd_size[]){runs[i].rows, end - begin, form->k});
      row->repeat = (uint32_t)runs[i].count;
      row->flags = (uint8_t)(form->activation << NND_EPILOGUE_SHIFT);
      const int last = i + 1 == num_runs;
      if (runs[i].rows < nnd_most_rows(row->unit, form->n) || (last && gives_way)) row->tail = NND_VARIABLE;
      if (!last) row->flags |= NND_GOES_ON;
      if (i == 0 && grows) row->flags |= NND_GROWS;
      at += runs[i].rows * runs[i].count;
    }
  }
  table->header.bytes = (uint32_t)(sizeof table->header + table->header.rows * sizeof(struct nnd_table_row));
}

/* The table of one unit: whole blocks and one that takes the rest. Two serve every M: up to a block, and beyond. */
static void nnd_compose_quick(const struct nnd_form *form, nnd_size m, struct nnd_table *table) {
  const int only = nnd_only_unit(form->k, form->n), unit = only ? only : NND_WIDE_1;
  const nnd_size most = nnd_most_rows(unit, form->n);
  const struct nnd_run runs[2] = {{most, 1, unit}, {most, 1, unit}};
  const int num_runs = m > most ? 2 : 1;
  nnd_table_of_runs(form, num_runs * most, runs, num_runs, m > most ? NND_WHOLE : NND_TAIL, table);
}

#endif
