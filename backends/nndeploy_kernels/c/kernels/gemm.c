/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm.h"

#include "kernels/gemm_end.h"
#include "kernels/gemm_thirds.h"
#include "kernels/gemm_tiles.h"
#include "kernels/layout.h"
#include "kernels/masked.h"

#define NND_GEMM_PART 1024         /* k of a part of the sums, about: a panel of it stays in the second cache */
#define NND_GEMM_LONGEST 2048      /* the same of few rows: longer sums would round too much */
#define NND_GEMM_LEAST_OF_BITS 384 /* the same of weights of few bits, which each group unpacks: few groups pay */
#define NND_GEMM_PART_IN_PLACE 256 /* the same of `b` that is not in panels, in pages that its rows lie in */
#define NND_PAGE_FLOATS 1024
#define NND_THIRDS_UNITS 2 /* of a thread, of those that are cut in thirds */
#define NND_GEMM_SPLIT (NND_PANEL == 4 ? 2 : 4)
#define NND_DOT_ROWS 4
#define NND_DOT_COLUMNS 4
#define NND_DOTS_AHEAD 16                                        /* columns */
#define NND_FEW_FOR_BITS (NND_BITS_ROWS > 8 ? NND_BITS_ROWS : 8) /* rows by which few bits are multiplied as they are */
#define NND_GEMM_AHEAD 1024 /* floats: what few rows read of `b` is fetched so far ahead of them */
#define NND_PACKED_ROWS 16  /* of `b` that are packed at once, for all panels: few pages are open at a time */

#define NND_LINE_FLOATS (NND_LINE_BYTES / (int)sizeof(float))
#define NND_LAST_OF_LINE (NND_LINE_FLOATS - 1) /* of rows anywhere the first line came with the columns before */

typedef void (*nnd_gemm_kernel)(const struct nnd_gemm_tile *t);

/* Fetches what sums are stored to while they are made; where they go on from it, what the tile below goes on from. */
NND_INLINE void nnd_gemm_fetch_out(const struct nnd_gemm_tile *t, int rows, int vectors) {
  const float *out = t->out + (t->adds ? rows * t->out_row : 0);
  NND_UNROLL
  for (int r = 0; r < rows; r++) NND_UNROLL
  for (int i = 0; i < vectors * NND_LANES; i += NND_LINE_FLOATS)
    __builtin_prefetch(out + r * t->out_row + i + NND_LAST_OF_LINE, 1, 3);
}

/* Sums begin with the bias, those of a part that is not the first with zeros: what is small is added up first. */
NND_INLINE void nnd_gemm_begin(const struct nnd_gemm_tile *t, int rows, int vectors, vf *sums) {
  NND_UNROLL
  for (int v = 0; v < vectors; v++) {
    const vf first = t->bias && !t->adds ? nnd_load_any(t->bias + v * NND_LANES) : nnd_splat(0.0f);
    NND_UNROLL
    for (int r = 0; r < rows; r++) sums[r * vectors + v] = first;
  }
}

/* Fetches what few rows will read of each panel. */
NND_INLINE void nnd_gemm_fetch(const struct nnd_gemm_tile *t, const float *weights, int panels, nnd_size panel) {
  NND_UNROLL
  for (int p = 0; p < panels; p++) NND_UNROLL
  for (int i = 0; i < NND_GEMM_COLUMNS; i += NND_LINE_FLOATS)
    __builtin_prefetch(weights + p * panel + t->ahead + i, 0, 2);
}

#if defined(__wasm__)
/* What one k adds: of weights and rows the fewer wait in registers. */
NND_INLINE void nnd_gemm_one_k(int rows, int panels, int vectors, vf *sums, const float *in, const float *weights,
                               nnd_size panel) {
  const int all = panels * vectors, keeps_rows = rows < all;
  vf kept[NND_GEMM_ROWS > 4 * NND_PANEL ? NND_GEMM_ROWS : 4 * NND_PANEL];
#define NND_W(i) nnd_load_any(weights + (i) / vectors * panel + (i) % vectors * NND_LANES)
#define NND_X(i) nnd_splat(in[(i) * NND_GEMM_K])
  NND_UNROLL
  for (int i = 0; i < (keeps_rows ? rows : all); i++) kept[i] = keeps_rows ? NND_X(i) : NND_W(i);
  NND_UNROLL
  for (int i = 0; i < (keeps_rows ? all : rows); i++) {
    const vf one = keeps_rows ? NND_W(i) : NND_X(i);
    NND_UNROLL
    for (int j = 0; j < (keeps_rows ? rows : all); j++) {
      vf *sum = keeps_rows ? &sums[j * all + i] : &sums[i * all + j];
      *sum += kept[j] * one;
      NND_IN_TURN(*sum);
    }
  }
#undef NND_W
#undef NND_X
}
#endif

