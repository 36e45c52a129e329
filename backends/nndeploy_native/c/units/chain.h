/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter of a chain's table: out = f(...f(g(first operand, ...))) over (A, M, N), operands broadcast by strides.
 *
 * A table's block is one row of any length, or several short rows that are then walked as one run of floats. Operands
 * that do not lie as such a run are packed first, block by block: once for all blocks where every block reads the same.
 */
#ifndef NND_UNITS_CHAIN_H
#define NND_UNITS_CHAIN_H

#include "links.h"
#include "places.h"
#include "table.h"

#define NND_RUN_FLOATS 2048 /* of a block: with its packed operands in the first cache */

enum nnd_access { NND_DIRECT = 0, NND_ONE_FLOAT = 1, NND_PACKED_ONCE = 2, NND_PACKED = 3 };

struct nnd_chain {
  const struct nnd_places *places;
  int num_links, overlap, any_packed;
  struct nnd_link link[NND_TABLE_ROWS + 2];
  int place_of[NND_TABLE_ROWS + 2];
  enum nnd_access access[NND_PLACES];
};

/* One pass over `count` floats. */
NND_INLINE void nnd_pass(const struct nnd_chain *chain, int begins_with_one, nnd_size count) {
  nnd_begin_unit *begin = begins_with_one ? nnd_begin_all : nnd_begin_each;
  const struct nnd_link *link = chain->link;
  nnd_size at = 0;
  for (; at + NND_LINK_FLOATS <= count; at += NND_LINK_FLOATS) begin(link, at);
  if (chain->overlap && count > NND_LINK_FLOATS && count - at > NND_LANES) {
    begin(link, count - NND_LINK_FLOATS);
    return;
  }
  for (; at < count; at += NND_LANES) {
    const nnd_size some = nnd_min(NND_LANES, count - at);
    const vf x = begins_with_one ? nnd_splat(*link->place) : nnd_load_first(link->place + at, some, 1.0f);
    link[1].some(link + 1, at, some, x);
  }
}

/* A block of an operand as one run; behind it up to a vector is written. */
static void nnd_pack_run(const struct nnd_place *from, nnd_size a, nnd_size m, nnd_size rows, nnd_size n, float *to) {
  const float *row = from->data + a * from->stride[0] + m * from->stride[1];
  if (from->stride[1] == 0 && rows > 1) { /* one row, and then what is there, doubled */
    nnd_pack_run(from, a, m, 1, n, to);
    for (nnd_size done = n; done < rows * n; done += nnd_min(done, rows * n - done))
      memcpy(to + done, to, (size_t)nnd_min(done, rows * n - done) * sizeof(float));
    return;
  }
  for (nnd_size r = 0; r < rows; r++, row += from->stride[1], to += n) {
    if (from->stride[2] == 0) {
      const vf value = nnd_splat(*row);
      for (nnd_size i = 0; i < n; i += NND_LANES) nnd_store_any(to + i, value);
    } else if (from->stride[2] == 1) memcpy(to, row, (size_t)n * sizeof(float));
    else
      for (nnd_size i = 0; i < n; i++) to[i] = row[i * from->stride[2]];
  }
}

static enum nnd_access nnd_access_of(const struct nnd_place *place, nnd_size rows, nnd_size n) {
  if (place->stride[2] == 0 && (rows == 1 || place->stride[1] == 0)) return NND_ONE_FLOAT;
  if (place->stride[2] == 1 && (rows == 1 || place->stride[1] == n)) return NND_DIRECT;
  return rows > 1 && place->stride[1] == 0 ? NND_PACKED_ONCE : NND_PACKED;
}

/* Row by row, nothing packed. */
static void nnd_chain_rows(struct nnd_chain *chain) {
  const struct nnd_places *p = chain->places;
  for (nnd_size a = 0; a < p->size[0]; a++)
    for (nnd_size m = 0; m < p->size[1]; m++) {
      for (int i = 0; i < chain->num_links; i++) {
        const struct nnd_place *place = &p->at[chain->place_of[i]];
        chain->link[i].place = place->data + a * place->stride[0] + m * place->stride[1];
      }
      nnd_pass(chain, chain->access[1] == NND_ONE_FLOAT, p->size[2]);
    }
}

/* Blocks of `rows` rows, or, where it is 1, of NND_RUN_FLOATS of a row. */
static __attribute__((noinline)) void nnd_chain_blocks(struct nnd_chain *chain, nnd_size rows) {
  const struct nnd_places *p = chain->places;
  float memory[NND_PLACES][NND_RUN_FLOATS + NND_LANES] __attribute__((aligned(64)));
  const nnd_size columns = rows > 1 ? p->size[2] : nnd_min(NND_RUN_FLOATS, p->size[2]);
  for (nnd_size a = 0; a < p->size[0]; a++) {
    for (int i = 1; i < p->count; i++)
      if (chain->access[i] == NND_PACKED_ONCE)
        nnd_pack_run(&p->at[i], a, 0, nnd_min(rows, p->size[1]), p->size[2], memory[i]);
    for (nnd_size m = 0; m < p->size[1]; m += rows)
      for (nnd_size n = 0; n < p->size[2]; n += columns) {
        const nnd_size some_rows = nnd_min(rows, p->size[1] - m), some = nnd_min(columns, p->size[2] - n);
        for (int i = 1; i < p->count; i++)
          if (chain->access[i] == NND_PACKED) {
            struct nnd_place from = p->at[i];
            nnd_bind_axis(&from, 2, from.stride[2], n);
            nnd_pack_run(&from, a, m, some_rows, some, memory[i]);
          }
        for (int i = 0; i < chain->num_links; i++) {
          const struct nnd_place *place = &p->at[chain->place_of[i]];
          const int is_packed = chain->access[chain->place_of[i]] >= NND_PACKED_ONCE;
          chain->link[i].place = is_packed ? memory[chain->place_of[i]]
                                           : place->data + a * place->stride[0] + m * place->stride[1] +
                                                 n * place->stride[2];
        }
        nnd_pass(chain, chain->access[1] == NND_ONE_FLOAT, some_rows * some);
      }
  }
}

/* at[0] of the places has its floats side by side along the last axis. */
static void nnd_chain_run(const struct nnd_table *table, const struct nnd_places *places) {
  struct nnd_chain chain = {.places = places, .num_links = table->header.rows + 2};
  const nnd_size rows = table->row[0].length[1];
  for (int i = 0; i < places->count; i++) {
    chain.access[i] = nnd_access_of(&places->at[i], rows, places->size[2]);
    chain.any_packed |= i > 0 && chain.access[i] >= NND_PACKED_ONCE;
  }
  chain.overlap = table->row[0].tail == NND_OVERLAP;
  chain.place_of[0] = 1;
  for (int i = 0; i < table->header.rows; i++) {
    const struct nnd_table_row *row = &table->row[i];
    const int place = 1 + (row->flags >> NND_EPILOGUE_SHIFT);
    const int one = row->unit >= NND_FIRST_TWO_OPERANDS && chain.access[place] == NND_ONE_FLOAT;
    chain.link[1 + i] = nnd_link_units[row->unit][one];
    chain.place_of[1 + i] = place;
  }
  chain.link[table->header.rows + 1] = (struct nnd_link){nnd_block_store, nnd_some_store, 0};
  if (rows > 1 || chain.any_packed) nnd_chain_blocks(&chain, rows);
  else nnd_chain_rows(&chain);
}

#endif
