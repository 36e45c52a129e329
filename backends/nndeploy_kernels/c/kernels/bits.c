/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/bits.h"

#include "base/operators.h"
#include "kernels/int8_ways.h"

#define NND_BITS_PIECE(bits) ((bits) == 4 ? 128 : 64) /* the most numbers */
#define NND_BITS_AHEAD 2048                           /* bytes of words that are fetched before they are read */

typedef uint32_t nnd_bits_words __attribute__((vector_size(4 * NND_LANES)));
typedef int8_t nnd_bits_eight __attribute__((vector_size(8), aligned(1)));
typedef int8_t nnd_bits_four __attribute__((vector_size(4), aligned(1)));
typedef uint8_t nnd_bits_bytes __attribute__((vector_size(NND_LANES)));

nnd_size nnd_bits_piece(int bits, nnd_size block, nnd_size inner) {
  if (bits == 16) return 1;
  const nnd_size most = NND_BITS_PIECE(bits);
  if (block <= most) return block;
  return block % most == 0 || block >= inner ? most : 0;
}

NND_INLINE uint32_t nnd_bits_number(const uint8_t *from, int bits, nnd_size at) {
  return bits == 4 ? from[at >> 1] >> (at & 1) * 4 & 15u : from[at];
}

static void nnd_bits_pack_halves(const struct nnd_bits *b, const struct nnd_bits_source *from, nnd_size first,
                                 nnd_size last, uint16_t *to) {
  const uint16_t *numbers = from->numbers;
  to += first * b->inner * NND_LANES;
  for (nnd_size vector = first; vector < last; vector++)
    for (nnd_size k = 0; k < b->inner; k++, to += NND_LANES) {
      const nnd_size column = vector * NND_LANES, columns = nnd_min(NND_LANES, b->columns - column);
      const uint16_t *at = numbers + k * from->k_step + column * from->column_step;
      for (nnd_size c = 0; c < NND_LANES; c++) to[c] = c < columns ? at[c * from->column_step] : 0;
    }
}

void nnd_bits_pack_numbers(const struct nnd_bits *b, const struct nnd_bits_source *from, nnd_size first, nnd_size last,
                           void *packed) {
  if (b->bits == 16) {
    nnd_bits_pack_halves(b, from, first, last, packed);
    return;
  }
  const uint8_t *numbers = from->numbers;
  uint32_t *to = packed;
  const int bits = b->bits;
  const nnd_size each = nnd_bits_a_word(bits);
  uint32_t flips = 0;
  for (nnd_size j = 0; j < each; j++) flips |= from->flip << j * bits;
  to += first * b->pieces * b->words * NND_LANES;
  for (nnd_size vector = first; vector < last; vector++)
    for (nnd_size piece = 0; piece < b->pieces; piece++) {
      const nnd_size end = nnd_min(b->inner, (piece + 1) * b->piece);
      for (nnd_size word = 0; word < b->words; word++, to += NND_LANES) {
        const nnd_size begin = piece * b->piece + word * each, count = nnd_min(each, end - begin);
        for (int lane = 0; lane < NND_LANES; lane++) {
          const nnd_size column = vector * NND_LANES + lane;
          const nnd_size at = column * from->column_step + begin * from->k_step;
          uint32_t made = 0;
          if (column < b->columns && count == each && from->k_step == 1 && at * bits % 8 == 0) {
            memcpy(&made, numbers + at * bits / 8, sizeof made);
            made ^= flips;
          } else if (column < b->columns)
            for (nnd_size j = 0; j < count; j++)
              made |= (nnd_bits_number(numbers, bits, at + j * from->k_step) ^ from->flip) << j * bits;
          to[lane] = made;
        }
      }
    }
}

