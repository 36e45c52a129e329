/* SPDX-License-Identifier: Apache-2.0
 *
 * The same of WebAssembly: no files, one thread, and memory that only grows.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/inside.h"

int nnd_source_open(struct nnd_source *source, const char *path, nnd_error *error) {
  source->file = -1;
  return nnd_fail_with(error, NND_NO_INPUT, "%s: there are no files here", path);
}

void nnd_source_close(struct nnd_source *source) { source->file = -1; }

int nnd_source_read(const struct nnd_source *source, int64_t offset, int64_t size, void *target, nnd_error *error) {
  (void)error;
  memcpy(target, source->memory + offset, (size_t)size);
  return 1;
}

void *nnd_pages_take(int64_t bytes) {
  void *pages = nnd_work_take(bytes);
  if (pages) memset(pages, 0, (size_t)bytes);
  return pages;
}

void nnd_pages_leave(const void *pages, int64_t bytes) { (void)pages, (void)bytes; }

void nnd_pages_free(void *pages, int64_t bytes) { nnd_work_free(pages, bytes); }

void *nnd_work_take(int64_t bytes) { return nnd_lines_take(bytes); }

void nnd_work_free(void *memory, int64_t bytes) {
  (void)bytes;
  nnd_lines_free(memory);
}

void *nnd_lines_take(int64_t bytes) {
  if (bytes < 0 || bytes > PTRDIFF_MAX - NND_LINE) return NULL;
  return aligned_alloc(NND_LINE, (size_t)(bytes + NND_LINE) / NND_LINE * NND_LINE);
}

void nnd_lines_free(void *memory) { free(memory); }

int nnd_num_processors(void) { return 1; }

int64_t nnd_cache_bytes(int level) {
  (void)level;
  return 0;
}

void nnd_cpu_name(char *name, size_t room) {
  if (room) *name = 0;
}
