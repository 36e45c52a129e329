/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter of a matrix product's table: rows in -> calls of units.
 *
 *   [pack weights]        columns that are packed here, because the weights are an input
 *   [pack input]          `repeat`: tiles that are packed at once, and meet every panel while they are in the cache
 *   products              for each zone of columns the same blocks along M
 *
 * Order: tiles in groups; zone by zone, panel by panel; every tile of the group while the panel is close.
 */
#ifndef NND_UNITS_MATMUL_H
#define NND_UNITS_MATMUL_H

#include "activation.h"
#include "pack.h"
#include "table.h"
#include "units.h"

struct nnd_matmul {
  struct nnd_bound in, weights, out; /* (M, K), (K, N), (M, N); columns of `out` lie side by side */
  const float *packed; /* nnd_pack_weights() of constant weights; null: `weights` are packed where the table says so */
  const float *bias;   /* whole vectors; null: none */
  float *scratch;      /* nnd_matmul_scratch() floats, at 64 bytes */
};

/* Blocks of one length of a group of tiles. */
struct nnd_segment {
  nnd_size rows, count, at; /* first row of M */
  const float *in;          /* the first block's */
  nnd_size in_row, in_tile; /* floats from block to block */
  int kind;                 /* number of the row in each zone */
};

#define NND_SEGMENTS 3 /* rows of a zone, at most */
#define NND_FETCHED_K 2048 /* panels longer than this would push out what they meet: AMD Zen 4, 1 MiB of L2, 2026-11-22 */

/* A table that is being read: the header's range applied to M. */
struct nnd_reading {
  const struct nnd_table_row *pack_weights, *pack_input, *products, *end;
  nnd_size m, n, k, more, less; /* blocks more of rows that grow, rows less of the last block */
  int kinds;                    /* rows of a zone */
};

NND_INLINE nnd_size nnd_block_rows(const struct nnd_reading *t, const struct nnd_table_row *row) {
  return row->length[0] - (row->tail == NND_VARIABLE ? t->less : 0);
}
NND_INLINE nnd_size nnd_block_count(const struct nnd_reading *t, const struct nnd_table_row *row) {
  return row->repeat + (row->flags & NND_GROWS ? t->more : 0);
}

NND_INLINE struct nnd_reading nnd_read_table(const struct nnd_table *table, nnd_size m) {
  const struct nnd_table_header *header = &table->header;
  struct nnd_reading t = {.m = m, .n = header->first[1], .k = header->first[2]};
  const struct nnd_table_row *row = table->row;
  if (m != header->first[0]) {
    const nnd_size over = m - header->first[0] + (header->range == NND_PART ? 0 : header->modulus - 1);
    t.more = header->range == NND_TAIL ? 0 : over / header->modulus;
    t.less = header->first[0] + t.more * header->modulus - m;
  }
  t.end = row + header->rows;
  if (row->unit == NND_PACK_WEIGHTS) t.pack_weights = row++;
  if (row->unit == NND_PACK_INPUT) t.pack_input = row++;
  t.products = row;
  while (row < t.end && row->offset[1] == t.products->offset[1]) row++;
  t.kinds = (int)(row - t.products);
  return t;
}

/* Scratch floats for M rows. */
static nnd_size nnd_matmul_scratch(const struct nnd_table *table, nnd_size m) {
  const struct nnd_reading t = nnd_read_table(table, m);
  nnd_size floats = 0;
  if (t.pack_weights) floats += nnd_packed_k(t.k) * nnd_ceil_div(t.pack_weights->length[1], NND_PANEL_COLUMNS) * NND_PANEL_COLUMNS;
  if (t.pack_input)
    floats += nnd_packed_k(t.k) * nnd_min(m, (nnd_size)t.pack_input->repeat * NND_UNIT_ROWS);
  return floats;
}

#ifdef NND_UNITS_IDLE /* measures the interpreter: no unit does anything */
#define NND_DO(call) do { if (0) call; } while (0)
#else
#define NND_DO(call) do { call; } while (0)
#endif

