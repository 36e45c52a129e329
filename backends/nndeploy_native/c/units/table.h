/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameter table: a header and rows of 32 bytes, little endian; docs/internals/units.md says what each field means,
 * and ../../units/table.py checks what comes from a file. Here tables are trusted.
 */
#ifndef NND_UNITS_TABLE_H
#define NND_UNITS_TABLE_H

#include "../vector.h"

#define NND_TABLE_MAGIC 0x54444e4eu /* "NNDT" */
#define NND_TABLE_VERSION 1
#define NND_TABLE_ROWS 8 /* at most, of what is composed here: two that pack, three for each of two zones */

/* The first shapes that a table serves, along axis 0, beside its own: none; longer ones by whole blocks of the growing
 * row; shorter ones that shorten the last block; both. */
enum nnd_range { NND_EXACT = 0, NND_WHOLE = 1, NND_PART = 2, NND_TAIL = 3 };

enum nnd_tail_mark { NND_NO_TAIL = 0, NND_DISCARD = 1, NND_OVERLAP = 2, NND_VARIABLE = 3, NND_VARIABLE_TAIL = 4 };

enum nnd_row_flag {
  NND_GOES_ON = 1, /* with the next row: one pass over the data */
  NND_GROWS = 2,   /* its repeats are more for the longer first shapes of a range */
  NND_EPILOGUE_SHIFT = 4
};

struct nnd_table_header {
  uint32_t magic;
  uint16_t version, rows;
  int32_t first[3]; /* M, N, K of the first shape */
  uint8_t axes, range;
  uint16_t modulus; /* of the bucket: how far two first shapes are apart that share the table */
  uint32_t bytes, crc32; /* crc32 of all other bytes; 0 in memory */
};

struct nnd_table_row {
  uint16_t unit;
  uint8_t tail, flags;
  uint32_t repeat; /* blocks along axis 0, one after the other */
  int32_t offset[3], length[3]; /* of the first block */
};

struct nnd_table {
  struct nnd_table_header header;
  struct nnd_table_row row[NND_TABLE_ROWS];
};

_Static_assert(sizeof(struct nnd_table_header) == 32 && sizeof(struct nnd_table_row) == 32, "32 bytes each");

#endif
