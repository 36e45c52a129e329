/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NND_SEPARATE
#define NND_BLOCK_BYTES 0 /* each piece lies alone: AddressSanitizer sees who leaves it */
#else
#define NND_BLOCK_BYTES ((int64_t)32 << 10)
#endif

struct nnd_block {
  struct nnd_block *next;
  int64_t used, size;
  _Alignas(16) char data[];
};

int nnd_fail_with(nnd_error *error, int code, const char *format, ...) {
  if (error) {
    va_list arguments;
    va_start(arguments, format);
    error->code = code;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
  }
  return 0;
}

int nnd_put_place(nnd_error *error, const char *place) {
  if (error) {
    char text[sizeof error->text];
    const size_t kind = strncmp(error->text, NND_BAD_BUNDLE, sizeof NND_BAD_BUNDLE - 1) ? 0 : sizeof NND_BAD_BUNDLE - 1;
    snprintf(text, sizeof text, "%s", error->text + kind);
    snprintf(error->text, sizeof error->text, "%s%s: %s", kind ? NND_BAD_BUNDLE : "", place, text);
  }
  return 0;
}

void *nnd_arena_take(struct nnd_arena *arena, int64_t bytes, nnd_error *error) {
  const int64_t needed = (bytes + 15) / 16 * 16;
  struct nnd_block *block = arena->blocks;
  if (!block || block->size - block->used < needed) {
    const int64_t size = needed > NND_BLOCK_BYTES ? needed : NND_BLOCK_BYTES;
    block = bytes < 0 || bytes > PTRDIFF_MAX / 2 ? NULL : calloc(1, sizeof *block + (size_t)size);
    if (!block) {
      nnd_fail_with(error, NND_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
      return NULL;
    }
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *taken = block->data + block->used;
  block->used += needed;
  return taken;
}

void nnd_arena_free(struct nnd_arena *arena) {
  while (arena->blocks) {
    struct nnd_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}

int nnd_is_same_text(const struct nnd_text *a, const struct nnd_text *b) {
  return a->size == b->size && !memcmp(a->data, b->data, (size_t)a->size);
}

int nnd_is_text(const struct nnd_text *text, const char *wanted) {
  return nnd_is_same_text(text, &(struct nnd_text){wanted, (int64_t)strlen(wanted)});
}