/* `panels` of `vectors`; with `packs` the only panel is packed on the way. */
NND_INLINE void nnd_gemm_wide(int rows, int panels, int vectors, int packs, const struct nnd_gemm_tile *t) {
  const int all = panels * vectors;
  vf sums[NND_ACCUMULATORS];
  nnd_gemm_begin(t, rows, all, sums);
  nnd_gemm_fetch_out(t, rows, all);
  const float *in = t->in, *weights = t->weights;
  const nnd_size step = t->step, panel = t->panel;
  const char *next = t->next;
  float *packed = t->packed;
  for (nnd_size left = t->k; left > 0; left -= NND_GEMM_K) {
    const nnd_size count = nnd_min(left, NND_GEMM_K);
    nnd_size i = 0;
#if defined(__aarch64__) /* multiplies by one lane of a vector: four k of a row are loaded at once */
    if (panels == 1 && !packs) NND_NO_UNROLL
    for (; i + NND_LANES <= count; i += NND_LANES) {
      vf x[NND_GEMM_ROWS];
      NND_UNROLL
      for (int r = 0; r < rows; r++) x[r] = nnd_load(in + r * NND_GEMM_K + i);
      NND_UNROLL
      for (int lane = 0; lane < NND_LANES; lane++) {
        __builtin_prefetch(next, 0, 2);
        next += t->next_step;
        NND_UNROLL
        for (int v = 0; v < vectors; v++) {
          const vf w = nnd_load_any(weights + v * NND_LANES);
          NND_UNROLL
          for (int r = 0; r < rows; r++) sums[r * all + v] += w * x[r][lane];
        }
        weights += step;
      }
    }
#elif defined(__wasm__) /* where each turn of a loop asks whether to stop */
    if (!packs) NND_NO_UNROLL
    for (; i + NND_LANES <= count; i += NND_LANES) {
      const float *at = in + i;
      NND_ONE_REGISTER(at);
      NND_UNROLL
      for (int k = 0; k < NND_LANES; k++, weights += step) {
        NND_ONE_REGISTER(weights);
        nnd_gemm_one_k(rows, panels, vectors, sums, at + k, weights, panel);
      }
    }
#endif
    NND_NO_UNROLL
    for (; i < count; i++) {
      if (panels == 1) {
        __builtin_prefetch(next, 0, 2);
        if (NND_GEMM_COLUMNS > NND_LINE_FLOATS) __builtin_prefetch(next + NND_LINE_BYTES, 0, 2);
      } else
        nnd_gemm_fetch(t, weights, panels, panel);
      next += t->next_step;
      vf w[4 * NND_PANEL];
      NND_UNROLL
      for (int p = 0; p < panels; p++) NND_UNROLL
      for (int v = 0; v < vectors; v++) w[p * vectors + v] = nnd_load_any(weights + p * panel + v * NND_LANES);
      if (packs) {
        NND_UNROLL
        for (int v = 0; v < vectors; v++) nnd_store(packed + v * NND_LANES, w[v]);
        packed += vectors * NND_LANES;
      }
      NND_UNROLL
      for (int r = 0; r < rows; r++) {
        const vf x = nnd_splat(in[r * NND_GEMM_K + i]);
        NND_UNROLL
        for (int v = 0; v < all; v++) sums[r * all + v] += w[v] * x;
      }
      weights += step;
    }
    in += rows * NND_GEMM_K;
  }
  nnd_gemm_end(t, rows, all, sums);
}

/* One row of packed `b`: several sums for each vector, or they would wait for each other. */
NND_INLINE void nnd_gemm_row(int vectors, const struct nnd_gemm_tile *t) {
  const int split = NND_GEMM_SPLIT;
  vf sums[NND_GEMM_SPLIT * NND_PANEL];
  nnd_gemm_begin(t, 1, vectors, sums);
  NND_UNROLL
  for (int v = vectors; v < split * vectors; v++) sums[v] = nnd_splat(0.0f);
  const float *weights = t->weights, *in = t->in;
  nnd_size i = 0;
  NND_NO_UNROLL
  for (; i + split <= t->k; i += split) {
    NND_UNROLL
    for (int s = 0; s < split; s++) {
      const vf x = nnd_splat(in[i + s]);
      NND_UNROLL
      for (int v = 0; v < vectors; v++)
        sums[s * vectors + v] += nnd_load_any(weights + (s * vectors + v) * NND_LANES) * x;
    }
    NND_UNROLL
    for (int f = 0; f < split * vectors * NND_LANES; f += NND_LINE_FLOATS)
      __builtin_prefetch(weights + NND_GEMM_AHEAD + f, 0, 3);
    weights += split * vectors * NND_LANES;
  }
  for (; i < t->k; i++, weights += vectors * NND_LANES) NND_UNROLL
  for (int v = 0; v < vectors; v++) sums[v] += nnd_load_any(weights + v * NND_LANES) * in[i];
  NND_UNROLL
  for (int s = 1; s < split; s++) NND_UNROLL
  for (int v = 0; v < vectors; v++) sums[v] += sums[s * vectors + v];
  nnd_gemm_end(t, 1, vectors, sums);
}

#define NND_STREAMED 8 /* rows of `b` that are read side by side */

/* One row by `b` in place: rows of `b` are read from their beginnings to their ends, as memory likes it; what they add
 * up to waits in the output. */
NND_INLINE void nnd_gemm_streams(int rows, const float *in, nnd_size in_step, const float *b, nnd_size step,
                                 nnd_size columns, float *out) {
  vf x[NND_STREAMED];
  NND_UNROLL
  for (int r = 0; r < rows; r++) x[r] = nnd_splat(in[r * in_step]);
  nnd_size c = 0;
  NND_NO_UNROLL
  for (; c + 2 * NND_LANES <= columns; c += 2 * NND_LANES) {
    vf first = x[0] * nnd_load_any(b + c), second = x[0] * nnd_load_any(b + c + NND_LANES);
    NND_UNROLL
    for (int r = 1; r < rows; r++) {
      first += x[r] * nnd_load_any(b + r * step + c);
      second += x[r] * nnd_load_any(b + r * step + c + NND_LANES);
    }
    nnd_store_any(out + c, nnd_load_any(out + c) + first);
    nnd_store_any(out + c + NND_LANES, nnd_load_any(out + c + NND_LANES) + second);
  }
  for (; c < columns; c += NND_LANES) {
    const nnd_size count = nnd_min(NND_LANES, columns - c);
    vf sum = nnd_splat(0.0f);
    NND_UNROLL
    for (int r = 0; r < rows; r++) sum += x[r] * nnd_load_first(b + r * step + c, count);
    nnd_store_first(out + c, nnd_load_first(out + c, count) + sum, count);
  }
}

