/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_thirds.h"

#if NND_HAS_THIRDS

NND_INLINE nnd_size nnd_gemm_panel_bytes(nnd_size k) { return nnd_thirds_bytes(NND_GEMM_COLUMNS, k); }

nnd_size nnd_gemm_thirds_floats(nnd_size rows, nnd_size k) {
  const nnd_size weights = nnd_max(NND_THIRDS_RING, 2 * nnd_gemm_panel_bytes(k));
  return (weights + nnd_thirds_bytes(rows + 4 * NND_AMX_ROWS, k)) / (nnd_size)sizeof(float);
}

int nnd_gemm_begin_thirds(struct nnd_gemm_thirds *t, const struct nnd_gemm *g, const struct nnd_gemm_data *d,
                          nnd_size group, nnd_size part, char *scratch) {
  const nnd_size begin = nnd_gemm_at(g, nnd_even(g->tiles, g->groups, group));
  const nnd_size rows = nnd_gemm_at(g, nnd_even(g->tiles, g->groups, group + 1)) - begin;
  const nnd_size first = part * g->part, k = nnd_min(g->part, g->inner - first), number = d->first_group + group;
  t->g = g, t->d = d, t->begin = begin, t->rows = rows, t->part = part, t->k = k;
  t->strips = nnd_thirds_strips(rows);
  t->is_quad = nnd_thirds_are_a_quad(rows);
  t->weights = scratch, t->thirds = scratch + nnd_max(NND_THIRDS_RING, 2 * nnd_gemm_panel_bytes(g->part));
  t->now = 0, t->pairs[1].endings[0].left = t->pairs[1].endings[1].left = 0;
  t->cut.floats = NULL;
  if (d->held && *d->held == number && g->parts == 1) return 1;
  const nnd_size of_strip = nnd_thirds_bytes(t->strips.each, k), third = t->strips.each * NND_AMX_BYTES;
  int are_finite = 1;
  for (nnd_size r = 0; r < rows; r++)
    are_finite &= nnd_thirds_of_row(k, d->a + (begin + r) * g->a_row + first * g->a_step, g->a_step, third,
                                    t->thirds + r / t->strips.each * of_strip + r % t->strips.each * NND_AMX_BYTES);
  if (d->held) *d->held = are_finite ? number : -1;
  return are_finite;
}

NND_INLINE int nnd_gemm_vectors_of(const struct nnd_gemm_thirds *t, nnd_size panel) {
  return (int)nnd_min(NND_PANEL, nnd_blocks(t->g->columns - panel * NND_GEMM_COLUMNS));
}

/* What the sums of all rows by a vector of a panel become. */
static struct nnd_gemm_ending nnd_gemm_ending_of_quad(const struct nnd_gemm_thirds *t, nnd_size panel, int vector,
                                                      const vf *sums) {
  const nnd_size column = vector * NND_LANES;
  struct nnd_gemm_ending e = nnd_gemm_ending_of(t->g, t->d, t->begin, t->rows, panel, t->part, sums);
  e.tile.columns = nnd_min(NND_LANES, e.tile.columns - column);
  if (e.tile.numbers) e.tile.numbers += column;
  if (e.tile.residual) e.tile.residual += column;
  e.tile.out += column;
  e.vectors = 1;
  return e;
}

static int nnd_gemm_quads(struct nnd_gemm_thirds *t, nnd_size panel, const float *floats, const float *bias) {
  const int vectors = nnd_gemm_vectors_of(t, panel);
  const nnd_size at_once = nnd_ceil_div(4 * NND_AMX_ROWS / NND_GEMM_ENDED, nnd_thirds_blocks(t->k));
  for (int v = 0; v < vectors; v++) {
    struct nnd_gemm_pair *pair = &t->pairs[t->now];
    struct nnd_thirds_quad q = {.rows = t->thirds,
                                .height = (int)t->strips.each,
                                .k = t->k,
                                .floats = floats + v * NND_LANES,
                                .first = bias ? bias + v * NND_LANES : NULL,
                                .vectors = vectors,
                                .vector = v,
                                .ring = t->weights,
                                .sums = (float *)pair->sums};
    nnd_thirds_multiply_quad(&q, nnd_gemm_end_some, t->pairs[!t->now].endings, at_once);
    if (!q.is_finite) return 0; /* the first vector's are those of the panel */
    pair->endings[0] = nnd_gemm_ending_of_quad(t, panel, v, pair->sums[0]);
    pair->endings[1].left = 0;
    t->now = !t->now;
  }
  return 1;
}