void nnd_bits_pack_scales(const struct nnd_bits *b, const struct nnd_bits_source *from, float *scales, uint8_t *zeros,
                          float *float_zeros) {
  for (nnd_size vector = 0; vector < nnd_blocks(b->columns); vector++)
    for (nnd_size piece = 0; piece < b->pieces; piece++) {
      const nnd_size to = (vector * b->pieces + piece) * NND_LANES, block = piece * b->piece / from->block;
      for (int lane = 0; lane < NND_LANES; lane++) {
        const nnd_size column = nnd_min(vector * NND_LANES + lane, b->columns - 1);
        const nnd_size of_zero = block * from->zero_step + column * from->zero_column;
        scales[to + lane] = from->scales[block * from->scale_step + column * from->scale_column];
        if (zeros) zeros[to + lane] = (uint8_t)(nnd_bits_number(from->zeros, b->bits, of_zero) ^ from->flip);
        if (float_zeros) float_zeros[to + lane] = from->float_zeros[of_zero] + (float)from->flip;
      }
    }
}

/* What is left of a number of a word when the mask has it: it is so many times too large. */
NND_INLINE int nnd_bits_shift(int bits, int j) { return bits * (j < 32 / bits - 1 ? j : j - 1); }

NND_INLINE vf nnd_bits_float(int bits, int j, nnd_bits_words word, nnd_bits_words down) {
  const uint32_t mask = ((1u << bits) - 1) << nnd_bits_shift(bits, j);
  return __builtin_convertvector((vi)((j < 32 / bits - 1 ? word : down) & mask), vf);
}

NND_INLINE vf nnd_bits_zero(const struct nnd_bits *b, nnd_size at) {
  if (b->zeros) return __builtin_convertvector(*(const nnd_bits_bytes *)(b->zeros + at), vf);
  return b->float_zeros ? nnd_load(b->float_zeros + at) : nnd_splat(b->zero);
}

/* Of each piece: its numbers, of all rows each, and then their sums. Of rounded rows: words of every second byte of
 * eight, in the place of floats, then the scales, and sums of bytes: floats where columns have zeros of their own, else
 * what the zero of all takes from a sum, whole, with which it begins. */
nnd_size nnd_bits_ready_floats(const struct nnd_bits *b, nnd_size rows) {
  if (b->rounds_rows) return b->pieces * (b->words + 1) * 2 * rows;
  return b->bits == 16 ? b->inner * rows : b->pieces * (b->words * nnd_bits_a_word(b->bits) + 1) * rows;
}

/* Bytes of `count` floats, zeros behind them in all `vectors`, their sum, and their scale: not a number where one of them
 * is no finite one, whose bits are the largest. */
static float nnd_bits_round(const float *from, nnd_size count, nnd_size step, int vectors, int8_t *to, int32_t *sum) {
  typedef int8_t bytes __attribute__((vector_size(NND_LANES)));
  vf x[NND_BITS_PIECE(4) / NND_LANES];
  vi most = {0}, whole = {0};
  const int is_whole = step == 1 && count == vectors * NND_LANES;
  for (int v = 0; v < vectors; v++) x[v] = is_whole ? nnd_load_any(from + v * NND_LANES) : nnd_splat(0.0f);
  for (nnd_size k = 0; !is_whole && k < count; k++) ((float *)x)[k] = from[k * step];
  for (int v = 0; v < vectors; v++) most = __builtin_elementwise_max(most, (vi)nnd_op_abs(x[v]));
  const int32_t bits = __builtin_reduce_max(most);
  float largest;
  memcpy(&largest, &bits, sizeof largest);
  const float other = largest - largest;
  const vf inverse = nnd_splat(largest > 0.0f && other == 0.0f ? 127.0f / largest : 0.0f);
  for (int v = 0; v < vectors; v++) {
    const bytes made = __builtin_convertvector(__builtin_convertvector(nnd_op_round(x[v] * inverse), vi), bytes);
    memcpy(to + v * NND_LANES, &made, sizeof made);
    whole += __builtin_convertvector(made, vi);
  }
  *sum = __builtin_reduce_add(whole);
  return largest / 127.0f + other;
}

