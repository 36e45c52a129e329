/* SPDX-License-Identifier: Apache-2.0
 *
 * arg_max, arg_min, hardmax: where the largest or smallest along the middle of three axes of plain tensors lies.
 *
 * hardmax is 1 where the first of the largest is, else 0.
 *
 * A NaN is larger and smaller than all others. Workers share rows, or runs of columns.
 */
#include "ops/along_axis.h"

NND_RECORD(arg)

struct nnd_arg_fields {
  struct nnd_along along;
  int is_last;
};

static int nnd_open_arg(struct nnd_opener *o) {
  struct nnd_arg *own = nnd_own(o, sizeof *own);
  return own && nnd_read_arg(o, own) && nnd_check_along(o, &own->along, NND_INT64);
}

static int nnd_open_hardmax(struct nnd_opener *o) {
  struct nnd_arg *own = nnd_own(o, sizeof *own);
  return own && nnd_read_along_axis(o, &own->along) && nnd_check_along(o, &own->along, NND_FLOAT32);
}

/* Where x counts rather than the best before it. Of floats: `x != x` and the like tell of NaN. */
#define NND_BEATS(x, best, over, is_last) ((x)over(best) || ((is_last) && (x) == (best)))
#define NND_BEATS_FLOAT(x, best, over, is_last)                                                                        \
  (NND_BEATS(x, best, over, is_last) || ((x) != (x) && ((is_last) || (best) == (best))))

/* The place of the best of a row of floats that fills a vector. */
#define NND_ARG_OF_ROW(name, over)                                                                                     \
  NND_INLINE nnd_size name(const float *in, nnd_size size, int is_last) {                                              \
    vi number, at;                                                                                                     \
    NND_UNROLL                                                                                                         \
    for (int lane = 0; lane < NND_LANES; lane++) number[lane] = lane;                                                  \
    vf best = nnd_load_any(in);                                                                                        \
    at = number;                                                                                                       \
    for (nnd_size k = NND_LANES; k < size; k += NND_LANES) {                                                           \
      const nnd_size from = nnd_min(k, size - NND_LANES); /* the last vector begins within the one before */           \
      const vf x = nnd_load_any(in + from);                                                                            \
      const vi none = x != x;                                                                                          \
      const vi beats = is_last ? (x over best) | (x == best) | none : (x over best) | (none & (best == best));         \
      at = (vi)nnd_select(beats, (vf)(number + (int32_t)from), (vf)at);                                                \
      best = nnd_select(beats, x, best);                                                                               \
    }                                                                                                                  \
    int found = 0;                                                                                                     \
    for (int lane = 1; lane < NND_LANES; lane++) {                                                                     \
      const float x = best[lane], most = best[found];                                                                  \
      const int is_same = x == most || (x != x && most != most);                                                       \
      if (is_same ? is_last ? at[lane] > at[found] : at[lane] < at[found] : NND_BEATS_FLOAT(x, most, over, 0))         \
        found = lane;                                                                                                  \
    }                                                                                                                  \
    return at[found];                                                                                                  \
  }
NND_ARG_OF_ROW(nnd_arg_max_of_row, >)
NND_ARG_OF_ROW(nnd_arg_min_of_row, <)

/* The places of the best of some columns. */
#define NND_ARG_OF_COLUMNS(name, type, beats, over)                                                                    \
  NND_INLINE void name(const type *in, const struct nnd_along *t, nnd_size count, int is_last, int32_t *at) {          \
    type best[NND_TILE];                                                                                               \
    for (nnd_size j = 0; j < count; j++) best[j] = in[j], at[j] = 0;                                                   \
    for (nnd_size k = 1; k < t->size; k++)                                                                             \
      for (nnd_size j = 0; j < count; j++) {                                                                           \
        const type x = in[k * t->inner + j], before = best[j];                                                         \
        const int is_better = beats(x, before, over, is_last);                                                         \
        best[j] = is_better ? x : before;                                                                              \
        at[j] = is_better ? (int32_t)k : at[j];                                                                        \
      }                                                                                                                \
  }

