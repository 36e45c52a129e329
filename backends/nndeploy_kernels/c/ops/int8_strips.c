/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/int8_strips.h"

/* Panels by which a tile's rows, which stay in the first cache, are multiplied one after the other: their weights stay in
 * the second, and what is written of a row lies side by side. */
#define NND_MOST_PANELS 16
#define NND_PANEL_BYTES ((nnd_size)128 << 10)

/* A strip: where it is read, and its rows of the output that no strip before it has. */
struct nnd_strip {
  const char *from;
  nnd_size row, rows, skipped; /* of the output; rows before those */
};

/* What panels need beside their weights. */
struct nnd_strip_panels {
  int32_t first[NND_MOST_PANELS][NND_INT8_COLUMNS];
  float factors[NND_MOST_PANELS][NND_INT8_COLUMNS];
  struct nnd_int8_ended ended[NND_MOST_PANELS];
};

/* Sums of a tile of two strips at most; those of two tiles are kept. */
#define NND_TILES_KEPT 2
struct nnd_strip_tile {
  int32_t sums[2][NND_INT8_STRIP * NND_INT8_COLUMNS] __attribute__((aligned(NND_LINE_BYTES)));
  struct nnd_int8_ended ended[2];
  int strips, vectors;
};

/* Ends the sums of a tile, by a quick end, while those of `b` are made; by themselves where `b` has other vectors. */
static void nnd_end_strips(const struct nnd_int8_strip_job *j, const struct nnd_strip_tile *tile, int is_by_itself,
                           struct nnd_int8_blocks *b) {
  b->num_ended = tile->strips, b->ended = tile->ended;
  if (!is_by_itself && tile->vectors == b->tiles.vectors) return;
  struct nnd_int8_blocks alone = *b;
  alone.tiles.strips = 0, alone.tiles.vectors = tile->vectors;
  j->multiply(&alone);
  b->num_ended = 0;
}

static void nnd_begin_panels(const struct nnd_int8_strip_job *j, nnd_size panel, nnd_size end,
                             struct nnd_strip_panels *p) {
  const struct nnd_int8_record *r = j->record;
  for (nnd_size i = 0; i < end - panel; i++) {
    const nnd_size of_group = (panel + i) * NND_INT8_COLUMNS, column = j->column + of_group;
    const nnd_size columns = nnd_min(NND_INT8_COLUMNS, j->columns - of_group);
    nnd_begin_int8(r, j->data, column, columns, j->column_sums, j->zero, j->factor_step, p->first[i], p->factors[i]);
    p->ended[i] = (struct nnd_int8_ended){.sums_row = nnd_blocks(columns) * NND_LANES,
                                          .columns = columns,
                                          .zeros = r->zeros ? r->zeros + column : NULL,
                                          .factors = p->factors[i],
                                          .bias = r->bias ? r->bias + column : NULL,
                                          .numbers = r->numbers ? r->numbers + column : NULL,
                                          .out_row = r->columns};
  }
}

