/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise chains and units along the last axis, at any first shape: their tables, made once when opened, and a call.
 *
 * The tables of a chain: N up to 1, 2, 4 ... NND_NARROW (blocks of several rows), and beyond (a row at a time). Those of a
 * unit along the last axis: N up to 1, 2 ... NND_ALONG_VECTORS vectors, and beyond.
 */
#ifndef NND_UNITS_ROWS_H
#define NND_UNITS_ROWS_H

#include <stdlib.h>

#include "along.h"
#include "chain.h"

#define NND_NARROW_LOG 8 /* of floats: longer rows are walked one by one. AMD Zen 4, 2026-11-22 */
#define NND_NARROW (1 << NND_NARROW_LOG)
#define NND_ROW_BUCKETS 10 /* NND_NARROW_LOG + 2 */

struct nnd_operation {
  int32_t unit, operand; /* of a second operand: its number, from 0 */
};

struct nnd_rows {
  int is_along;
  struct nnd_table table[2][NND_ROW_BUCKETS]; /* [0] overlaps tails, [1] does not: in place */
};

NND_INLINE int nnd_row_bucket(const struct nnd_rows *rows, nnd_size n) {
  if (rows->is_along) return (int)nnd_min(nnd_ceil_div(n, NND_LANES), NND_ALONG_VECTORS + 1);
  if (n > NND_NARROW) return NND_NARROW_LOG + 1;
  return n <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)n - 1);
}

/* The table of a bucket; of a chain every row goes on with the next. */
static void nnd_compose_rows(const struct nnd_operation *operations, int count, int is_along, int in_place, int bucket,
                             struct nnd_table *table) {
  const int is_long = bucket == (is_along ? NND_ALONG_VECTORS : NND_NARROW_LOG) + 1;
  const int32_t columns = is_along ? (is_long ? NND_ALONG_VECTORS + 1 : bucket) * NND_LANES
                          : is_long ? NND_RUN_FLOATS
                                    : 1 << bucket;
  const int32_t below = is_along ? columns - NND_LANES : is_long ? 0 : columns / 2;
  const int32_t block = is_along || is_long ? 1 : NND_RUN_FLOATS / columns;
  *table = (struct nnd_table){
      .header = {.magic = NND_TABLE_MAGIC, .version = NND_TABLE_VERSION, .rows = (uint16_t)count, .axes = 3,
                 .range = is_long ? NND_WHOLE : NND_TAIL, .modulus = (uint16_t)(columns - below),
                 .first = {1, block, columns}}};
  for (int i = 0; i < count; i++)
    table->row[i] = (struct nnd_table_row){
        .unit = (uint16_t)operations[i].unit, .repeat = 1, .length = {1, block, columns},
        .tail = is_along   ? is_long ? NND_VARIABLE : NND_VARIABLE_TAIL
                : in_place ? NND_VARIABLE
                           : NND_OVERLAP,
        .flags = (uint8_t)((i + 1 < count ? NND_GOES_ON : 0) | (is_long ? NND_GROWS : 0) |
                           operations[i].operand << NND_EPILOGUE_SHIFT)};
  table->header.bytes = (uint32_t)(sizeof table->header + (size_t)count * sizeof(struct nnd_table_row));
}

static struct nnd_rows *nnd_rows_open(const struct nnd_operation *operations, int count) {
  struct nnd_rows *rows = calloc(1, sizeof *rows);
  if (!rows) return 0;
  rows->is_along = operations[0].unit >= NND_SOFTMAX;
  for (int in_place = 0; in_place < 2; in_place++)
    for (int bucket = rows->is_along; bucket < NND_ROW_BUCKETS; bucket++)
      nnd_compose_rows(operations, count, rows->is_along, in_place, bucket, &rows->table[in_place][bucket]);
  return rows;
}

/* The table of a first shape whose last axis has n; `single`: its rows of output are one, or do not follow each other. */
NND_INLINE const struct nnd_table *nnd_rows_table(const struct nnd_rows *rows, nnd_size n, int single, int in_place) {
  const int bucket = single && !rows->is_along ? NND_NARROW_LOG + 1 : nnd_row_bucket(rows, n);
  return &rows->table[in_place][bucket];
}

/* Runs by a table, or by the one of `rows`. Returns an nnd_placing; nothing is written where it is not NND_PLACED. */
static int nnd_rows_run(const struct nnd_rows *rows, const struct nnd_table *table, const int64_t *tensors, int count,
                        float epsilon) {
  struct nnd_places places;
  int error = nnd_read_places(tensors, count, rows->is_along, rows->is_along, &places);
  if (error == NND_OUT_IS_STRIDED && !rows->is_along) /* a last axis of one element, and gaps behind it */
    error = nnd_read_places(tensors, count, 0, 1, &places);
  if (error || !places.size[0] || !places.size[1] || !places.size[2]) return error;
  const struct nnd_place *out = &places.at[0];
  if (!table)
    table = nnd_rows_table(rows, places.size[2], places.size[1] == 1 || out->stride[1] != places.size[2],
                           places.in_place);
  if (!rows->is_along) {
    nnd_chain_run(table, &places);
    return 0;
  }
  int strided = 0;
  for (int i = 1; i < count; i++) strided |= places.at[i].stride[2] != 1 && places.size[2] > 1;
  float *memory = strided ? malloc(3 * (size_t)places.size[2] * sizeof(float)) : 0;
  if (strided && !memory) return NND_NO_MEMORY;
  nnd_along_run(table, &places, epsilon, memory);
  free(memory);
  return 0;
}

#endif