/* The blocks [first, last) of all, packed where the table says so. Returns the number of segments. */
NND_INLINE int nnd_segments(const struct nnd_matmul *op, const struct nnd_reading *t, nnd_size first, nnd_size last,
                            struct nnd_segment *segments) {
  int found = 0;
  nnd_size block = 0, at = 0;
  float *to = op->scratch;
  for (int kind = 0; kind < t->kinds; kind++) {
    const struct nnd_table_row *row = t->products + kind;
    const nnd_size rows = nnd_block_rows(t, row), count = nnd_block_count(t, row);
    const nnd_size begin = nnd_max(first - block, 0), end = nnd_min(last - block, count);
    if (begin < end) {
      struct nnd_segment *s = &segments[found++];
      *s = (struct nnd_segment){rows, end - begin, at + begin * rows, nnd_at(&op->in, at + begin * rows, 0),
                                op->in.stride[0], rows * op->in.stride[0], kind};
      if (t->pack_input) {
        const nnd_size tile = row->unit == NND_DOT ? 1 : rows; /* a dot unit's rows lie apart */
        s->in = to;
        s->in_row = nnd_packed_k(t->k);
        s->in_tile = rows * s->in_row;
        for (nnd_size i = 0; i < s->count * rows; i += tile, to += tile * s->in_row)
          NND_DO(nnd_pack_tile(&op->in, s->at + i, tile, t->k, to));
      }
    }
    block += count;
    at += rows * count;
  }
  return found;
}

/* One row of a zone at the columns from `column` on, which are `columns` <= the unit's, for a segment's blocks. */
NND_INLINE void nnd_row_at(const struct nnd_matmul *op, const struct nnd_reading *t, const struct nnd_table_row *row,
                           const struct nnd_segment *s, nnd_size column, nnd_size columns, struct nnd_tile_call *call) {
  const nnd_unit unit = row->unit == NND_DOT    ? nnd_dot_units[columns][s->rows]
                        : row->unit == NND_THIN ? nnd_thin_units[t->k]
                                                : nnd_units[!t->pack_input][row->unit][s->rows];
  call->in = s->in;
  call->in_row = s->in_row;
  call->rows = s->rows;
  call->columns = columns;
  call->out = nnd_at(&op->out, s->at, column);
  const int activation = row->flags >> NND_EPILOGUE_SHIFT;
  call->low = nnd_least(activation);
  for (nnd_size i = 0; i < s->count; i++) {
    NND_DO(unit(call));
    if (activation > NND_RELU) NND_DO(nnd_activate(activation, call->out, call->out_row, s->rows, columns));
    call->in += s->in_tile;
    call->out += s->rows * call->out_row;
    call->next += call->next_step * t->k;
  }
}

/* All columns at once, by thin units. */
NND_INLINE void nnd_thin_zone(const struct nnd_matmul *op, const struct nnd_reading *t,
                              const struct nnd_segment *segments, int num_segments) {
  struct nnd_tile_call call = {.in_step = op->in.stride[1], .weights = op->weights.data, .bias = op->bias,
                               .weight_step = op->weights.stride[0], .out_row = op->out.stride[0], .k = t->k};
  if (op->packed || t->pack_weights) {
    if (!op->packed) NND_DO(nnd_pack_weights(&op->weights, t->k, t->n, op->scratch));
    call.weights = op->packed ? op->packed : op->scratch;
    call.weight_step = nnd_vectors_of(t->n) * NND_LANES;
  }
  for (int i = 0; i < num_segments; i++)
    nnd_row_at(op, t, t->products + segments[i].kind, &segments[i], 0, t->n, &call);
}

/* All panels of a zone, whose rows are `rows`, for a group of tiles. Panels that are packed here are kept for the other
 * groups; one that no other will read gives its memory to the next. */