#if NND_LANES == 16
#define NND_CROSS(x, with)                                                                                             \
  __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with, 4 ^ with, 5 ^ with, 6 ^ with, 7 ^ with,        \
                          8 ^ with, 9 ^ with, 10 ^ with, 11 ^ with, 12 ^ with, 13 ^ with, 14 ^ with, 15 ^ with)
#elif NND_LANES == 8
#define NND_CROSS(x, with)                                                                                             \
  __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with, 4 ^ with, 5 ^ with, 6 ^ with, 7 ^ with)
#else
#define NND_CROSS(x, with) __builtin_shufflevector(x, x, 0 ^ with, 1 ^ with, 2 ^ with, 3 ^ with)
#endif

NND_INLINE vi nnd_lanes_with(int bit) {
  vi mask;
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i++) mask[i] = i & bit ? -1 : 0;
  return mask;
}

/* Lanes whose number has the bit `with` hold sums of pairs of y's lanes, the others of x's. */
#define NND_DEFINE_FOLD(with)                                                                                          \
  NND_INLINE vf nnd_fold_##with(vf x, vf y) {                                                                          \
    const vi has = nnd_lanes_with(with);                                                                               \
    const vf other = nnd_select(has, x, y);                                                                            \
    return nnd_select(has, y, x) + NND_CROSS(other, with);                                                             \
  }
NND_DEFINE_FOLD(1)
NND_DEFINE_FOLD(2)
#if NND_LANES >= 8
NND_DEFINE_FOLD(4)
#endif
#if NND_LANES == 16
NND_DEFINE_FOLD(8)
#endif

/* The sums of all lanes of up to four vectors, in the first lanes of one. */
NND_INLINE vf nnd_sums_of_lanes(const vf *x, int count) {
  const vf zero = nnd_splat(0.0f);
  const vf b = count > 1 ? x[1] : zero, c = count > 2 ? x[2] : zero, d = count > 3 ? x[3] : zero;
  vf all = nnd_fold_2(nnd_fold_1(x[0], b), nnd_fold_1(c, d));
#if NND_LANES >= 8
  all += NND_CROSS(all, 4);
#endif
#if NND_LANES == 16
  all += NND_CROSS(all, 8);
#endif
  return all;
}

/* Rows lie apart, and so do columns of the weights, both contiguous along k. */
NND_INLINE void nnd_gemm_dots(int rows, int columns, const struct nnd_gemm_tile *t) {
  vf sums[NND_DOT_ROWS][NND_DOT_COLUMNS], x[NND_DOT_ROWS], ended[NND_DOT_ROWS];
  NND_UNROLL
  for (int r = 0; r < rows; r++) NND_UNROLL
  for (int c = 0; c < columns; c++) sums[r][c] = nnd_splat(0.0f);
  nnd_size i = 0;
  NND_NO_UNROLL
  for (; i + NND_LANES <= t->k; i += NND_LANES) {
    NND_UNROLL
    for (int r = 0; r < rows; r++) x[r] = nnd_load_any(t->in + r * t->in_row + i);
    NND_UNROLL
    for (int c = 0; c < columns; c++) {
      const vf w = nnd_load_any(t->weights + c * t->panel + i);
      NND_UNROLL
      for (int r = 0; r < rows; r++) sums[r][c] += w * x[r];
    }
  }
  if (i < t->k) {
    NND_UNROLL
    for (int r = 0; r < rows; r++) x[r] = nnd_load_first(t->in + r * t->in_row + i, t->k - i);
    NND_UNROLL
    for (int c = 0; c < columns; c++) {
      const vf w = nnd_load_first(t->weights + c * t->panel + i, t->k - i);
      NND_UNROLL
      for (int r = 0; r < rows; r++) sums[r][c] += w * x[r];
    }
  }
  const vf bias = t->bias ? nnd_load_first(t->bias, t->columns) : nnd_splat(0.0f);
  NND_UNROLL
  for (int r = 0; r < rows; r++) ended[r] = nnd_sums_of_lanes(sums[r], columns) + bias;
  nnd_gemm_finish(t, rows, 1, ended);
}

#define NND_FITS(rows, vectors) ((rows) * (vectors) <= NND_ACCUMULATORS && (rows) <= NND_GEMM_ROWS)
#define NND_EACH_ROW(X, ...)                                                                                           \
  X(1, __VA_ARGS__)                                                                                                    \
  X(2, __VA_ARGS__)                                                                                                    \
  X(3, __VA_ARGS__)                                                                                                    \
  X(4, __VA_ARGS__)                                                                                                    \
  X(5, __VA_ARGS__)                                                                                                    \
  X(6, __VA_ARGS__)                                                                                                    \
  X(7, __VA_ARGS__)                                                                                                    \
  X(8, __VA_ARGS__)                                                                                                    \
  X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
_Static_assert(NND_GEMM_ROWS <= 14, "more rows than there are kernels");
_Static_assert(NND_PANEL <= 4, "more vectors than there are kernels");

#define NND_DEFINE_WIDE(rows, name, panels, vectors)                                                                   \
  static void nnd_gemm_##name##_##rows(const struct nnd_gemm_tile *t) {                                                \
    if ((rows) == 1 && (panels) == 1)                                                                                  \
      nnd_gemm_row(vectors, t);                                                                                        \
    else if (NND_FITS(rows, (panels) * (vectors)))                                                                     \
      nnd_gemm_wide(rows, panels, vectors, 0, t);                                                                      \
  }
#define NND_LISTED(rows, name, vectors) NND_FITS(rows, vectors) ? nnd_gemm_##name##_##rows : 0,

NND_EACH_ROW(NND_DEFINE_WIDE, two, 2, NND_PANEL)
NND_EACH_ROW(NND_DEFINE_WIDE, four, 4, NND_PANEL)
NND_EACH_ROW(NND_DEFINE_WIDE, one_1, 1, 1)
NND_EACH_ROW(NND_DEFINE_WIDE, one_2, 1, 2)
#if NND_PANEL == 4
NND_EACH_ROW(NND_DEFINE_WIDE, one_3, 1, 3)
NND_EACH_ROW(NND_DEFINE_WIDE, one_4, 1, 4)
#endif