/* The cut of a panel, of nothing where its floats are not there yet. */
NND_INLINE struct nnd_thirds_cut nnd_gemm_cut_of(const struct nnd_gemm_thirds *t, nnd_size panel, const float *floats) {
  return nnd_thirds_cut_of(floats, floats ? t->k : 0, floats ? nnd_gemm_vectors_of(t, panel) : 1,
                           t->weights + panel % 2 * nnd_gemm_panel_bytes(t->g->part));
}

/* First the pair before ends, then the next panel is cut. */
static int nnd_gemm_turn(void *turns) {
  struct nnd_gemm_thirds *t = turns;
  if (nnd_gemm_end_some(t->pairs[!t->now].endings)) return 1;
  nnd_thirds_cut_some(&t->cut, t->cut.each);
  return 0;
}

static int nnd_gemm_pairs(struct nnd_gemm_thirds *t, nnd_size panel, const float *floats, const float *next,
                          const float *bias) {
  const nnd_size of_strip = nnd_thirds_bytes(t->strips.each, t->k), blocks = nnd_thirds_blocks(t->k);
  const int vectors = nnd_gemm_vectors_of(t, panel);
  if (t->cut.floats != floats) t->cut = nnd_gemm_cut_of(t, panel, floats);
  nnd_thirds_cut_some(&t->cut, t->cut.all);
  if (!t->cut.is_finite) return 0;
  struct nnd_amx_blocks b = {.count = blocks,
                             .block = NND_THIRDS * t->strips.each * NND_AMX_BYTES,
                             .height = (int)t->strips.each,
                             .vectors = vectors,
                             .wide = vectors,
                             .weights = t->cut.to,
                             .first = bias,
                             .sums_row = vectors * NND_LANES};
  t->cut = nnd_gemm_cut_of(t, panel + 1, next);
  const nnd_size at_once = nnd_thirds_spread(&t->cut, t->strips.count / 2, blocks, NND_GEMM_PAIR / NND_GEMM_ENDED);
  for (nnd_size strip = 0; strip < t->strips.count; strip += 2, t->now = !t->now) {
    struct nnd_gemm_pair *pair = &t->pairs[t->now];
    for (int s = 0; s < 2; s++) {
      const nnd_size row = (strip + s) * t->strips.each;
      b.rows[s] = t->thirds + (strip + s) * of_strip;
      b.sums[s] = pair->sums[s];
      pair->endings[s] =
          nnd_gemm_ending_of(t->g, t->d, t->begin + row, nnd_max(0, nnd_min(t->strips.each, t->rows - row)), panel,
                             t->part, pair->sums[s]);
    }
    nnd_thirds_multiply_pair(&b, nnd_gemm_turn, t, at_once);
  }
  return 1;
}

int nnd_gemm_panel_in_thirds(struct nnd_gemm_thirds *t, nnd_size panel, const float *floats, const float *next) {
  const float *bias = t->d->bias && t->part == 0 ? t->d->bias + panel * NND_GEMM_COLUMNS : NULL;
  return t->is_quad ? nnd_gemm_quads(t, panel, floats, bias) : nnd_gemm_pairs(t, panel, floats, next, bias);
}

void nnd_gemm_end_thirds(struct nnd_gemm_thirds *t) {
  while (nnd_gemm_end_some(t->pairs[!t->now].endings)) {
  }
}
#endif