NND_INLINE void nnd_zone(const struct nnd_matmul *op, const struct nnd_reading *t, const struct nnd_table_row *rows,
                         const struct nnd_segment *segments, int num_segments, nnd_size tiles, int is_only_group) {
  const nnd_size begin = rows->offset[1], end = begin + rows->length[1];
  const struct nnd_table_row *pack = t->pack_weights;
  const int here = pack && pack->offset[1] <= begin, dot = rows->unit == NND_DOT;
  float *buffer = op->scratch;
  if (t->pack_input) buffer += nnd_packed_k(t->k) * nnd_min(t->m, (nnd_size)t->pack_input->repeat * NND_UNIT_ROWS);
  nnd_size step = 1;
  for (int i = 0; i < num_segments; i++) step = nnd_max(step, nnd_unit_panels[rows[segments[i].kind].unit]);
  for (nnd_size column = begin; column < end; column += step * NND_PANEL_COLUMNS) {
    const nnd_size all = nnd_min(step * NND_PANEL_COLUMNS, end - column);
    struct nnd_tile_call call = {.out_row = op->out.stride[0], .k = t->k};
    const int vectors = rows->unit == NND_LANE ? 1 : NND_PANEL;
    call.weight_step = vectors * NND_LANES;
    call.weight_panel = dot ? nnd_packed_k(t->k) : t->k * NND_PANEL_COLUMNS;
    const float *weights;
    if (op->packed) weights = op->packed + nnd_panel_offset(t->k, column);
    else if (here) {
      float *to = buffer + (is_only_group ? 0 : nnd_panel_offset(t->k, column - pack->offset[1]));
      if (segments->at == 0) {
        if (dot) NND_DO(nnd_pack_weights(&op->weights, t->k, all, to));
        else
          for (nnd_size c = 0; c < all; c += NND_PANEL_COLUMNS)
            NND_DO(nnd_pack_panel(&op->weights, t->k, column + c, nnd_min(NND_PANEL_COLUMNS, all - c), vectors,
                                  to + nnd_panel_offset(t->k, c)));
      }
      weights = to;
    } else {
      weights = nnd_at(&op->weights, 0, column);
      call.weight_step = op->weights.stride[0];
      call.weight_panel = NND_PANEL_COLUMNS;
    }
    call.next = (const char *)(weights + step * call.weight_panel);
    if (op->packed || (here && !is_only_group)) /* else what comes next is not packed yet */
      call.next_step = t->k > NND_FETCHED_K ? 0 : nnd_max(1, NND_PANEL_COLUMNS * (nnd_size)sizeof(float) / tiles);
    for (int i = 0; i < num_segments; i++) {
      const struct nnd_segment *s = &segments[i];
      const struct nnd_table_row *row = &rows[s->kind];
      for (nnd_size c = 0; c < all;) {
        struct nnd_table_row narrower = *row;
        while (nnd_unit_panels[narrower.unit] * NND_PANEL_COLUMNS > all - c && nnd_unit_panels[narrower.unit] > 1)
          narrower.unit--;
        const nnd_size wide = nnd_unit_panels[narrower.unit] * NND_PANEL_COLUMNS;
        call.weights = weights + c / NND_PANEL_COLUMNS * call.weight_panel;
        call.bias = op->bias ? op->bias + column + c : 0;
        nnd_row_at(op, t, &narrower, s, column + c, nnd_min(wide, all - c), &call);
        c += wide;
      }
    }
  }
}

/* Runs a product of M rows by a table whose range holds M. */
static void nnd_matmul_run(const struct nnd_matmul *op, const struct nnd_table *table, nnd_size m) {
  const struct nnd_reading t = nnd_read_table(table, m);
  nnd_size blocks = 0;
  for (int i = 0; i < t.kinds; i++) blocks += nnd_block_count(&t, t.products + i);
  const int only = t.products->unit == NND_DOT || t.products->unit == NND_THIN;
  const nnd_size at_once = t.pack_input ? t.pack_input->repeat : only ? blocks : 1;
  const nnd_size groups = nnd_ceil_div(blocks, at_once);
  for (nnd_size group = 0; group < groups; group++) {
    struct nnd_segment segments[NND_SEGMENTS];
    const nnd_size first = blocks * group / groups, last = blocks * (group + 1) / groups;
    const int found = nnd_segments(op, &t, first, last, segments);
    if (t.products->unit == NND_THIN) {
      nnd_thin_zone(op, &t, segments, found);
      continue;
    }
    for (const struct nnd_table_row *zone = t.products; zone < t.end; zone += t.kinds)
      nnd_zone(op, &t, zone, segments, found, last - first, groups == 1);
  }
}

#endif
