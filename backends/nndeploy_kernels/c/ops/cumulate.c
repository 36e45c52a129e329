/* SPDX-License-Identifier: Apache-2.0
 *
 * cumulate: sums of all elements up to each, along the middle of three axes of plain tensors.
 *
 * Floats are summed as doubles; int32 and int64 wrap around. Workers share runs of columns.
 */
#include "ops/along_axis.h"

NND_RECORD(cumulate)

struct nnd_cumulate_fields {
  struct nnd_along along;
  int is_exclusive;
  nnd_size first, step; /* in elements along the axis */
};

static int nnd_open_cumulate(struct nnd_opener *o) {
  struct nnd_cumulate *own = nnd_own(o, sizeof *own);
  return own && nnd_read_cumulate(o, own) && nnd_check_along(o, &own->along, -1);
}

#define NND_CUMULATE(name, type, kept)                                                                                 \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_cumulate_fields *t = fields;                                                                      \
    nnd_size unit, last;                                                                                               \
    nnd_share(nnd_num_tiles(&t->along), part, &unit, &last);                                                           \
    for (; unit < last; unit++) {                                                                                      \
      const struct nnd_tile tile = nnd_tile_at(&t->along, unit);                                                       \
      kept sums[NND_TILE] = {0};                                                                                       \
      for (nnd_size k = 0; k < t->along.size; k++) {                                                                   \
        const nnd_size place = tile.at + (t->first + k * t->step) * t->along.inner;                                    \
        const type *in = (const type *)at[1] + place;                                                                  \
        type *out = (type *)at[0] + place;                                                                             \
        for (nnd_size j = 0; j < tile.count; j++) {                                                                    \
          const kept before = sums[j];                                                                                 \
          sums[j] = before + (kept)in[j];                                                                              \
          out[j] = (type)(t->is_exclusive ? before : sums[j]);                                                         \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }
NND_CUMULATE(nnd_cumulate_float32, float, double)
NND_CUMULATE(nnd_cumulate_int32, int32_t, uint32_t)
NND_CUMULATE(nnd_cumulate_int64, int64_t, uint64_t)

static int nnd_make_cumulate(struct nnd_maker *m) {
  static const nnd_along_run runs[NND_NUM_ELEMENTS] = {
      [NND_FLOAT32] = nnd_cumulate_float32, [NND_INT32] = nnd_cumulate_int32, [NND_INT64] = nnd_cumulate_int64};
  const struct nnd_cumulate *own = m->step->own;
  struct nnd_cumulate_fields *t = nnd_fields(m, sizeof *t);
  if (!t || !nnd_size_along(m, &own->along, nnd_size_of(m, own->along.size), &t->along)) return 0;
  t->is_exclusive = own->is_exclusive;
  t->first = own->is_reverse ? t->along.size - 1 : 0, t->step = own->is_reverse ? -1 : 1;
  return nnd_run_along(m, &own->along, runs);
}

const struct nnd_op nnd_op_cumulate = {"cumulate", nnd_open_cumulate, nnd_make_cumulate};