#define NND_NO_ROW(in, size, is_last) 0
#define NND_ARG(name, type, beats, over, has_rows, of_row)                                                             \
  NND_ARG_OF_COLUMNS(name##_of_columns, type, beats, over)                                                             \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_arg_fields *t = fields;                                                                           \
    nnd_size unit, last;                                                                                               \
    nnd_share(nnd_num_tiles(&t->along), part, &unit, &last);                                                           \
    for (; unit < last; unit++) {                                                                                      \
      const struct nnd_tile tile = nnd_tile_at(&t->along, unit);                                                       \
      const type *in = (const type *)at[1] + tile.at;                                                                  \
      int64_t *out = (int64_t *)at[0] + tile.number;                                                                   \
      int32_t places[NND_TILE];                                                                                        \
      if (has_rows && t->along.inner == 1 && t->along.size >= NND_LANES)                                               \
        places[0] = (int32_t)of_row((const float *)(const void *)in, t->along.size, t->is_last);                       \
      else if (t->is_last)                                                                                             \
        name##_of_columns(in, &t->along, tile.count, 1, places);                                                       \
      else                                                                                                             \
        name##_of_columns(in, &t->along, tile.count, 0, places);                                                       \
      for (nnd_size j = 0; j < tile.count; j++) out[j] = places[j];                                                    \
    }                                                                                                                  \
  }
#define NND_ARG_OF_EVERY_TYPE(name, over)                                                                              \
  NND_ARG(name##_float32, float, NND_BEATS_FLOAT, over, 1, name##_of_row)                                              \
  NND_ARG(name##_int32, int32_t, NND_BEATS, over, 0, NND_NO_ROW)                                                       \
  NND_ARG(name##_int64, int64_t, NND_BEATS, over, 0, NND_NO_ROW)                                                       \
  NND_ARG(name##_uint8, uint8_t, NND_BEATS, over, 0, NND_NO_ROW)                                                       \
  NND_ARG(name##_int8, int8_t, NND_BEATS, over, 0, NND_NO_ROW)                                                         \
  NND_ARG(name##_float64, double, NND_BEATS_FLOAT, over, 0, NND_NO_ROW)                                                \
  static const nnd_along_run name##_runs[NND_NUM_ELEMENTS] = {                                                         \
      [NND_FLOAT32] = name##_float32, [NND_INT32] = name##_int32, [NND_INT64] = name##_int64,                          \
      [NND_UINT8] = name##_uint8,     [NND_INT8] = name##_int8,   [NND_FLOAT64] = name##_float64};
NND_ARG_OF_EVERY_TYPE(nnd_arg_max, >)
NND_ARG_OF_EVERY_TYPE(nnd_arg_min, <)

static void nnd_run_hardmax(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_along *t = &((const struct nnd_arg_fields *)fields)->along;
  nnd_size unit, last;
  nnd_share(nnd_num_tiles(t), part, &unit, &last);
  for (; unit < last; unit++) {
    const struct nnd_tile tile = nnd_tile_at(t, unit);
    const float *in = (const float *)at[1] + tile.at;
    float *out = (float *)at[0] + tile.at;
    int32_t places[NND_TILE];
    if (t->inner == 1 && t->size >= NND_LANES)
      places[0] = (int32_t)nnd_arg_max_of_row(in, t->size, 0);
    else
      nnd_arg_max_float32_of_columns(in, t, tile.count, 0, places);
    const nnd_size runs = t->inner == 1 ? 1 : t->size, run = t->inner == 1 ? t->size : tile.count;
    for (nnd_size k = 0; k < runs; k++) memset(out + k * t->inner, 0, (size_t)run * sizeof *out);
    for (nnd_size j = 0; j < tile.count; j++) out[places[j] * t->inner + j] = 1.0f;
  }
}

static int nnd_make_places(struct nnd_maker *m, nnd_size made, const nnd_along_run *runs) {
  const struct nnd_arg *own = m->step->own;
  struct nnd_arg_fields *t = nnd_fields(m, sizeof *t);
  if (!t || !nnd_size_along(m, &own->along, made, &t->along)) return 0;
  t->is_last = own->is_last;
  if (t->along.size > INT32_MAX) return nnd_fail(m->message, "places along an axis beyond 32 bits");
  return nnd_run_along(m, &own->along, runs);
}

static int nnd_make_arg_max(struct nnd_maker *m) { return nnd_make_places(m, 1, nnd_arg_max_runs); }
static int nnd_make_arg_min(struct nnd_maker *m) { return nnd_make_places(m, 1, nnd_arg_min_runs); }
static int nnd_make_hardmax(struct nnd_maker *m) {
  static const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = nnd_run_hardmax};
  const struct nnd_arg *own = m->step->own;
  return nnd_make_places(m, nnd_size_of(m, own->along.size), runs);
}

const struct nnd_op nnd_op_arg_max = {"arg_max", nnd_open_arg, nnd_make_arg_max};
const struct nnd_op nnd_op_arg_min = {"arg_min", nnd_open_arg, nnd_make_arg_min};
const struct nnd_op nnd_op_hardmax = {"hardmax", nnd_open_hardmax, nnd_make_hardmax};