/* One panel of so many vectors, by rows. */
static const nnd_gemm_kernel nnd_gemm_one[NND_PANEL + 1][15] = {
    {0},
    {0, NND_EACH_ROW(NND_LISTED, one_1, 1)},
    {0, NND_EACH_ROW(NND_LISTED, one_2, 2)},
#if NND_PANEL == 4
    {0, NND_EACH_ROW(NND_LISTED, one_3, 3)},
    {0, NND_EACH_ROW(NND_LISTED, one_4, 4)},
#endif
};

/* Two and four panels; null where the sums would not stay in registers. One row has one: its weights
 * come as one stream. */
static const nnd_gemm_kernel nnd_gemm_two[15] = {0, NND_EACH_ROW(NND_LISTED, two, 2 * NND_PANEL)};
static const nnd_gemm_kernel nnd_gemm_four[15] = {0, NND_EACH_ROW(NND_LISTED, four, 4 * NND_PANEL)};

/* The same of one panel, which is packed on the way. */
#define NND_DEFINE_PACKING(rows, vectors)                                                                              \
  static void nnd_gemm_packing_##rows(const struct nnd_gemm_tile *t) {                                                 \
    if (NND_FITS(rows, vectors)) nnd_gemm_wide(rows, 1, vectors, 1, t);                                                \
  }
#define NND_LISTED_PACKING(rows, vectors) NND_FITS(rows, vectors) ? nnd_gemm_packing_##rows : 0,
NND_EACH_ROW(NND_DEFINE_PACKING, NND_PANEL)
static const nnd_gemm_kernel nnd_gemm_packing[15] = {0, NND_EACH_ROW(NND_LISTED_PACKING, NND_PANEL)};

#define NND_DEFINE_DOTS(rows, columns)                                                                                 \
  static void nnd_gemm_dots_##columns##_##rows(const struct nnd_gemm_tile *t) { nnd_gemm_dots(rows, columns, t); }
#define NND_EACH_DOTS(X, columns) X(1, columns) X(2, columns) X(3, columns) X(4, columns)
#define NND_LISTED_DOTS(rows, columns) nnd_gemm_dots_##columns##_##rows,
NND_EACH_DOTS(NND_DEFINE_DOTS, 1)
NND_EACH_DOTS(NND_DEFINE_DOTS, 2)
NND_EACH_DOTS(NND_DEFINE_DOTS, 3)
NND_EACH_DOTS(NND_DEFINE_DOTS, 4)

/* By columns and rows. */
static const nnd_gemm_kernel nnd_gemm_some_dots[NND_DOT_COLUMNS + 1][NND_DOT_ROWS + 1] = {
    {0},
    {0, NND_EACH_DOTS(NND_LISTED_DOTS, 1)},
    {0, NND_EACH_DOTS(NND_LISTED_DOTS, 2)},
    {0, NND_EACH_DOTS(NND_LISTED_DOTS, 3)},
    {0, NND_EACH_DOTS(NND_LISTED_DOTS, 4)},
};

/* Vectors of panel `panel`. */
NND_INLINE int nnd_gemm_vectors(nnd_size columns, nnd_size panel) {
  return (int)nnd_min(NND_PANEL, nnd_blocks(columns - panel * NND_GEMM_COLUMNS));
}

nnd_size nnd_gemm_packed_floats(nnd_size inner, nnd_size columns) { return inner * nnd_blocks(columns) * NND_LANES; }

/* `k` by `columns` of `b` as a panel, or as a part of one. */
static void nnd_gemm_pack_panel(nnd_size k, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column,
                                float *to) {
  const nnd_size wide = nnd_blocks(columns) * NND_LANES;
  nnd_size done = 0;
  if (b_column == 1) {
    for (; done < k; done++, b += b_step, to += wide) {
      nnd_size c = 0;
      for (; c + NND_LANES <= columns; c += NND_LANES) nnd_store(to + c, nnd_load_any(b + c));
      if (c < columns) nnd_store(to + c, nnd_load_first(b + c, columns - c));
    }
    return;
  }
  if (b_step == 1)
    for (; done < k; done += NND_LANES)
      for (nnd_size c = 0; c < wide; c += NND_LANES) {
        const nnd_size some = nnd_min(NND_LANES, k - done);
        const float *from = b + c * b_column + done;
        vf rows[NND_LANES];
        NND_UNROLL
        for (int i = 0; i < NND_LANES; i++, from += b_column)
          rows[i] = c + i >= columns    ? nnd_splat(0.0f)
                    : some == NND_LANES ? nnd_load_any(from)
                                        : nnd_load_first(from, some);
        nnd_transpose(rows);
        NND_UNROLL
        for (int i = 0; i < NND_LANES; i++)
          if (i < some) nnd_store(to + (done + i) * wide + c, rows[i]);
      }
  for (; done < k; done++) {
    for (nnd_size c = 0; c < columns; c++) to[done * wide + c] = b[done * b_step + c * b_column];
    for (nnd_size c = columns; c < wide; c++) to[done * wide + c] = 0.0f;
  }
}

void nnd_gemm_pack(nnd_size inner, nnd_size columns, const float *b, nnd_size b_step, nnd_size b_column, nnd_size first,
                   nnd_size last, float *to) {
  for (nnd_size k = first; k < last; k += NND_PACKED_ROWS)
    for (nnd_size c = 0; c < columns; c += NND_GEMM_COLUMNS) {
      const nnd_size some = nnd_min(NND_GEMM_COLUMNS, columns - c);
      nnd_gemm_pack_panel(nnd_min(NND_PACKED_ROWS, last - k), some, b + k * b_step + c * b_column, b_step, b_column,
                          to + c * inner + k * nnd_blocks(some) * NND_LANES);
    }
}

