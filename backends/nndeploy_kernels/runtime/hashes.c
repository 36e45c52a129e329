/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4) and the CRC-32 of ZIP archives, reflected, polynomial 0x04C11DB7 (APPNOTE.TXT 4.4.7).
 */
#include <string.h>

#include "runtime/inside.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t nnd_rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t nnd_turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void nnd_sha256_plain(uint32_t state[8], const uint8_t *data, int64_t blocks) {
  for (; blocks > 0; blocks--, data += 64) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
      w[i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 | (uint32_t)data[4 * i + 2] << 8 |
             (uint32_t)data[4 * i + 3];
    for (int i = 16; i < 64; i++) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (nnd_turned(a, 7) ^ nnd_turned(a, 18) ^ a >> 3) +
             (nnd_turned(b, 17) ^ nnd_turned(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
/* One round: the variables stay where they are and change their parts, so that nothing is moved. */
#define NND_ROUND(a, b, c, d, e, f, g, h, i)                                                                           \
  do {                                                                                                                 \
    const uint32_t added = v[h] + (nnd_turned(v[e], 6) ^ nnd_turned(v[e], 11) ^ nnd_turned(v[e], 25)) +                \
                           ((v[e] & v[f]) ^ (~v[e] & v[g])) + nnd_rounds[i] + w[i];                                    \
    v[d] += added;                                                                                                     \
    v[h] = added + (nnd_turned(v[a], 2) ^ nnd_turned(v[a], 13) ^ nnd_turned(v[a], 22)) +                               \
           ((v[a] & v[b]) ^ (v[a] & v[c]) ^ (v[b] & v[c]));                                                            \
  } while (0)
    for (int i = 0; i < 64; i += 8) {
      NND_ROUND(0, 1, 2, 3, 4, 5, 6, 7, i);
      NND_ROUND(7, 0, 1, 2, 3, 4, 5, 6, i + 1);
      NND_ROUND(6, 7, 0, 1, 2, 3, 4, 5, i + 2);
      NND_ROUND(5, 6, 7, 0, 1, 2, 3, 4, i + 3);
      NND_ROUND(4, 5, 6, 7, 0, 1, 2, 3, i + 4);
      NND_ROUND(3, 4, 5, 6, 7, 0, 1, 2, i + 5);
      NND_ROUND(2, 3, 4, 5, 6, 7, 0, 1, i + 6);
      NND_ROUND(1, 2, 3, 4, 5, 6, 7, 0, i + 7);
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
  }
}

#if defined(__x86_64__)
/* By the instructions for it (Intel, SHA Extensions, 2013): each does two rounds of a state kept as ABEF and CDGH. */
__attribute__((target("sha,sse4.1,ssse3"))) static void nnd_sha256_fast(uint32_t state[8], const uint8_t *data,
                                                                        int64_t blocks) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i ends = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, ends, 8), cdgh = _mm_blend_epi16(ends, low, 0xf0);
  for (; blocks > 0; blocks--, data += 64) {
    const __m128i before_abef = abef, before_cdgh = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), order);
    for (int i = 0; i < 16; i++) {
      const __m128i added = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(nnd_rounds + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
      if (i > 11) continue; /* the words of four rounds from those of the sixteen before */
      const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]),
                                         _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
      w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, before_abef);
    cdgh = _mm_add_epi32(cdgh, before_cdgh);
  }
  low = _mm_shuffle_epi32(abef, 0x1b), ends = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, ends, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(ends, low, 8));
}

static int nnd_has_sha(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && c >> 9 & c >> 19 & 1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
         b >> 29 & 1;
}
#endif

/* Virtual machines take 30 us to say which instructions there are, in which the plain rounds do 128 blocks. */
#define NND_WORTH_ASKING 128

static void nnd_sha256_blocks(struct nnd_sha256 *hash, const uint8_t *data, int64_t blocks) {
#if defined(__x86_64__)
  if (!hash->is_asked && blocks >= NND_WORTH_ASKING) hash->is_asked = 1, hash->is_fast = nnd_has_sha();
  if (hash->is_fast) {
    nnd_sha256_fast(hash->state, data, blocks);
    return;
  }
#endif
  nnd_sha256_plain(hash->state, data, blocks);
}

void nnd_sha256_begin(struct nnd_sha256 *hash) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, first, sizeof first);
  hash->bytes = 0;
  hash->is_asked = hash->is_fast = 0;
}

void nnd_sha256_add(struct nnd_sha256 *hash, const void *data, int64_t size) {
  const uint8_t *from = data;
  while (size > 0) {
    const int64_t at = (int64_t)(hash->bytes % 64);
    if (!at && size >= 64) {
      const int64_t whole = size / 64 * 64;
      nnd_sha256_blocks(hash, from, size / 64);
      from += whole, size -= whole, hash->bytes += (uint64_t)whole;
      continue;
    }
    const int64_t part = size < 64 - at ? size : 64 - at;
    memcpy(hash->rest + at, from, (size_t)part);
    from += part, size -= part, hash->bytes += (uint64_t)part;
    if (at + part == 64) nnd_sha256_blocks(hash, hash->rest, 1);
  }
}

void nnd_sha256_text(struct nnd_sha256 *hash, char text[65]) {
  const uint64_t bits = hash->bytes * 8;
  uint8_t end[72] = {0x80};
  const int64_t zeros = (int64_t)((119 - hash->bytes % 64) % 64) + 1;
  for (int i = 0; i < 8; i++) end[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
  nnd_sha256_add(hash, end, zeros + 8);
  for (int i = 0; i < 64; i++) text[i] = "0123456789abcdef"[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
  text[64] = 0;
}

uint32_t nnd_crc32(const void *data, int64_t size) {
  static const uint32_t halves[16] = {/* what each value of four bits adds */
                                      0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const uint8_t *from = data;
  uint32_t crc = ~0u;
  for (int64_t i = 0; i < size; i++) {
    crc ^= from[i];
    crc = crc >> 4 ^ halves[crc & 15];
    crc = crc >> 4 ^ halves[crc & 15];
  }
  return ~crc;
}
