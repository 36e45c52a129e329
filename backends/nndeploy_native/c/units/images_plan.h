/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of image units: a length (vectors of pixels, or rows of planes) -> blocks along it.
 *
 * Quick: blocks of one length and what is left. Optimal: of least measured cost, by a dynamic program that is filled
 * once when an operator is opened. From NND_BLOCKS_PLANNED on, lengths are whole blocks of the cheapest length and a
 * rest, so that they share tables.
 */
#ifndef NND_UNITS_IMAGES_PLAN_H
#define NND_UNITS_IMAGES_PLAN_H

#include "images_tile.h"
#include "table.h"

#define NND_BLOCK_LENGTHS 14  /* of a block, at most */
#define NND_BLOCKS_PLANNED 48 /* lengths below have a table of their own */
#define NND_BLOCK_KINDS 3     /* lengths of blocks in one table */

enum nnd_image_unit_number {
  NND_PACK_PLANES = 96,
  NND_TILE = 96, /* + vectors of pixels, 1 to 4 */
  NND_DEPTHWISE = 101,
  NND_POOL_MAX = 102,
  NND_POOL_MEAN = 103,
  NND_COLUMNS = 104
};

/* Blocks of least cost for each length. The unit of a block is `unit`, or with `by_length`, unit + length. */
struct nnd_plan {
  int unit, by_length, most, whole; /* whole: the length that costs least for each element */
  uint8_t length[NND_BLOCKS_PLANNED];
  float cost[NND_BLOCKS_PLANNED], of_whole; /* of all blocks of a length, of one whole block more */
};

static void nnd_fill_plan(const float *cost, int most, struct nnd_plan *plan) {
  float *rest = plan->cost;
  plan->most = most;
  plan->whole = 1;
  for (int length = 2; length <= most; length++)
    if (cost[length] / (float)length <= cost[plan->whole] / (float)plan->whole * 1.005f) plan->whole = length;
  plan->of_whole = cost[plan->whole];
  for (int n = 1; n < NND_BLOCKS_PLANNED; n++) {
    rest[n] = 1e30f;
    for (int length = (int)nnd_min(most, n); length >= 1; length--) {
      const float all = rest[n - length] + cost[length];
      if (all >= rest[n] * 0.995f) continue;
      rest[n] = all;
      plan->length[n] = (uint8_t)length;
    }
  }
}

/* The length that the table of n is made for: n itself, or the first of those that share the table. */
NND_INLINE nnd_size nnd_plan_base(const struct nnd_plan *plan, nnd_size n) {
  return n < NND_BLOCKS_PLANNED ? n : NND_BLOCKS_PLANNED + (n - NND_BLOCKS_PLANNED) % plan->whole;
}

/* What the blocks of a length cost. */
NND_INLINE float nnd_plan_cost(const struct nnd_plan *plan, nnd_size n) {
  const nnd_size over = n < NND_BLOCKS_PLANNED ? 0 : (n - NND_BLOCKS_PLANNED) / plan->whole + 1;
  return plan->cost[n - over * plan->whole] + (float)over * plan->of_whole;
}

struct nnd_block_run {
  nnd_size length, count;
};

/* The blocks that cover the length `base` of a table, whole ones first where they grow, else the longest first. */
static int nnd_block_runs(const struct nnd_plan *plan, nnd_size base, int quick, struct nnd_block_run *runs) {
  const nnd_size whole = plan->whole;
  const int grows = base >= NND_BLOCKS_PLANNED;
  nnd_size of_length[NND_BLOCK_LENGTHS + 1] = {0}, left = base;
  if (quick || grows) {
    const nnd_size blocks = quick ? base / whole : (base - NND_BLOCKS_PLANNED / 2) / whole;
    of_length[whole] = blocks;
    left -= blocks * whole;
  }
  int kinds = 0;
  if (quick && left) of_length[left]++;
  for (; !quick && left > 0; left -= plan->length[left]) of_length[plan->length[left]]++;
  if (grows) runs[kinds++] = (struct nnd_block_run){whole, of_length[whole]};
  for (int length = plan->most; length >= 1; length--) {
    if (!of_length[length] || (grows && length == whole)) continue;
    if (kinds == NND_BLOCK_KINDS) return nnd_block_runs(plan, base, 1, runs);
    runs[kinds++] = (struct nnd_block_run){length, of_length[length]};
  }
  return kinds;
}

NND_INLINE struct nnd_table_row *nnd_image_row(struct nnd_table *table, int unit, nnd_size length, nnd_size channels,
                                               nnd_size k) {
  struct nnd_table_row *row = &table->row[table->header.rows++];
  *row = (struct nnd_table_row){
      .unit = (uint16_t)unit, .repeat = 1, .length = {(int32_t)length, (int32_t)channels, (int32_t)k}};
  return row;
}

/* Rows of the blocks that cover the length `base` of a table. */
static void nnd_add_blocks(const struct nnd_plan *plan, nnd_size base, int quick, int activation, nnd_size channels,
                           nnd_size k, struct nnd_table *table) {
  struct nnd_block_run runs[NND_BLOCK_KINDS];
  const int count = nnd_block_runs(plan, base, quick, runs);
  nnd_size offset = 0;
  for (int i = 0; i < count; i++) {
    const int unit = plan->unit + (plan->by_length ? (int)runs[i].length : 0), last = i + 1 == count;
    struct nnd_table_row *row = nnd_image_row(table, unit, runs[i].length, channels, k);
    row->offset[0] = (int32_t)offset;
    row->repeat = (uint32_t)runs[i].count;
    row->tail = last || (!plan->by_length && runs[i].length < plan->most) ? NND_VARIABLE : NND_NO_TAIL;
    row->flags = (uint8_t)(activation << NND_EPILOGUE_SHIFT);
    if (!last) row->flags |= NND_GOES_ON;
    if (i == 0 && base >= NND_BLOCKS_PLANNED) row->flags |= NND_GROWS;
    offset += runs[i].length * runs[i].count;
  }
}

/* The header of a table whose blocks, of `plan`, cover `base` of axis 0. */
NND_INLINE void nnd_image_header(const struct nnd_plan *plan, nnd_size base, nnd_size channels, nnd_size k,
                                 struct nnd_table *table) {
  const int grows = base >= NND_BLOCKS_PLANNED;
  table->header = (struct nnd_table_header){.magic = NND_TABLE_MAGIC, .version = NND_TABLE_VERSION, .axes = 3,
                                            .first = {(int32_t)base, (int32_t)channels, (int32_t)k},
                                            .range = grows ? NND_PART : NND_EXACT,
                                            .modulus = (uint16_t)(grows ? plan->whole : 0)};
}
NND_INLINE void nnd_end_image_table(struct nnd_table *table) {
  table->header.bytes = (uint32_t)(sizeof table->header + table->header.rows * sizeof(struct nnd_table_row));
}

#endif