/* `rows` rows as one tile. */
static void nnd_gemm_pack_tile(nnd_size rows, nnd_size k, const float *a, nnd_size a_row, nnd_size a_step, float *to) {
  for (nnd_size i = 0; i < k; i += NND_GEMM_K, a += NND_GEMM_K * a_step) {
    const nnd_size count = nnd_min(NND_GEMM_K, k - i);
    const float *from = a;
    for (nnd_size r = 0; r < rows; r++, from += a_row, to += NND_GEMM_K) {
      if (a_step == 1 && count == NND_GEMM_K)
        memcpy(to, from, NND_GEMM_K * sizeof(float));
      else
        for (nnd_size j = 0; j < count; j++) to[j] = from[j * a_step];
    }
  }
}

nnd_size nnd_gemm_plan(struct nnd_gemm *g, int is_packed, struct nnd_gemm_caches caches, int threads,
                       nnd_size products) {
  const int is_narrow = nnd_gemm_is_narrow(g->columns);
  const int may_dot = g->b_step == 1 && g->a_step == 1 && (g->rows <= NND_DOT_ROWS || is_narrow);
  const nnd_size most = caches.rows / 4 / (nnd_size)sizeof(float); /* floats of packed rows */
  const nnd_size of_parts = caches.machine / 4 / (nnd_size)sizeof(float);
  if (NND_HAS_TILES && g->has_tiles) return nnd_gemm_plan_tiles(g, caches, threads, products);
  g->parts = 1, g->part = g->inner;
  if (g->bits && (g->rows <= NND_FEW_FOR_BITS || g->bits->rounds_rows)) {
    const nnd_size row_bytes = nnd_bits_ready_floats(g->bits, 1) * (nnd_size)sizeof(float);
    const nnd_size held = nnd_max(NND_BITS_ROWS, caches.rows / 2 / row_bytes);
    g->b_kind = NND_B_FEW_BITS;
    g->groups = g->rows <= NND_FEW_FOR_BITS ? 1 : nnd_ceil_div(g->rows, held);
    g->tiles = g->groups;
    g->panels = nnd_blocks(g->columns);
    g->tile_floats = 0;
    return nnd_ceil_div(g->rows, g->groups) * row_bytes;
  }
  if (!g->bits && may_dot && (!is_packed || is_narrow)) {
    g->b_kind = NND_B_DOTS;
    g->tiles = g->groups = nnd_ceil_div(g->rows, NND_DOT_ROWS);
    g->panels = nnd_ceil_div(g->columns, NND_DOT_COLUMNS);
    g->tile_floats = 0;
    return 0;
  }
  is_packed = g->bits || (is_packed && !is_narrow); /* few columns are kept as they are for dots */
  g->b_kind = g->bits                                        ? NND_B_BITS
              : is_packed                                    ? NND_B_PANELS
              : g->b_column == 1 && g->rows <= NND_GEMM_ROWS ? NND_B_IN_PLACE
                                                             : NND_B_TO_PACK;
  g->tiles = g->groups = nnd_ceil_div(g->rows, NND_GEMM_ROWS);
  g->panels = nnd_ceil_div(g->columns, NND_GEMM_COLUMNS);
  g->tile_floats = 0;
  if (g->b_kind == NND_B_IN_PLACE && g->rows == 1) {
    g->b_kind = NND_B_STREAMS;
    return 0;
  }
  const nnd_size rows = nnd_min(g->rows, NND_GEMM_ROWS);
  nnd_size longest = g->tiles > 1 ? NND_GEMM_PART : nnd_max(NND_GEMM_PART, nnd_min(NND_GEMM_LONGEST, of_parts / rows));
  if (!is_packed)
    longest = nnd_min(longest, NND_GEMM_PART_IN_PLACE * nnd_max(1, NND_PAGE_FLOATS / nnd_max(1, g->b_step)));
  if (g->bits) longest = nnd_min(longest, nnd_max(NND_GEMM_LEAST_OF_BITS, of_parts / (g->tiles * NND_GEMM_ROWS)));
  g->part = nnd_gemm_padded(nnd_ceil_div(g->inner, nnd_ceil_div(g->inner, longest)));
  if (g->bits) g->part = nnd_min(g->inner, nnd_ceil_div(g->part, g->bits->piece) * g->bits->piece);
  g->parts = nnd_ceil_div(g->inner, g->part);
  const nnd_size of_tile = NND_GEMM_ROWS * nnd_gemm_padded(g->part);
  g->by_thirds = !g->a_is_packed && nnd_thirds_pay(g->rows, g->inner, g->columns);
  const nnd_size thirds_of_tile = nnd_thirds_bytes(NND_GEMM_ROWS, g->part);
  g->groups = nnd_ceil_div(g->tiles, nnd_max(1, g->by_thirds ? caches.rows / 2 / thirds_of_tile : most / of_tile));
  /* as many units as let threads share them evenly; each group cuts the weights anew, and few rows fill no strips */
  const nnd_size units = (g->by_thirds ? NND_THIRDS_UNITS : 8) * threads;
  if (threads > 1)
    g->groups = nnd_max(g->groups, nnd_min(g->tiles, nnd_ceil_div(units, nnd_max(1, g->panels * products))));
  const int is_there = g->a_is_packed || (g->rows == 1 && g->a_step == 1);
  const nnd_size tiles_at_once = nnd_ceil_div(g->tiles, g->groups), panel = g->part * NND_GEMM_COLUMNS;
  g->tile_floats = is_there ? 0 : tiles_at_once * of_tile;
  if (g->by_thirds) g->tile_floats = nnd_max(g->tile_floats, nnd_gemm_thirds_floats(tiles_at_once * rows, g->part));
  return (g->tile_floats + (g->b_kind == NND_B_PANELS ? 0 : panel)) * (nnd_size)sizeof(float);
}

