/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "base/platform.h"
#include "model/expected.h"

#define NND_REGION_BYTES ((nnd_size)64 << 10)

/* Large ones are pages of the system, which are zero, and there when they are first written. */
struct nnd_region {
  struct nnd_region *next;
  nnd_size used, size;
  char *data;
  int is_huge; /* of `pages`, else of malloc */
  struct nnd_pages pages;
};

/* Adds a region that is first; returns 0 where there is no memory. */
static int nnd_region_add(struct nnd_memory *memory, nnd_size size, int is_huge) {
  struct nnd_region *region = malloc(sizeof *region);
  if (!region) return 0;
  *region = (struct nnd_region){.next = memory->regions, .size = size, .is_huge = is_huge};
  if (!is_huge)
    region->data = nnd_lines_take((size_t)nnd_max(1, size));
  else if (nnd_pages_take(&region->pages, size))
    region->data = region->pages.data;
  if (!region->data) {
    free(region);
    return 0;
  }
  memory->regions = region;
  memory->total += size;
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
    const int is_huge = least && nnd_has_pages() && size >= NND_HUGE_PAGE / 2;
    const nnd_size unit = is_huge ? NND_HUGE_PAGE : NND_ALIGNMENT;
    if (least) size = nnd_ceil_div(size, unit) * unit;
    if (!nnd_region_add(memory, size, is_huge)) return NULL;
    region = memory->regions;
  }
  void *taken = region->data + region->used;
  region->used += needed;
  if (!region->is_huge) memset(taken, 0, (size_t)needed);
  return taken;
}

void nnd_memory_expect(struct nnd_memory *memory, nnd_size num_bytes) {
#ifndef NND_SEPARATE
  if (!nnd_has_pages() || num_bytes < NND_HUGE_PAGE / 2 || num_bytes > NND_MOST_BYTES) return;
  nnd_region_add(memory, nnd_ceil_div(num_bytes, NND_HUGE_PAGE) * NND_HUGE_PAGE,
                 1); /* else taking says that it lacks */
#else
  (void)memory, (void)num_bytes;
#endif
}

void nnd_memory_free(struct nnd_memory *memory) {
  while (memory->regions) {
    struct nnd_region *region = memory->regions;
    memory->regions = region->next;
    if (region->is_huge)
      nnd_pages_free(&region->pages);
    else
      nnd_lines_free(region->data);
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