static void nnd_bits_make_bytes(const struct nnd_bits *b, nnd_size rows, const float *a, nnd_size a_row,
                                nnd_size a_step, float *to) {
  const int vectors = (int)nnd_ceil_div(8 * b->words, NND_LANES), has_zeros = b->zeros || b->float_zeros;
  for (nnd_size piece = 0; piece < b->pieces; piece++, to += (b->words + 1) * 2 * rows)
    for (nnd_size r = 0; r < rows; r++) {
      int8_t bytes[NND_BITS_PIECE(4)];
      const nnd_size begin = piece * b->piece, count = nnd_min(b->piece, b->inner - begin);
      int32_t sum;
      const float scale = nnd_bits_round(a + r * a_row + begin * a_step, count, a_step, vectors, bytes, &sum);
      for (nnd_size word = 0; word < b->words; word++) {
        const nnd_bits_eight eight = *(const nnd_bits_eight *)(bytes + word * 8);
        const nnd_bits_four even = __builtin_shufflevector(eight, eight, 0, 2, 4, 6);
        const nnd_bits_four odd = __builtin_shufflevector(eight, eight, 1, 3, 5, 7);
        memcpy(to + word * 2 * rows + r, &even, sizeof even);
        memcpy(to + (word * 2 + 1) * rows + r, &odd, sizeof odd);
      }
      const int32_t taken = -(int32_t)b->zero * sum;
      float *end = to + b->words * 2 * rows + r;
      end[0] = scale, end[rows] = (float)sum;
      if (!has_zeros) memcpy(end + rows, &taken, sizeof taken);
    }
}

