/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/expand.h"

#include <string.h>

#define NND_MOST_OWN ((int64_t)64 << 20)
#define NND_MOST_PIECES 65536
#define NND_PIECE_BYTES 32
#define NND_MOST_ITEM 16
#define NND_MOST_KINDS 65536

enum { NND_LITERAL, NND_COPY, NND_PLANES, NND_TABLE_OF_KINDS };

struct nnd_piece {
  int64_t kind, first, second, third, size;
};

static int64_t nnd_number_at(const uint8_t *at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)at[i] << 8 * i;
  return (int64_t)value;
}

/* Reads a piece; returns whether it makes some bytes, `left` at most. */
static int nnd_read_piece(const uint8_t *at, int64_t left, struct nnd_piece *piece) {
  *piece =
      (struct nnd_piece){nnd_number_at(at), nnd_number_at(at + 8), nnd_number_at(at + 16), nnd_number_at(at + 24), 0};
  const int is_items = piece->kind == NND_TABLE_OF_KINDS || (piece->kind == NND_PLANES && !piece->third);
  if (is_items) {
    const int is_right =
        piece->first > 0 && piece->first <= NND_MOST_ITEM && piece->second > 0 && piece->second <= left;
    piece->size = is_right ? piece->first * piece->second : 0;
  } else if (piece->kind == NND_COPY) {
    piece->size = piece->third;
  } else if (piece->kind == NND_LITERAL && !piece->second && !piece->third) {
    piece->size = piece->first;
  }
  return piece->size > 0 && piece->size <= left;
}

/* Puts items together of their first bytes, their second bytes, ...; returns what was consumed, -1 where it lacks. */
static int64_t nnd_from_planes(const struct nnd_piece *piece, const uint8_t *from, int64_t left, uint8_t *to) {
  if (piece->size > left) return -1;
  for (int64_t i = 0; i < piece->second; i++)
    for (int64_t j = 0; j < piece->first; j++) to[i * piece->first + j] = from[j * piece->second + i];
  return piece->size;
}

static int64_t nnd_from_kinds(const struct nnd_piece *piece, const uint8_t *from, int64_t left, uint8_t *to) {
  const int64_t item = piece->first, count = piece->second, kinds = piece->third, width = kinds <= 256 ? 1 : 2;
  if (kinds < 1 || kinds > NND_MOST_KINDS || kinds > count) return -1;
  const int64_t needed = kinds * item + count * width;
  if (needed > left) return -1;
  const uint8_t *high = from + kinds * item, *low = high + (width - 1) * count;
  for (int64_t i = 0; i < count; i++) {
    const int64_t kind = width == 1 ? low[i] : (int64_t)high[i] << 8 | low[i];
    if (kind >= kinds) return -1;
    memcpy(to + i * item, from + kind * item, (size_t)item);
  }
  return needed;
}

int nnd_expand(const uint8_t *stored, int64_t stored_bytes, const struct nnd_source *source,
               const struct nnd_member *const *bases, int64_t num_bases, uint8_t *target, int64_t size,
               nnd_error *error) {
  const int64_t most = 8 + NND_MOST_PIECES * NND_PIECE_BYTES + 2 * (size < NND_MOST_OWN ? size : NND_MOST_OWN);
  uint8_t *data = nnd_pages_take(most);
  if (!data) return nnd_fail_with(error, NND_NO_MEMORY, "no memory for %lld bytes", (long long)most);
  const int64_t have = nnd_inflate(stored, stored_bytes, data, most);
  const int64_t count = have < 8 ? -1 : nnd_number_at(data);
  int is_right = count >= 0 && count <= NND_MOST_PIECES && 8 + count * NND_PIECE_BYTES <= have;
  int64_t at = 0, next = is_right ? 8 + count * NND_PIECE_BYTES : 0;
  for (int64_t i = 0; is_right && i < count; i++) {
    struct nnd_piece piece;
    int64_t used = 0;
    is_right = nnd_read_piece(data + 8 + i * NND_PIECE_BYTES, size - at, &piece);
    if (!is_right) break;
    if (piece.kind == NND_COPY) {
      is_right = piece.first >= 0 && piece.first < num_bases && piece.second >= 0 &&
                 piece.second <= bases[piece.first]->size - piece.size &&
                 nnd_source_read(source, bases[piece.first]->offset + piece.second, piece.size, target + at, error);
    } else if (piece.kind == NND_LITERAL) {
      used = piece.size <= have - next ? piece.size : -1;
      if (used > 0) memcpy(target + at, data + next, (size_t)used);
    } else {
      used =
          (piece.kind == NND_PLANES ? nnd_from_planes : nnd_from_kinds)(&piece, data + next, have - next, target + at);
    }
    is_right = is_right && used >= 0;
    at += piece.size, next += used;
  }
  nnd_pages_free(data, most);
  if (is_right && at == size && next == have) return 1;
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: a compressed member is damaged");
}
