/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of Windows.
 */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/inside.h"
#include "windows/wide.h"

int nnd_source_open(struct nnd_source *source, const char *path, nnd_error *error) {
  wchar_t *wide = nnd_wide(path);
  struct _stat64 about;
  source->memory = NULL;
  source->file = wide ? _wopen(wide, _O_RDONLY | _O_BINARY | _O_NOINHERIT) : -1;
  free(wide);
  if (source->file < 0)
    return nnd_fail_with(error, NND_NO_INPUT, "%s: %s", path, errno == ENOENT ? "no such bundle" : strerror(errno));
  if (_fstat64(source->file, &about)) {
    nnd_fail_with(error, NND_IO, "%s: %s", path, strerror(errno));
  } else if ((about.st_mode & _S_IFMT) != _S_IFREG) {
    nnd_fail_with(error, NND_NO_INPUT, "%s: not a file", path);
  } else {
    source->size = about.st_size;
    return 1;
  }
  nnd_source_close(source);
  return 0;
}

void nnd_source_close(struct nnd_source *source) {
  if (source->file >= 0) _close(source->file);
  source->file = -1;
}

int nnd_source_read(const struct nnd_source *source, int64_t offset, int64_t size, void *target, nnd_error *error) {
  if (source->file < 0) {
    memcpy(target, source->memory + offset, (size_t)size);
    return 1;
  }
  if (_lseeki64(source->file, offset, SEEK_SET) < 0)
    return nnd_fail_with(error, NND_IO, "reading failed: %s", strerror(errno));
  for (int64_t done = 0; done < size;) {
    const int64_t left = size - done;
    const int got = _read(source->file, (char *)target + done, left < INT32_MAX ? (unsigned)left : INT32_MAX);
    if (got < 0) return nnd_fail_with(error, NND_IO, "reading failed: %s", strerror(errno));
    if (got == 0) return nnd_fail_with(error, NND_BAD_DATA, "the file was cut short while it was read");
    done += got;
  }
  return 1;
}

void *nnd_pages_take(int64_t bytes) {
  return bytes < 0 ? NULL : VirtualAlloc(NULL, (size_t)(bytes ? bytes : 1), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void nnd_pages_leave(const void *pages, int64_t bytes) { (void)pages, (void)bytes; }

void nnd_pages_free(void *pages, int64_t bytes) {
  (void)bytes;
  if (pages) VirtualFree(pages, 0, MEM_RELEASE);
}

void *nnd_work_take(int64_t bytes) { return nnd_lines_take(bytes); }

void nnd_work_free(void *memory, int64_t bytes) {
  (void)bytes;
  nnd_lines_free(memory);
}

void *nnd_lines_take(int64_t bytes) {
  return bytes < 0 ? NULL : _aligned_malloc((size_t)(bytes ? bytes : 1), NND_LINE);
}

void nnd_lines_free(void *memory) { _aligned_free(memory); }

int nnd_num_processors(void) {
  DWORD_PTR process = 0, system = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system) || !process) return 1;
  return __builtin_popcountll(process);
}

int64_t nnd_cache_bytes(int level) {
  SYSTEM_LOGICAL_PROCESSOR_INFORMATION each[256];
  DWORD bytes = sizeof each;
  if (!GetLogicalProcessorInformation(each, &bytes)) return 0;
  for (DWORD i = 0; i < bytes / sizeof *each; i++)
    if (each[i].Relationship == RelationCache && each[i].Cache.Level == level && each[i].Cache.Type != CacheInstruction)
      return each[i].Cache.Size;
  return 0;
}

void nnd_cpu_name(char *name, size_t room) {
  unsigned words[13] = {0}, most, unused;
  if (!__get_cpuid(0x80000000, &most, &unused, &unused, &unused) || most < 0x80000004) {
    snprintf(name, room, "x86_64");
    return;
  }
  for (unsigned i = 0; i < 3; i++)
    __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  const char *text = (const char *)words;
  size_t size = strlen(text += strspn(text, " "));
  while (size && text[size - 1] == ' ') size--;
  snprintf(name, room, "%.*s", (int)size, text);
}