/* All strips by the panels [panel, end), which are few. A quick end goes on while the next tile is multiplied. */
static void nnd_run_strips(const struct nnd_int8_strip_job *j, nnd_size panel, nnd_size end) {
  static const nnd_size nowhere = 0;
  const struct nnd_int8_record *r = j->record;
  const struct nnd_int8_strips strips = j->strips;
  const nnd_size strip_bytes = nnd_int8_strip_bytes(j->taps, j->k), out_bytes = nnd_element_bytes[r->end.element];
  struct nnd_strip_panels panels;
  struct nnd_strip_tile tiles[NND_TILES_KEPT];
  const int is_quick = nnd_int8_ends_in_tiles(r, NND_INT8_COLUMNS);
  nnd_begin_panels(j, panel, end, &panels);
  const nnd_size size = j->is_packed ? NND_INT8_BLOCK : nnd_int8_block_of(j->k);
  struct nnd_int8_blocks b = {.is_signed = j->is_signed, .end = &r->end};
  struct nnd_amx_blocks *t = &b.tiles;
  *t = (struct nnd_amx_blocks){.offsets = j->is_packed ? &nowhere : j->offsets,
                               .taps = j->is_packed ? 1 : j->taps,
                               .count = j->is_packed ? strip_bytes / (NND_INT8_STRIP * NND_INT8_BLOCK) : j->k / size,
                               .size = size,
                               .step = j->is_packed ? NND_INT8_BLOCK : j->step,
                               .block = j->is_packed ? NND_INT8_STRIP * NND_INT8_BLOCK : size,
                               .height = (int)strips.each};
  const nnd_size panel_bytes = j->taps * nnd_int8_packed_bytes(j->k, NND_INT8_COLUMNS);
  nnd_size line = j->begin / strips.count, of_line = j->begin % strips.count;
  const nnd_size top = nnd_int8_strip_row(strips, of_line);
  nnd_size made = 0, done = 0; /* tiles: number n lies in tiles[n % NND_TILES_KEPT] */
  for (nnd_size strip = j->begin; strip < j->last; strip += 2) {
    struct nnd_strip pair[2];
    int is_whole = 1;
    t->strips = (int)nnd_min(2, j->last - strip);
    for (int s = 0; s < t->strips; s++) {
      const nnd_size row = of_line * strips.each, rows = nnd_min(strips.each, strips.rows - row);
      const nnd_size skipped = j->is_packed ? 0 : strips.each - rows;
      pair[s] = (struct nnd_strip){j->is_packed ? j->from + (strip + s - j->begin) * strip_bytes
                                                : j->from + line * j->line + (row - skipped) * j->step,
                                   line * strips.rows + row, rows, skipped};
      t->rows[s] = pair[s].from;
      is_whole &= rows == strips.each;
      if (++of_line == strips.count) of_line = 0, line++;
    }
    for (nnd_size i = 0; i < end - panel; i++) {
      struct nnd_strip_tile *tile = &tiles[made % NND_TILES_KEPT];
      const struct nnd_int8_ended *columns = &panels.ended[i];
      /* Sums that are the output are stored there, where the tiles hold nothing else. */
      const int is_stored =
          is_whole && r->end.element == NND_INT32 && !r->zeros && columns->columns == columns->sums_row;
      t->vectors = t->wide = (int)(columns->sums_row / NND_LANES), b.num_ended = 0;
      if (made > done) nnd_end_strips(j, &tiles[done++ % NND_TILES_KEPT], 0, &b);
      t->weights = j->weights + (panel + i) * panel_bytes;
      t->first = panels.first[i];
      t->sums_row = is_stored ? r->columns : columns->sums_row;
      for (int s = 0; s < t->strips; s++) {
        const nnd_size at =
            (j->top + pair[s].row) * r->columns + j->column + (panel + i) * NND_INT8_COLUMNS; /* in the output */
        struct nnd_int8_ended *ended = &tile->ended[s];
        *ended = *columns;
        ended->rows = pair[s].rows;
        ended->sums = tile->sums[s] + pair[s].skipped * columns->sums_row;
        ended->row_sums = j->row_sums ? j->row_sums + pair[s].row - top : NULL;
        ended->out = j->data->out + at * out_bytes;
        ended->residual = j->data->residual ? j->data->residual + at : NULL;
        t->sums[s] = is_stored ? ended->out : tile->sums[s];
      }
      j->multiply(&b);
      if (is_quick)
        tile->strips = t->strips, tile->vectors = t->vectors, made++;
      else if (!is_stored)
        for (int s = 0; s < t->strips; s++) nnd_int8_finish(&r->end, &tile->ended[s]);
    }
  }
  while (done < made) nnd_end_strips(j, &tiles[done++ % NND_TILES_KEPT], 1, &b);
}

void nnd_run_int8_strips(const struct nnd_int8_strip_job *j) {
  const struct nnd_int8_record *r = j->record;
  const nnd_size panel_bytes = j->taps * nnd_int8_packed_bytes(j->k, NND_INT8_COLUMNS);
  const nnd_size most = nnd_max(1, nnd_min(NND_MOST_PANELS, NND_PANEL_BYTES / panel_bytes));
  for (nnd_size panel = j->panel; panel < j->end; panel += most)
    nnd_run_strips(j, panel, nnd_min(j->end, panel + most));
  const nnd_size count = j->strips.count, begin = j->panel * NND_INT8_COLUMNS;
  const nnd_size top = j->begin / count * j->strips.rows + nnd_int8_strip_row(j->strips, j->begin % count);
  const nnd_size bottom = j->last / count * j->strips.rows + nnd_int8_strip_row(j->strips, j->last % count);
  char *out = j->data->out + ((j->top + top) * r->columns + j->column + begin) * nnd_element_bytes[r->end.element];
  nnd_int8_look_up_rows(&r->end, out, bottom - top, nnd_min(j->end * NND_INT8_COLUMNS, j->columns) - begin, r->columns);
}