void nnd_bits_make_ready(const struct nnd_bits *b, nnd_size rows, const float *a, nnd_size a_row, nnd_size a_step,
                         float *to) {
  if (b->rounds_rows) {
    nnd_bits_make_bytes(b, rows, a, a_row, a_step, to);
    return;
  }
  const int each = (int)nnd_bits_a_word(b->bits);
  if (b->bits == 16) {
    for (nnd_size k = 0; k < b->inner; k++)
      for (nnd_size r = 0; r < rows; r++) to[k * rows + r] = a[r * a_row + k * a_step];
    return;
  }
  float powers[8];
  for (int j = 0; j < each; j++) powers[j] = 1.0f / (float)(1 << nnd_bits_shift(b->bits, j));
  const nnd_size padded = b->words * each;
  for (nnd_size piece = 0; piece < b->pieces; piece++, to += (padded + 1) * rows)
    for (nnd_size r = 0; r < rows; r++) {
      const nnd_size count = nnd_min(b->piece, b->inner - piece * b->piece);
      const float *from = a + r * a_row + piece * b->piece * a_step;
      float sums[8] = {0};
      nnd_size k = 0;
      for (; k + each <= count; k += each)
        for (int j = 0; j < each; j++) {
          const float x = from[(k + j) * a_step];
          sums[j] += x;
          to[(k + j) * rows + r] = x * powers[j];
        }
      for (int j = 0; k < padded; k++, j = (j + 1) % each) {
        const float x = k < count ? from[k * a_step] : 0.0f;
        sums[j] += x;
        to[k * rows + r] = x * powers[j];
      }
      to[padded * rows + r] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
}

/* One row has four sums of a piece, few rows two: they would wait for each other. */
NND_INLINE void nnd_bits_dots(int bits, int rows, const struct nnd_bits *b, nnd_size vector, const float *ready,
                              vf *sums) {
  const int each = 32 / bits, split = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
  const nnd_size first = vector * b->pieces;
  const uint32_t *words = (const uint32_t *)b->numbers + first * b->words * NND_LANES;
  vf total[NND_BITS_ROWS];
  NND_UNROLL
  for (int r = 0; r < rows; r++) total[r] = sums[r];
  for (nnd_size piece = 0; piece < b->pieces; piece++) {
    vf dots[NND_BITS_ROWS * 4];
    NND_UNROLL
    for (int i = 0; i < rows * split; i++) dots[i] = nnd_splat(0.0f);
    NND_NO_UNROLL
    for (nnd_size w = 0; w < b->words; w++) {
      const nnd_bits_words word = *(const nnd_bits_words *)words, down = word >> (uint32_t)bits;
      __builtin_prefetch((const char *)words + NND_BITS_AHEAD, 0, 3);
      words += NND_LANES;
      NND_UNROLL
      for (int j = 0; j < each; j++) {
        const vf n = nnd_bits_float(bits, j, word, down);
        NND_UNROLL
        for (int r = 0; r < rows; r++) dots[r * split + j % split] += n * ready[j * rows + r];
      }
      ready += each * rows;
    }
    const nnd_size at = (first + piece) * NND_LANES;
    const vf scale = nnd_load(b->scales + at), zero = nnd_bits_zero(b, at);
    NND_UNROLL
    for (int r = 0; r < rows; r++) {
      vf dot = dots[r * split];
      NND_UNROLL
      for (int s = 1; s < split; s++) dot += dots[r * split + s];
      total[r] += scale * (dot - zero * ready[r]);
    }
    ready += rows;
  }
  NND_UNROLL
  for (int r = 0; r < rows; r++) sums[r] = total[r];
}

/* The same of float16. */
NND_INLINE void nnd_halves_dots(int rows, const struct nnd_bits *b, nnd_size vector, const float *ready, vf *sums) {
  const int split = rows == 1 ? 4 : rows <= 4 ? 2 : 1;
  const uint16_t *halves = (const uint16_t *)b->numbers + vector * b->inner * NND_LANES;
  vf dots[NND_BITS_ROWS * 4];
  NND_UNROLL
  for (int i = 0; i < rows * split; i++) dots[i] = nnd_splat(0.0f);
  nnd_size k = 0;
  NND_NO_UNROLL
  for (; k + 4 <= b->inner; k += 4) {
    NND_UNROLL
    for (int j = 0; j < 4; j++) {
      __builtin_prefetch((const char *)(halves + j * NND_LANES) + NND_BITS_AHEAD, 0, 3);
      const vf w = nnd_floats_of_halves(halves + j * NND_LANES);
      NND_UNROLL
      for (int r = 0; r < rows; r++) dots[r * split + j % split] += w * ready[j * rows + r];
    }
    halves += 4 * NND_LANES;
    ready += 4 * rows;
  }
  for (; k < b->inner; k++, halves += NND_LANES, ready += rows) {
    const vf w = nnd_floats_of_halves(halves);
    NND_UNROLL
    for (int r = 0; r < rows; r++) dots[r * split] += w * ready[r];
  }
  NND_UNROLL
  for (int r = 0; r < rows; r++) NND_UNROLL
  for (int s = 0; s < split; s++) sums[r] += dots[r * split + s];
}

#ifdef NND_FAST_FOUR
/* The same of rows that are bytes: products of four of them in each lane. Of `vectors` that lie `apart`: memory gives
 * more where it is read at two places. */
NND_INLINE NND_FAST_TARGET void nnd_bits_byte_dots(int rows, int vectors, const struct nnd_bits *b, nnd_size vector,
                                                   nnd_size apart, const float *ready, vf *sums) {
  const int split = rows <= 4 ? 2 : 1, has_zeros = b->zeros || b->float_zeros;
  const nnd_size first = vector * b->pieces, other = apart * b->pieces;
  const uint32_t *words = (const uint32_t *)b->numbers + first * b->words * NND_LANES;
  vf total[NND_BITS_ROWS * NND_BITS_STREAMS];
  NND_UNROLL
  for (int i = 0; i < rows * vectors; i++) total[i] = sums[i];
  for (nnd_size piece = 0; piece < b->pieces; piece++) {
    nnd_vu dots[NND_BITS_ROWS * 2 * NND_BITS_STREAMS];
    const uint32_t *begin = (const uint32_t *)ready + (b->words * 2 + 1) * rows;
    NND_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
      dots[i * split + split - 1] = (nnd_vu){0};
      dots[i * split] = has_zeros ? (nnd_vu){0} : begin[i % rows] - (nnd_vu){0};
    }
    NND_NO_UNROLL
    for (nnd_size w = 0; w < b->words; w++) {
      const uint32_t *bytes = (const uint32_t *)ready;
      NND_UNROLL
      for (int v = 0; v < vectors; v++) {
        const uint32_t *from = words + v * other * b->words * NND_LANES;
        const nnd_vu word = *(const nnd_vu *)from;
        const nnd_vu numbers[2] = {word & 0x0f0f0f0fu, word >> 4 & 0x0f0f0f0fu};
        __builtin_prefetch((const char *)from + NND_BITS_AHEAD, 0, 3);
        NND_UNROLL
        for (int half = 0; half < 2; half++) NND_UNROLL
        for (int r = 0; r < rows; r++) {
          nnd_vu *dot = &dots[(v * rows + r) * split + half % split];
          *dot = NND_FAST_FOUR(*dot, numbers[half], bytes[half * rows + r] - (nnd_vu){0});
        }
      }
      words += NND_LANES;
      ready += 2 * rows;
    }
    NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const nnd_size at = (first + v * other + piece) * NND_LANES;
      const vf scale = nnd_load(b->scales + at);
      vf dot[NND_BITS_ROWS];
      NND_UNROLL
      for (int r = 0; r < rows; r++) {
        const nnd_vu *some = dots + (v * rows + r) * split;
        dot[r] = __builtin_convertvector((vi)(split == 2 ? some[0] + some[1] : some[0]), vf);
      }
      if (has_zeros) {
        const vf zero = nnd_bits_zero(b, at);
        NND_UNROLL
        for (int r = 0; r < rows; r++) dot[r] -= zero * ready[rows + r];
      }
      NND_UNROLL
      for (int r = 0; r < rows; r++) total[v * rows + r] += scale * ready[r] * dot[r];
    }
    ready += 2 * rows;
  }
  NND_UNROLL
  for (int i = 0; i < rows * vectors; i++) sums[i] = total[i];
}
static NND_FAST_TARGET void nnd_bits_byte_streams(const struct nnd_bits *b, nnd_size vector, nnd_size apart,
                                                  const float *ready, vf *sums) {
  nnd_bits_byte_dots(1, NND_BITS_STREAMS, b, vector, apart, ready, sums);
}
#define NND_DEFINE_BYTE_DOTS(bits, rows)                                                                               \
  static NND_FAST_TARGET void nnd_bits_byte_dots_##rows(const struct nnd_bits *b, nnd_size vector, const float *ready, \
                                                        vf *sums) {                                                    \
    nnd_bits_byte_dots(rows, 1, b, vector, 0, ready, sums);                                                            \
  }
