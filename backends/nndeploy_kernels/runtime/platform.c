/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of Linux and macOS alike: files and pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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
  if (source->file < 0)
    return nnd_fail_with(error, NND_NO_INPUT, "%s: %s", path, errno == ENOENT ? "no such bundle" : strerror(errno));
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

void nnd_pages_leave(const void *pages, int64_t bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)pages, end = begin + (uintptr_t)bytes;
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) madvise((void *)first, last - first, MADV_DONTNEED);
}

static int64_t nnd_in_huge_pages(int64_t bytes) { return (bytes + NND_HUGE_PAGE - 1) / NND_HUGE_PAGE * NND_HUGE_PAGE; }

void *nnd_work_take(int64_t bytes) {
  const int64_t size = nnd_in_huge_pages(bytes);
  if (bytes < NND_HUGE_PAGE) return nnd_lines_take(bytes);
  char *pages = mmap(NULL, (size_t)(size + NND_HUGE_PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  const int64_t before = -(int64_t)(intptr_t)pages & (NND_HUGE_PAGE - 1); /* up to where a huge page may begin */
  if (before) munmap(pages, (size_t)before);
  munmap(pages + before + size, (size_t)(NND_HUGE_PAGE - before));
#ifdef MADV_HUGEPAGE
  madvise(pages + before, (size_t)size, MADV_HUGEPAGE);
#endif
  return pages + before;
}

void nnd_work_free(void *memory, int64_t bytes) {
  if (bytes < NND_HUGE_PAGE)
    nnd_lines_free(memory);
  else
    munmap(memory, (size_t)nnd_in_huge_pages(bytes));
}

void *nnd_lines_take(int64_t bytes) {
  return bytes < 0 ? NULL : aligned_alloc(NND_LINE, (size_t)(bytes / NND_LINE + 1) * NND_LINE);
}

void nnd_lines_free(void *memory) { free(memory); }
