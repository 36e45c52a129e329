/* SPDX-License-Identifier: Apache-2.0
 *
 * top_places: where the largest or smallest along the middle of three axes of plain tensors lie, in their order; of
 * equal ones the first comes first. gather_elements takes the values from there.
 *
 * As many are taken as the output has along the axis. A NaN is larger than all numbers. Workers share columns.
 */
#include "kernels/ordered.h"
#include "ops/along_axis.h"

#define NND_SOME 64 /* elements whose keys are found at once */

NND_RECORD(top_places)

struct nnd_top_fields {
  struct nnd_along along;
  nnd_size count; /* that are taken */
  int is_smallest;
};

/* `key` is in the order of the values, the other way round where the smallest are taken. */
struct nnd_candidate {
  int64_t key, place;
};

static int nnd_open_top(struct nnd_opener *o) {
  struct nnd_top_places *own = nnd_own(o, sizeof *own);
  return own && nnd_read_top_places(o, own) && nnd_check_along(o, &own->along, NND_INT64);
}

NND_INLINE int64_t nnd_key_of_float32(float x) { return nnd_ordered(x); }
NND_INLINE int64_t nnd_key_of_whole(int64_t x) { return x; }

NND_INLINE int nnd_is_behind(struct nnd_candidate a, struct nnd_candidate b) {
  return a.key < b.key || (a.key == b.key && a.place > b.place);
}

/* A heap whose first is behind all others: puts `one` in place `at`, below which all is in order. */
NND_INLINE void nnd_sink(struct nnd_candidate *heap, nnd_size count, nnd_size at, struct nnd_candidate one) {
  for (nnd_size below; (below = 2 * at + 1) < count; at = below) {
    if (below + 1 < count && nnd_is_behind(heap[below + 1], heap[below])) below++;
    if (!nnd_is_behind(heap[below], one)) break;
    heap[at] = heap[below];
  }
  heap[at] = one;
}

/* Turns a heap round: its first, which is behind all others, comes last. */
static void nnd_sort_candidates(struct nnd_candidate *heap, nnd_size count) {
  for (nnd_size end = count - 1; end > 0; end--) {
    const struct nnd_candidate behind = heap[0];
    nnd_sink(heap, end, 0, heap[end]);
    heap[end] = behind;
  }
}

#define NND_TOP(name, type, key_of)                                                                                    \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_top_fields *t = fields;                                                                           \
    const nnd_size size = t->along.size, inner = t->along.inner, count = t->count;                                     \
    const int64_t turn = t->is_smallest ? -1 : 0;                                                                      \
    struct nnd_candidate *heap = (struct nnd_candidate *)(void *)part.scratch;                                         \
    nnd_size column, last;                                                                                             \
    nnd_share(t->along.outer * inner, part, &column, &last);                                                           \
    for (; column < last; column++) {                                                                                  \
      const type *in = (const type *)at[1] + column / inner * size * inner + column % inner;                           \
      int64_t *out = (int64_t *)at[0] + column / inner * count * inner + column % inner;                               \
      for (nnd_size k = 0; k < count; k++) heap[k] = (struct nnd_candidate){key_of(in[k * inner]) ^ turn, k};          \
      for (nnd_size k = count / 2; k-- > 0;) nnd_sink(heap, count, k, heap[k]);                                        \
      for (nnd_size begin = count; begin < size; begin += NND_SOME) {                                                  \
        const nnd_size some = nnd_min(NND_SOME, size - begin);                                                         \
        int64_t keys[NND_SOME];                                                                                        \
        if (inner == 1)                                                                                                \
          for (nnd_size k = 0; k < some; k++) keys[k] = key_of(in[begin + k]) ^ turn;                                  \
        else                                                                                                           \
          for (nnd_size k = 0; k < some; k++) keys[k] = key_of(in[(begin + k) * inner]) ^ turn;                        \
        for (nnd_size k = 0; k < some; k++)                                                                            \
          if (keys[k] > heap[0].key) nnd_sink(heap, count, 0, (struct nnd_candidate){keys[k], begin + k});             \
      }                                                                                                                \
      nnd_sort_candidates(heap, count);                                                                                \
      for (nnd_size k = 0; k < count; k++) out[k * inner] = heap[k].place;                                             \
    }                                                                                                                  \
  }
NND_TOP(nnd_top_float32, float, nnd_key_of_float32)
NND_TOP(nnd_top_int32, int32_t, nnd_key_of_whole)
NND_TOP(nnd_top_int64, int64_t, nnd_key_of_whole)
NND_TOP(nnd_top_float64, double, nnd_ordered_double)

static int nnd_make_top(struct nnd_maker *m) {
  static const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = nnd_top_float32,
                                                       [NND_INT32] = nnd_top_int32,
                                                       [NND_INT64] = nnd_top_int64,
                                                       [NND_FLOAT64] = nnd_top_float64};
  const struct nnd_top_places *own = m->step->own;
  const nnd_size in = nnd_shape_of(m, own->along.in)->count, out = nnd_shape_of(m, own->along.out)->count;
  struct nnd_top_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size size = nnd_size_of(m, own->along.size);
  if (size < 1 || out > in || in / size < 1) return nnd_fail(m->message, "an axis does not fit its tensor");
  t->count = out / (in / size), t->is_smallest = own->is_smallest;
  if (t->count < 1 || !nnd_size_along(m, &own->along, t->count, &t->along))
    return nnd_fail(m->message, "an axis does not fit its tensor");
  m->scratch_bytes = t->count * (nnd_size)sizeof(struct nnd_candidate);
  return nnd_run_along(m, &own->along, runs);
}

const struct nnd_op nnd_op_top_places = {"top_places", nnd_open_top, nnd_make_top};