#define NND_LISTED_BYTE_DOTS(bits, rows) nnd_bits_byte_dots_##rows,
#endif

#define NND_DEFINE_DOTS(bits, rows)                                                                                    \
  static void nnd_bits_dots_##bits##_##rows(const struct nnd_bits *b, nnd_size vector, const float *ready, vf *sums) { \
    if (bits == 16)                                                                                                    \
      nnd_halves_dots(rows, b, vector, ready, sums);                                                                   \
    else                                                                                                               \
      nnd_bits_dots(bits, rows, b, vector, ready, sums);                                                               \
  }
#define NND_UP_TO_4(X, bits) X(bits, 1) X(bits, 2) X(bits, 3) X(bits, 4)
#if NND_LANES == 16
#define NND_EACH_ROWS(X, bits)                                                                                         \
  NND_UP_TO_4(X, bits)                                                                                                 \
  X(bits, 5) X(bits, 6) X(bits, 7) X(bits, 8) X(bits, 9) X(bits, 10) X(bits, 11) X(bits, 12) X(bits, 13) X(bits, 14)
#else
#define NND_EACH_ROWS(X, bits) NND_UP_TO_4(X, bits)
#endif
#define NND_LISTED_DOTS(bits, rows) nnd_bits_dots_##bits##_##rows,
NND_EACH_ROWS(NND_DEFINE_DOTS, 4)
NND_EACH_ROWS(NND_DEFINE_DOTS, 8)
NND_EACH_ROWS(NND_DEFINE_DOTS, 16)
#ifdef NND_FAST_FOUR
NND_EACH_ROWS(NND_DEFINE_BYTE_DOTS, 4)
#endif