/* Ends `columns` sums of one row, from `column` on, that lie in the output. */
static void nnd_gemm_end_row(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size column,
                             nnd_size columns) {
  if (g->end.kind == NND_END_PLAIN && !g->end.adds && !d->bias) return;
  for (nnd_size last = column + columns; column < last; column += NND_AT_ONCE * NND_LANES) {
    const nnd_size some = nnd_min(NND_AT_ONCE * NND_LANES, last - column);
    const struct nnd_gemm_tile t = {.columns = some,
                                    .numbers = d->numbers ? d->numbers + column : NULL,
                                    .residual = d->residual ? d->residual + column : NULL,
                                    .out = d->out + column,
                                    .end = &g->end};
    vf sums[NND_AT_ONCE];
    for (int v = 0; v < nnd_blocks(some); v++) {
      const nnd_size at = v * NND_LANES, count = some - at;
      sums[v] = nnd_load_first(t.out + at, count);
      if (d->bias) sums[v] += nnd_load_first(d->bias + column + at, count);
    }
    nnd_gemm_finish(&t, 1, (int)nnd_blocks(some), sums);
  }
}

/* Columns [column, last) of one row, contiguous along k as the row is. */
static void nnd_gemm_dots_of_row(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size column,
                                 nnd_size last) {
  const nnd_size apart = g->b_column, vectors = g->inner / NND_LANES * NND_LANES, left = g->inner - vectors;
  for (nnd_size begin = column; begin < last; begin += NND_DOT_COLUMNS) {
    const int some = (int)nnd_min(NND_DOT_COLUMNS, last - begin);
    const float *at[NND_DOT_COLUMNS];
    vf sums[NND_DOT_COLUMNS];
    NND_UNROLL
    for (int c = 0; c < NND_DOT_COLUMNS; c++) {
      at[c] = d->b + (begin + nnd_min(c, some - 1)) * apart;
      sums[c] = nnd_splat(0.0f);
      __builtin_prefetch(at[c] + NND_DOTS_AHEAD * apart, 0, 3);
    }
    for (nnd_size k = 0; k < vectors; k += NND_LANES) {
      const vf x = nnd_load_any(d->a + k);
      NND_UNROLL
      for (int c = 0; c < NND_DOT_COLUMNS; c++) sums[c] += x * nnd_load_any(at[c] + k);
    }
    if (left) {
      const vf x = nnd_load_first(d->a + vectors, left);
      NND_UNROLL
      for (int c = 0; c < NND_DOT_COLUMNS; c++) sums[c] += x * nnd_load_first(at[c] + vectors, left);
    }
    const vf all = nnd_sums_of_lanes(sums, NND_DOT_COLUMNS);
    memcpy(d->out + begin, &all, (size_t)some * sizeof(float));
  }
  nnd_gemm_end_row(g, d, column, last - column);
}

static void nnd_gemm_run_dots(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size first, nnd_size last) {
  if (g->rows == 1) {
    nnd_gemm_dots_of_row(g, d, first * NND_DOT_COLUMNS, nnd_min(last * NND_DOT_COLUMNS, g->columns));
    return;
  }
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size row = nnd_gemm_at(g, unit / g->panels), column = unit % g->panels * NND_DOT_COLUMNS;
    const nnd_size rows = nnd_gemm_at(g, unit / g->panels + 1) - row;
    const nnd_size columns = nnd_min(NND_DOT_COLUMNS, g->columns - column);
    const nnd_size at = row * g->out_row + column;
    const struct nnd_gemm_tile t = {.in = d->a + row * g->a_row,
                                    .in_row = g->a_row,
                                    .weights = d->b + column * g->b_column,
                                    .panel = g->b_column,
                                    .k = g->inner,
                                    .columns = columns,
                                    .bias = d->bias ? d->bias + column : NULL,
                                    .numbers = d->numbers ? d->numbers + column : NULL,
                                    .residual = d->residual ? d->residual + at : NULL,
                                    .out = d->out + at,
                                    .out_row = g->out_row,
                                    .end = &g->end};
    nnd_gemm_some_dots[columns][rows](&t);
  }
}

/* The columns of the panels [first, last) of one row by `b` in place. */
static void nnd_gemm_run_streams(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size first,
                                 nnd_size last) {
  const nnd_size column = first * NND_GEMM_COLUMNS, columns = nnd_min(last * NND_GEMM_COLUMNS, g->columns) - column;
  const float *b = d->b + column;
  float *out = d->out + column;
  memset(out, 0, (size_t)columns * sizeof(float));
  nnd_size k = 0;
  for (; k + NND_STREAMED <= g->inner; k += NND_STREAMED)
    nnd_gemm_streams(NND_STREAMED, d->a + k * g->a_step, g->a_step, b + k * g->b_step, g->b_step, columns, out);
  for (; k < g->inner; k++)
    nnd_gemm_streams(1, d->a + k * g->a_step, g->a_step, b + k * g->b_step, g->b_step, columns, out);
  nnd_gemm_end_row(g, d, column, columns);
}

/* Writes the sums of rows by one vector of columns. */
NND_INLINE void nnd_gemm_end_vector(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size row,
                                    nnd_size rows, nnd_size vector, vf *sums) {
  const nnd_size column = vector * NND_LANES, at = row * g->out_row + column;
  const struct nnd_gemm_tile t = {.columns = nnd_min(NND_LANES, g->columns - column),
                                  .numbers = d->numbers ? d->numbers + column : NULL,
                                  .residual = d->residual ? d->residual + at : NULL,
                                  .out = d->out + at,
                                  .out_row = g->out_row,
                                  .end = &g->end};
  nnd_gemm_finish(&t, (int)rows, 1, sums);
}

