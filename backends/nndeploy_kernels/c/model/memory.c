/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/model.h"

#define NND_REGION_BYTES ((nnd_size)64 << 10)
#define NND_HUGE_PAGE ((nnd_size)2 << 20)

/* Large ones are pages of the system, which are zero, and there when they are first written. */
struct nnd_region {
  struct nnd_region *next;
  nnd_size used, size;
  char *data;
  void *pages; /* null: of malloc */
  size_t pages_bytes;
};

/* Whole huge pages: page faults take longer than packing. Returns 0 where there is no memory. */
static int nnd_take_pages(struct nnd_region *region) {
  region->pages_bytes = (size_t)(region->size + NND_HUGE_PAGE);
  region->pages =
      mmap(NULL, region->pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region->pages == MAP_FAILED) return 0;
  const uintptr_t begin = (uintptr_t)region->pages, huge = (uintptr_t)NND_HUGE_PAGE;
  region->data = (char *)((begin + huge - 1) / huge * huge);
  madvise(region->data, (size_t)region->size, MADV_HUGEPAGE);
  return 1;
}

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
    const int is_huge = least && size >= NND_HUGE_PAGE / 2;
    const nnd_size unit = is_huge ? NND_HUGE_PAGE : NND_ALIGNMENT;
    if (least) size = nnd_ceil_div(size, unit) * unit;
    region = malloc(sizeof *region);
    if (!region) return NULL;
    *region = (struct nnd_region){memory->regions, 0, size, NULL, NULL, 0};
    if (is_huge ? !nnd_take_pages(region)
                : posix_memalign((void **)&region->data, NND_ALIGNMENT, (size_t)nnd_max(1, size))) {
      free(region);
      return NULL;
    }
    memory->regions = region;
    memory->total += size;
  }
  void *taken = region->data + region->used;
  region->used += needed;
  if (!region->pages) memset(taken, 0, (size_t)needed);
  return taken;
}

void nnd_memory_free(struct nnd_memory *memory) {
  while (memory->regions) {
    struct nnd_region *region = memory->regions;
    memory->regions = region->next;
    if (region->pages)
      munmap(region->pages, region->pages_bytes);
    else
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