void nnd_bits_sums(const struct nnd_bits *b, nnd_size vector, nnd_size rows, const float *ready, vf *sums) {
#ifdef NND_FAST_FOUR
  static void (*const of_bytes[NND_BITS_ROWS])(const struct nnd_bits *, nnd_size, const float *,
                                               vf *) = {NND_EACH_ROWS(NND_LISTED_BYTE_DOTS, 4)};
  if (b->rounds_rows) {
    of_bytes[rows - 1](b, vector, ready, sums);
    return;
  }
#endif
  static void (*const kernels[3][NND_BITS_ROWS])(const struct nnd_bits *, nnd_size, const float *, vf *) = {
      {NND_EACH_ROWS(NND_LISTED_DOTS, 4)}, {NND_EACH_ROWS(NND_LISTED_DOTS, 8)}, {NND_EACH_ROWS(NND_LISTED_DOTS, 16)}};
  kernels[b->bits / 8][rows - 1](b, vector, ready, sums);
}

void nnd_bits_streams(const struct nnd_bits *b, nnd_size vector, nnd_size apart, const float *ready, vf *sums) {
#ifdef NND_FAST_FOUR
  if (b->rounds_rows) {
    nnd_bits_byte_streams(b, vector, apart, ready, sums);
    return;
  }
#endif
  for (int i = 0; i < NND_BITS_STREAMS; i++) nnd_bits_sums(b, vector + i * apart, 1, ready, sums + i);
}

NND_INLINE void nnd_bits_unpack_all(int bits, const struct nnd_bits *b, nnd_size vector, nnd_size piece, nnd_size k,
                                    float *to, nnd_size step) {
  const int each = 32 / bits;
  const uint32_t *words = (const uint32_t *)b->numbers + (vector * b->pieces + piece) * b->words * NND_LANES;
  for (; k > 0; piece++, k -= b->piece) {
    const nnd_size at = (vector * b->pieces + piece) * NND_LANES, count = nnd_min(k, b->piece);
    const vf scale = nnd_load(b->scales + at), zero = nnd_bits_zero(b, at);
    for (nnd_size w = 0; w < b->words; w++, words += NND_LANES) {
      const nnd_bits_words word = *(const nnd_bits_words *)words, down = word >> (uint32_t)bits;
      const nnd_size some = nnd_min(each, count - w * each);
      __builtin_prefetch((const char *)words + NND_BITS_AHEAD, 0, 3);
      NND_UNROLL
      for (int j = 0; j < each; j++) {
        if (j >= some) break;
        const vf n = nnd_bits_float(bits, j, word, down) * (1.0f / (float)(1 << nnd_bits_shift(bits, j)));
        nnd_store(to + j * step, (n - zero) * scale);
      }
      to += some * step;
    }
  }
}

void nnd_bits_unpack(const struct nnd_bits *b, nnd_size vector, nnd_size piece, nnd_size k, float *to, nnd_size step) {
  if (b->bits == 16) {
    const uint16_t *halves = (const uint16_t *)b->numbers + (vector * b->inner + piece) * NND_LANES;
    for (nnd_size i = 0; i < k; i++, halves += NND_LANES) {
      __builtin_prefetch((const char *)halves + NND_BITS_AHEAD, 0, 3);
      nnd_store(to + i * step, nnd_floats_of_halves(halves));
    }
  } else if (b->bits == 4)
    nnd_bits_unpack_all(4, b, vector, piece, k, to, step);
  else
    nnd_bits_unpack_all(8, b, vector, piece, k, to, step);
}
