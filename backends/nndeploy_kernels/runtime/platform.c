/* SPDX-License-Identifier: Apache-2.0
 *
 * All that the runtime asks of the system: files, pages, processors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/inside.h"

#define NND_HUGE_PAGE ((int64_t)2 << 20)

int nnd_source_open(struct nnd_source *source, const char *path, nnd_error *error) {
  struct stat about;
  source->memory = NULL;
  source->file = open(path, O_RDONLY | O_CLOEXEC);
  if (source->file < 0) return nnd_fail_with(error, NND_NO_INPUT, "%s: %s", path, strerror(errno));
  if (fstat(source->file, &about)) {
    nnd_fail_with(error, NND_IO, "%s: %s", path, strerror(errno));
  } else if (!S_ISREG(about.st_mode)) {
    nnd_fail_with(error, NND_NO_INPUT, "%s: not a file", path);
  } else {
    source->size = about.st_size;
    return 1;
  }
  nnd_source_close(source);
  return 0;
}

void nnd_source_close(struct nnd_source *source) {
  if (source->file >= 0) close(source->file);
  source->file = -1;
}

int nnd_source_read(const struct nnd_source *source, int64_t offset, int64_t size, void *target, nnd_error *error) {
  if (source->file < 0) {
    memcpy(target, source->memory + offset, (size_t)size);
    return 1;
  }
  for (int64_t done = 0; done < size;) {
    const ssize_t got = pread(source->file, (char *)target + done, (size_t)(size - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return nnd_fail_with(error, NND_IO, "reading failed: %s", strerror(errno));
    if (got == 0) return nnd_fail_with(error, NND_BAD_DATA, "the file was cut short while it was read");
    done += got;
  }
  return 1;
}

void *nnd_pages_take(int64_t bytes) {
  void *pages =
      bytes < 0 ? MAP_FAILED
                : mmap(NULL, (size_t)(bytes ? bytes : 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

void nnd_pages_free(void *pages, int64_t bytes) {
  if (pages) munmap(pages, (size_t)(bytes ? bytes : 1));
}

static int64_t nnd_in_huge_pages(int64_t bytes) { return (bytes + NND_HUGE_PAGE - 1) / NND_HUGE_PAGE * NND_HUGE_PAGE; }

void *nnd_work_take(int64_t bytes) {
  const int64_t size = nnd_in_huge_pages(bytes);
  if (bytes < NND_HUGE_PAGE) return aligned_alloc(NND_LINE, (size_t)(bytes + NND_LINE - 1) / NND_LINE * NND_LINE);
  char *pages = mmap(NULL, (size_t)(size + NND_HUGE_PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  const int64_t before = -(int64_t)(intptr_t)pages & (NND_HUGE_PAGE - 1); /* up to where a huge page may begin */
  if (before) munmap(pages, (size_t)before);
  munmap(pages + before + size, (size_t)(NND_HUGE_PAGE - before));
  madvise(pages + before, (size_t)size, MADV_HUGEPAGE);
  return pages + before;
}

void nnd_work_free(void *memory, int64_t bytes) {
  if (bytes < NND_HUGE_PAGE)
    free(memory);
  else
    munmap(memory, (size_t)nnd_in_huge_pages(bytes));
}

int nnd_num_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

int64_t nnd_second_cache_bytes(void) {
  for (int index = 0; index < 8; index++) {
    char path[80], level = 0, unit = 0;
    long long size = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const int is_second = fscanf(file, "%c", &level) == 1 && level == '2';
    fclose(file);
    if (!is_second) continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (!(file = fopen(path, "re"))) return 0;
    const int count = fscanf(file, "%lld%c", &size, &unit);
    fclose(file);
    if (count < 1 || size <= 0) return 0;
    return size << (count == 2 && unit == 'K' ? 10 : count == 2 && unit == 'M' ? 20 : 0);
  }
  return 0;
}
