/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the runtime have in common: errors, memory that is freed together, text by its length.
 */
#ifndef NND_RUNTIME_INSIDE_H
#define NND_RUNTIME_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/nndeploy.h"

#define NND_LINE 64 /* a cache line, at which kernels want arrays to begin */

/* Writes an error; returns 0, as everything does that fails. */
__attribute__((format(printf, 3, 4))) int nnd_fail_with(nnd_error *error, int code, const char *format, ...);

#define NND_BAD_BUNDLE "bad-bundle: " /* how errors begin that say what is wrong with a bundle */

/* Puts "PLACE: " before what an error says; returns 0. */
int nnd_put_place(nnd_error *error, const char *place);

/* Memory in blocks, all zero, freed together. */
struct nnd_arena {
  struct nnd_block *blocks;
};

/* Returns null and the error where there is no memory. */
void *nnd_arena_take(struct nnd_arena *arena, int64_t bytes, nnd_error *error);
void nnd_arena_free(struct nnd_arena *arena);

/* Text of a bundle, in the memory of an arena, with a zero behind; it holds none itself. */
struct nnd_text {
  const char *data;
  int64_t size;
};

int nnd_is_text(const struct nnd_text *text, const char *wanted);
int nnd_is_same_text(const struct nnd_text *a, const struct nnd_text *b);

/* A float16 by its bits; the nearest one to a number, of two the even. */
double nnd_from_half(uint16_t bits);
uint16_t nnd_to_half(double number);

/* The bytes of a file or of memory. */
struct nnd_source {
  int file;  /* -1: `memory` */
  int stays; /* as long as what is read of it: `memory` needs no copy */
  const uint8_t *memory;
  int64_t size;
};

int nnd_source_open(struct nnd_source *source, const char *path, nnd_error *error);
void nnd_source_close(struct nnd_source *source);
/* Copies `size` bytes from `offset`, which lie inside. */
int nnd_source_read(const struct nnd_source *source, int64_t offset, int64_t size, void *target, nnd_error *error);

/* Pages of the system, all zero. */
void *nnd_pages_take(int64_t bytes);
void nnd_pages_free(void *pages, int64_t bytes);
/* Lets go of pages of a file that is mapped, which come back when they are read. */
void nnd_pages_leave(const void *pages, int64_t bytes);
/* Memory for values that begins at a cache line; much of it lies in huge pages, which kernels fill sooner. */
void *nnd_work_take(int64_t bytes);
void nnd_work_free(void *memory, int64_t bytes);
/* Memory that begins at a cache line. */
void *nnd_lines_take(int64_t bytes);
void nnd_lines_free(void *memory);
int nnd_num_processors(void);
#define NND_MOST_CACHE_LEVELS 4
int64_t nnd_cache_bytes(int level); /* of data; 0 where the system does not say */
/* Writes what the processor calls itself, its architecture where it does not say. */
void nnd_cpu_name(char *name, size_t room);

struct nnd_sha256 {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t rest[64];
  int is_asked, is_fast; /* this processor was asked for, and has, instructions for it */
};

void nnd_sha256_begin(struct nnd_sha256 *hash);
void nnd_sha256_add(struct nnd_sha256 *hash, const void *data, int64_t size);
void nnd_sha256_text(struct nnd_sha256 *hash, char text[65]);
uint32_t nnd_crc32(const void *data, int64_t size);

#endif
