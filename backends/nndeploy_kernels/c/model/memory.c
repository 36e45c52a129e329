/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/model.h"

#define NND_REGION_BYTES ((nnd_size)64 << 10)
#define NND_HUGE_PAGE ((nnd_size)2 << 20)

struct nnd_region {
  struct nnd_region *next;
  nnd_size used, size;
  char *data;
};

void *nnd_memory_take(struct nnd_memory *memory, nnd_size num_bytes) {
  struct nnd_region *region = memory->regions;
  if (num_bytes < 0 || num_bytes > NND_MOST_BYTES) return NULL;
#ifdef NND_SEPARATE /* each piece lies alone and ends where it ends: for sanitizers */
  const nnd_size needed = num_bytes, least = 0;
  region = NULL;
#else
  const nnd_size needed = nnd_ceil_div(num_bytes, NND_ALIGNMENT) * NND_ALIGNMENT, least = NND_REGION_BYTES;
#endif
  if (!region || region->size - region->used < needed) {
    nnd_size size = nnd_max(needed, least ? nnd_max(least, memory->total) : 0);
    const int is_huge = least && size >= NND_HUGE_PAGE;
    const nnd_size unit = is_huge ? NND_HUGE_PAGE : NND_ALIGNMENT;
    if (least) size = nnd_ceil_div(size, unit) * unit;
    region = malloc(sizeof *region);
    if (!region) return NULL;
    void *data = NULL;
    const int failed = posix_memalign(&data, (size_t)unit, (size_t)nnd_max(1, size));
    *region = (struct nnd_region){memory->regions, 0, size, data};
    if (failed) {
      free(region);
      return NULL;
    }
    if (is_huge) madvise(region->data, (size_t)size, MADV_HUGEPAGE); /* page faults take longer than packing */
    memory->regions = region;
    memory->total += size;
  }
  void *taken = region->data + region->used;
  region->used += needed;
  memset(taken, 0, (size_t)needed);
  return taken;
}

void nnd_memory_free(struct nnd_memory *memory) {
  while (memory->regions) {
    struct nnd_region *region = memory->regions;
    memory->regions = region->next;
    free(region->data);
    free(region);
  }
  memory->total = 0;
}

int nnd_fail(struct nnd_message *message, const char *format, ...) {
  if (message->failed) return 0;
  message->failed = 1;
  va_list arguments;
  va_start(arguments, format);
  if (message->text && message->num_bytes > 0) vsnprintf(message->text, (size_t)message->num_bytes, format, arguments);
  va_end(arguments);
  return 0;
}
