/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8_table.h"

#include "kernels/begin.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define NND_TABLE_VECTORS (NND_INT8_TABLE / NND_LANES)

void nnd_int8_make_table(const struct nnd_program *program, int from, int to, uint8_t *table) {
  vf lanes[NND_TABLE_VECTORS], results[NND_RESULTS * NND_AT_ONCE];
  uint8_t bytes[NND_INT8_TABLE];
  for (int i = 0; i < NND_INT8_TABLE; i++) bytes[i] = (uint8_t)i;
  nnd_floats_of(from, bytes, NND_INT8_TABLE, lanes);
  for (int v = 0; v < NND_TABLE_VECTORS; v += NND_AT_ONCE) {
    const int count = (int)nnd_min(NND_AT_ONCE, NND_TABLE_VECTORS - v);
    const struct nnd_source operands[NND_OPERANDS] = {{lanes + v, 1}, {lanes + v, 1}, {lanes + v, 1}, {lanes + v, 1}};
    const struct nnd_source outcome = nnd_program_run(program, operands, count, results);
    nnd_elements_of_floats(to, outcome, count * NND_LANES, table + v * NND_LANES);
  }
}

static void nnd_look_up_plainly(const uint8_t *table, const uint8_t *from, nnd_size count, uint8_t *to) {
  for (nnd_size i = 0; i < count; i++) to[i] = table[from[i]];
}

#if NND_LANES == 16
typedef char nnd_table_bytes __attribute__((vector_size(64)));
typedef char nnd_table_bytes_any __attribute__((vector_size(64), aligned(1)));
#define NND_TABLE_TARGET __attribute__((target("avx512vbmi,avx512bw,bmi2")))

static NND_TABLE_TARGET inline nnd_table_bytes nnd_looked_up(const nnd_table_bytes *table, nnd_table_bytes x) {
  const nnd_table_bytes low = __builtin_ia32_vpermi2varqi512(table[0], x, table[1]);
  const nnd_table_bytes high = __builtin_ia32_vpermi2varqi512(table[2], x, table[3]);
  const nnd_table_bytes is_high = (nnd_table_bytes)(x < 0);
  return (high & is_high) | (low & ~is_high);
}

static NND_TABLE_TARGET void nnd_look_up_quickly(const uint8_t *table, const uint8_t *from, nnd_size count,
                                                 uint8_t *to) {
  nnd_table_bytes of[4];
  for (int i = 0; i < 4; i++) of[i] = ((const nnd_table_bytes_any *)table)[i];
  nnd_size i = 0;
  for (; i + 64 <= count; i += 64)
    *(nnd_table_bytes_any *)(to + i) = nnd_looked_up(of, *(const nnd_table_bytes_any *)(from + i));
  if (i == count) return;
  const uint64_t mask = ((uint64_t)1 << (count - i)) - 1;
  const nnd_table_bytes none = {0}, *at = (const nnd_table_bytes *)(from + i);
  const nnd_table_bytes last = __builtin_ia32_loaddquqi512_mask(at, none, mask);
  __builtin_ia32_storedquqi512_mask((nnd_table_bytes *)(to + i), nnd_looked_up(of, last), mask);
}

static int nnd_has_byte_tables;

void nnd_begin_int8_tables(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  nnd_has_byte_tables = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 1 & 1; /* AVX512_VBMI */
}

void nnd_int8_look_up(const uint8_t *table, const uint8_t *from, nnd_size count, uint8_t *to) {
  (nnd_has_byte_tables ? nnd_look_up_quickly : nnd_look_up_plainly)(table, from, count, to);
}
#else
void nnd_begin_int8_tables(void) {}

#if !defined(__aarch64__)
void nnd_int8_look_up(const uint8_t *table, const uint8_t *from, nnd_size count, uint8_t *to) {
  nnd_look_up_plainly(table, from, count, to);
}
#else
void nnd_int8_look_up(const uint8_t *table, const uint8_t *from, nnd_size count, uint8_t *to) {
  uint8x16x4_t of[4];
  for (int i = 0; i < 4; i++) of[i] = vld1q_u8_x4(table + 64 * i);
  nnd_size i = 0;
  for (; i + 16 <= count; i += 16) {
    uint8x16_t x = vld1q_u8(from + i), found = vqtbl4q_u8(of[0], x); /* zero where x is beyond the table */
    for (int part = 1; part < 4; part++) {
      x = vsubq_u8(x, vdupq_n_u8(64));
      found = vqtbx4q_u8(found, of[part], x);
    }
    vst1q_u8(to + i, found);
  }
  nnd_look_up_plainly(table, from + i, count - i, to + i);
}
#endif
#endif