NND_INLINE vf nnd_gemm_bias(const struct nnd_gemm_data *d, nnd_size vector) {
  return d->bias ? nnd_load(d->bias + vector * NND_LANES) : nnd_splat(0.0f);
}

/* The vectors of columns [first, last) of a group of rows by weights of few bits; of one row some at once, which lie
 * far apart. */
static void nnd_gemm_run_few_bits(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group,
                                  nnd_size first, nnd_size last, float *scratch) {
  const nnd_size begin = nnd_even(g->rows, g->groups, group), end = nnd_even(g->rows, g->groups, group + 1);
  const nnd_size number = d->first_group + group;
  if (!d->held || *d->held != number)
    for (nnd_size row = begin; row < end; row += NND_BITS_ROWS)
      nnd_bits_make_ready(g->bits, nnd_min(NND_BITS_ROWS, end - row), d->a + row * g->a_row, g->a_row, g->a_step,
                          scratch + nnd_bits_ready_floats(g->bits, row - begin));
  if (d->held) *d->held = number;
  const nnd_size apart = end - begin == 1 ? (last - first) / NND_BITS_STREAMS : 0;
  for (nnd_size vector = first; vector < first + apart; vector++) {
    vf sums[NND_BITS_STREAMS];
    for (int i = 0; i < NND_BITS_STREAMS; i++) sums[i] = nnd_gemm_bias(d, vector + i * apart);
    nnd_bits_streams(g->bits, vector, apart, scratch, sums);
    for (int i = 0; i < NND_BITS_STREAMS; i++) nnd_gemm_end_vector(g, d, begin, 1, vector + i * apart, sums + i);
  }
  for (nnd_size vector = first + NND_BITS_STREAMS * apart; vector < last; vector++)
    for (nnd_size row = begin; row < end; row += NND_BITS_ROWS) {
      const nnd_size rows = nnd_min(NND_BITS_ROWS, end - row);
      vf sums[NND_BITS_ROWS];
      for (nnd_size r = 0; r < rows; r++) sums[r] = nnd_gemm_bias(d, vector);
      nnd_bits_sums(g->bits, vector, rows, scratch + nnd_bits_ready_floats(g->bits, row - begin), sums);
      nnd_gemm_end_vector(g, d, row, rows, vector, sums);
    }
}

/* A panel of weights of few bits as floats. */
static void nnd_gemm_unpack_panel(const struct nnd_gemm *g, nnd_size panel, nnd_size begin, nnd_size k, float *to) {
  const int vectors = nnd_gemm_vectors(g->columns, panel);
  for (int v = 0; v < vectors; v++)
    nnd_bits_unpack(g->bits, panel * NND_PANEL + v, begin / g->bits->piece, k, to + v * NND_LANES, vectors * NND_LANES);
}

/* A part of the sums of a group of tiles, for the panels [panel, end). */
static void nnd_gemm_group(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group, nnd_size part,
                           nnd_size panel, nnd_size end, float *scratch) {
  const nnd_size first = nnd_even(g->tiles, g->groups, group), last = nnd_even(g->tiles, g->groups, group + 1);
  const nnd_size tiles = last - first;
  const nnd_size begin = part * g->part, k = nnd_min(g->part, g->inner - begin), padded = nnd_gemm_padded(k);
  const nnd_size top = nnd_gemm_at(g, first), most = nnd_ceil_div(g->rows, g->tiles);
  const nnd_size pitch = g->a_is_packed ? nnd_gemm_padded(g->inner) : padded;
  const float *in = g->a_is_packed ? d->a + top * pitch : d->a + top * g->a_row + begin * g->a_step;
  const nnd_size number = d->first_group + group;
  if (g->tile_floats && d->held && *d->held == number && g->parts == 1) {
    in = scratch;
  } else if (g->tile_floats) {
    float *to = scratch;
    for (nnd_size tile = first; tile < last; tile++) {
      const nnd_size row = nnd_gemm_at(g, tile), rows = nnd_gemm_at(g, tile + 1) - row;
      nnd_gemm_pack_tile(rows, k, d->a + row * g->a_row + begin * g->a_step, g->a_row, g->a_step, to);
      to += rows * padded;
    }
    in = scratch;
    if (d->held) *d->held = number;
  }
  while (panel < end) {
    const nnd_size column = panel * NND_GEMM_COLUMNS, full = g->columns / NND_GEMM_COLUMNS;
    const int vectors = nnd_gemm_vectors(g->columns, panel);
    int wide = 1, packs = 0;
    if (g->b_kind != NND_B_TO_PACK && g->b_kind != NND_B_BITS && tiles == 1 && g->rows > 1) {
      if (panel + 4 <= nnd_min(end, full) && nnd_gemm_four[most])
        wide = 4;
      else if (panel + 2 <= nnd_min(end, full) && nnd_gemm_two[most])
        wide = 2;
    }
    struct nnd_gemm_tile t = {.k = k,
                              .columns = nnd_min(wide * NND_GEMM_COLUMNS, g->columns - column),
                              .step = vectors * NND_LANES,
                              .panel = g->inner * NND_GEMM_COLUMNS,
                              .bias = d->bias ? d->bias + column : NULL,
                              .numbers = d->numbers ? d->numbers + column : NULL,
                              .out_row = g->out_row,
                              .adds = part > 0,
                              .end = part + 1 < g->parts ? NULL : &g->end,
                              .ahead = NND_GEMM_AHEAD};
    if (g->b_kind == NND_B_PANELS) {
      t.weights = d->b + column * g->inner + begin * t.step;
      t.next = (const char *)(t.weights + t.panel);
      t.next_step = nnd_max(1, t.step * (nnd_size)sizeof(float) / tiles);
    } else if (g->b_kind == NND_B_IN_PLACE && panel < full) {
      t.weights = d->b + begin * g->b_step + column;
      t.step = g->b_step, t.panel = NND_GEMM_COLUMNS;
      t.ahead = wide * NND_GEMM_COLUMNS + NND_LAST_OF_LINE;
      t.next = (const char *)(t.weights + t.ahead);
      t.next_step = t.step * (nnd_size)sizeof(float);
    } else if (g->b_kind == NND_B_BITS) {
      nnd_gemm_unpack_panel(g, panel, begin, k, scratch + g->tile_floats);
      t.weights = scratch + g->tile_floats;
      t.next = (const char *)t.weights;
    } else {
      t.packed = scratch + g->tile_floats;
      t.weights = t.packed;
      t.next = (const char *)t.packed;
      packs = g->b_column == 1 && panel < full;
      if (packs) {
        t.weights = d->b + begin * g->b_step + column;
        t.step = g->b_step;
        t.next_step = t.step * (nnd_size)sizeof(float);
        t.next = (const char *)(t.weights + NND_GEMM_COLUMNS + NND_LAST_OF_LINE);
      } else {
        nnd_gemm_pack_panel(k, t.columns, d->b + begin * g->b_step + column * g->b_column, g->b_step, g->b_column,
                            t.packed);
      }
    }
    const nnd_gemm_kernel *kernels = wide == 4 ? nnd_gemm_four : wide == 2 ? nnd_gemm_two : nnd_gemm_one[vectors];
    for (nnd_size tile = first; tile < last; tile++) {
      const nnd_size row = nnd_gemm_at(g, tile), rows = nnd_gemm_at(g, tile + 1) - row, at = row * g->out_row + column;
      t.in = in + (row - top) * pitch + (g->a_is_packed ? rows * begin : 0);
      t.out = d->out + at;
      t.residual = d->residual ? d->residual + at : NULL;
      if (packs) { /* the first tile packs this panel and fetches the next one */
        nnd_gemm_packing[rows](&t);
        packs = 0;
        t.weights = t.packed, t.step = NND_GEMM_COLUMNS;
        t.next = (const char *)t.packed, t.next_step = 0;
      } else {
        kernels[rows](&t);
        t.next += t.next_step * k;
      }
    }
    panel += wide;
  }
}

