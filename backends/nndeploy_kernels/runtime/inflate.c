/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: RFC 1950 and RFC 1951. A code is read bit by bit: by its length, then its place among those of this length.
 */
#include <string.h>

#include "runtime/expand.h"

#define NND_MOST_BITS 15
#define NND_NUM_LITERALS 288
#define NND_NUM_DISTANCES 30

struct nnd_bits {
  const uint8_t *at, *end;
  uint32_t bits;
  int count, is_over;
};

struct nnd_code {
  uint16_t count[NND_MOST_BITS + 1], symbol[NND_NUM_LITERALS];
};

static uint32_t nnd_take_bits(struct nnd_bits *in, int count) {
  while (in->count < count) {
    if (in->at == in->end) return in->is_over = 1, 0;
    in->bits |= (uint32_t)*in->at++ << in->count;
    in->count += 8;
  }
  const uint32_t taken = in->bits & ((1u << count) - 1);
  in->bits >>= count, in->count -= count;
  return taken;
}

/* Makes a code of the lengths of its symbols; returns whether no place is taken twice. */
static int nnd_make_code(struct nnd_code *code, const uint8_t *lengths, int count) {
  uint16_t begin[NND_MOST_BITS + 2] = {0};
  int left = 1;
  memset(code, 0, sizeof *code);
  for (int i = 0; i < count; i++) code->count[lengths[i]]++;
  code->count[0] = 0;
  for (int i = 1; i <= NND_MOST_BITS; i++) {
    left = 2 * left - code->count[i];
    if (left < 0) return 0;
    begin[i + 1] = (uint16_t)(begin[i] + code->count[i]);
  }
  for (int i = 0; i < count; i++)
    if (lengths[i]) code->symbol[begin[lengths[i]]++] = (uint16_t)i;
  return 1;
}

/* Returns the next symbol, -1 where there is none. */
static int nnd_take_symbol(struct nnd_bits *in, const struct nnd_code *code) {
  int place = 0, first = 0, index = 0;
  for (int i = 1; i <= NND_MOST_BITS && !in->is_over; i++) {
    place |= (int)nnd_take_bits(in, 1);
    if (place - code->count[i] < first) return in->is_over ? -1 : code->symbol[index + place - first];
    index += code->count[i];
    first = (first + code->count[i]) << 1, place <<= 1;
  }
  return -1;
}

static int64_t nnd_inflate_block(struct nnd_bits *in, const struct nnd_code *literals, const struct nnd_code *distances,
                                 uint8_t *to, int64_t at, int64_t most) {
  static const uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                     31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t far[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                 33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  for (;;) {
    int symbol = nnd_take_symbol(in, literals);
    if (symbol == 256) return at;
    if (symbol < 0 || symbol > 285) return -1;
    if (symbol < 256) {
      if (at == most) return -1;
      to[at++] = (uint8_t)symbol;
      continue;
    }
    const int64_t size = lengths[symbol - 257] + nnd_take_bits(in, length_bits[symbol - 257]);
    symbol = nnd_take_symbol(in, distances);
    if (symbol < 0 || symbol >= NND_NUM_DISTANCES) return -1;
    const int64_t back = far[symbol] + nnd_take_bits(in, symbol < 4 ? 0 : symbol / 2 - 1);
    if (in->is_over || back > at || size > most - at) return -1;
    for (int64_t i = 0; i < size; i++, at++) to[at] = to[at - back];
  }
}

static int nnd_fixed_codes(struct nnd_code *literals, struct nnd_code *distances) {
  uint8_t lengths[NND_NUM_LITERALS];
  memset(lengths, 8, 144), memset(lengths + 144, 9, 112), memset(lengths + 256, 7, 24), memset(lengths + 280, 8, 8);
  if (!nnd_make_code(literals, lengths, NND_NUM_LITERALS)) return 0;
  memset(lengths, 5, NND_NUM_DISTANCES);
  return nnd_make_code(distances, lengths, NND_NUM_DISTANCES);
}

static int nnd_dynamic_codes(struct nnd_bits *in, struct nnd_code *literals, struct nnd_code *distances) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t lengths[NND_NUM_LITERALS + 32] = {0};
  const int num_literals = (int)nnd_take_bits(in, 5) + 257, num_distances = (int)nnd_take_bits(in, 5) + 1;
  const int num_lengths = (int)nnd_take_bits(in, 4) + 4, all = num_literals + num_distances;
  if (num_literals > 286 || num_distances > NND_NUM_DISTANCES) return 0;
  for (int i = 0; i < num_lengths; i++) lengths[order[i]] = (uint8_t)nnd_take_bits(in, 3);
  if (!nnd_make_code(literals, lengths, 19)) return 0;
  memset(lengths, 0, sizeof lengths);
  for (int i = 0; i < all;) {
    const int symbol = nnd_take_symbol(in, literals);
    if (symbol < 0) return 0;
    if (symbol < 16) {
      lengths[i++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16 && !i) return 0;
    const uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
    int times = symbol == 16   ? 3 + (int)nnd_take_bits(in, 2)
                : symbol == 17 ? 3 + (int)nnd_take_bits(in, 3)
                               : 11 + (int)nnd_take_bits(in, 7);
    if (i + times > all) return 0;
    while (times--) lengths[i++] = repeated;
  }
  return !in->is_over && lengths[256] && nnd_make_code(literals, lengths, num_literals) &&
         nnd_make_code(distances, lengths + num_literals, num_distances);
}

static int64_t nnd_stored_block(struct nnd_bits *in, uint8_t *to, int64_t at, int64_t most) {
  in->bits = 0, in->count = 0;
  if (in->end - in->at < 4) return -1;
  const int64_t size = in->at[0] | in->at[1] << 8, inverse = in->at[2] | in->at[3] << 8;
  in->at += 4;
  if ((size ^ 0xffff) != inverse || size > in->end - in->at || size > most - at) return -1;
  memcpy(to + at, in->at, (size_t)size);
  in->at += size;
  return at + size;
}

static uint32_t nnd_adler32(const uint8_t *data, int64_t size) {
  uint32_t a = 1, b = 0;
  for (int64_t i = 0; i < size; i++) a = (a + data[i]) % 65521, b = (b + a) % 65521;
  return b << 16 | a;
}

int64_t nnd_inflate(const uint8_t *from, int64_t from_bytes, uint8_t *to, int64_t most) {
  if (from_bytes < 6 || (from[0] & 15) != 8 || from[1] & 32 || (from[0] << 8 | from[1]) % 31) return -1;
  struct nnd_bits in = {from + 2, from + from_bytes - 4, 0, 0, 0};
  struct nnd_code literals, distances;
  int64_t at = 0;
  for (int is_last = 0; !is_last && at >= 0;) {
    is_last = (int)nnd_take_bits(&in, 1);
    const uint32_t kind = nnd_take_bits(&in, 2);
    if (in.is_over || kind == 3) return -1;
    if (!kind)
      at = nnd_stored_block(&in, to, at, most);
    else if (kind == 1 ? nnd_fixed_codes(&literals, &distances) : nnd_dynamic_codes(&in, &literals, &distances))
      at = nnd_inflate_block(&in, &literals, &distances, to, at, most);
    else
      return -1;
  }
  if (at < 0 || in.at != in.end) return -1;
  const uint32_t sum = (uint32_t)in.end[0] << 24 | (uint32_t)in.end[1] << 16 | (uint32_t)in.end[2] << 8 | in.end[3];
  return nnd_adler32(to, at) == sum ? at : -1;
}