/* The k from `begin` on of a packed panel. */
NND_INLINE const float *nnd_gemm_floats(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size panel,
                                        nnd_size begin) {
  return d->b + panel * NND_GEMM_COLUMNS * g->inner + begin * nnd_gemm_vectors(g->columns, panel) * NND_LANES;
}

/* The same where scratch held thirds, and does not any more. */
static void nnd_gemm_group_instead(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group,
                                   nnd_size part, nnd_size panel, nnd_size end, char *scratch) {
  if (d->held) *d->held = -1;
  nnd_gemm_group(g, d, group, part, panel, end, (float *)scratch);
  if (d->held) *d->held = -1;
}

/* The same in thirds. Where a panel holds what is not finite it is left to multiply-adds, and all panels where the rows
 * do. */
static void nnd_gemm_group_in_thirds(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size group,
                                     nnd_size part, nnd_size panel, nnd_size end, char *scratch) {
#if NND_HAS_THIRDS
  const nnd_size begin = part * g->part, k = nnd_min(g->part, g->inner - begin);
  float *made = (float *)scratch + g->tile_floats;
  struct nnd_gemm_thirds t;
  while (panel < end && nnd_gemm_begin_thirds(&t, g, d, group, part, scratch)) {
    int is_finite = 1;
    for (; is_finite && panel < end; panel += is_finite) {
      const nnd_size column = panel * NND_GEMM_COLUMNS, columns = nnd_min(NND_GEMM_COLUMNS, g->columns - column);
      const float *floats = made, *next = NULL;
      if (g->b_kind == NND_B_PANELS) {
        floats = nnd_gemm_floats(g, d, panel, begin);
        if (panel + 1 < end) next = nnd_gemm_floats(g, d, panel + 1, begin);
      } else if (g->b_kind == NND_B_BITS)
        nnd_gemm_unpack_panel(g, panel, begin, k, made);
      else
        nnd_gemm_pack_panel(k, columns, d->b + begin * g->b_step + column * g->b_column, g->b_step, g->b_column, made);
      is_finite = nnd_gemm_panel_in_thirds(&t, panel, floats, next);
    }
    nnd_gemm_end_thirds(&t);
    if (is_finite) return;
    nnd_gemm_group_instead(g, d, group, part, panel, panel + 1, scratch);
    panel++;
  }
#endif
  if (panel < end) nnd_gemm_group_instead(g, d, group, part, panel, end, scratch);
}

void nnd_gemm_run(const struct nnd_gemm *g, const struct nnd_gemm_data *d, nnd_size first, nnd_size last,
                  char *scratch) {
  if (g->b_kind == NND_B_DOTS) {
    nnd_gemm_run_dots(g, d, first, last);
    return;
  }
  if (g->b_kind == NND_B_STREAMS) {
    nnd_gemm_run_streams(g, d, first, last);
    return;
  }
  while (first < last) {
    const nnd_size group = first / g->panels, panel = first % g->panels, end = nnd_min(g->panels, panel + last - first);
    if (NND_HAS_TILES && g->b_kind == NND_B_TILES)
      nnd_gemm_run_tiles(g, d, group, panel, end, scratch);
    else if (g->b_kind == NND_B_FEW_BITS)
      nnd_gemm_run_few_bits(g, d, group, panel, end, (float *)scratch);
    else
      for (nnd_size part = 0; part < g->parts; part++)
        if (g->by_thirds)
          nnd_gemm_group_in_thirds(g, d, group, part, panel, end, scratch);
        else
          nnd_gemm_group(g, d, group, part, panel, end, (float *)scratch);
    first += end - panel;
  }
}
