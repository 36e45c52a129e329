/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/appended.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NND_TAIL ((int64_t)sizeof NND_MARK - 1 + 8)

/* Returns where the program itself ends: its table of sections is the last of it. */
static int64_t nnd_program_end(int file) {
  Elf64_Ehdr head;
  if (pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head) return 0;
  return (int64_t)head.e_shoff + (int64_t)head.e_shnum * head.e_shentsize;
}

enum nnd_behind nnd_appended_here(struct nnd_appended *appended) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat about = {0};
  uint8_t tail[NND_TAIL];
  int64_t size = 0, begin = -1;
  if (file < 0) return NND_NOTHING_BEHIND;
  if (!fstat(file, &about) && about.st_size > NND_TAIL &&
      pread(file, tail, sizeof tail, about.st_size - NND_TAIL) == NND_TAIL &&
      !memcmp(tail + 8, NND_MARK, sizeof NND_MARK - 1)) {
    for (int i = 0; i < 8; i++) size |= (int64_t)tail[i] << 8 * i;
    if (size > 0 && size < about.st_size - NND_TAIL) begin = about.st_size - NND_TAIL - size;
  }
  const int has_more = about.st_size > nnd_program_end(file);
  void *mapped = MAP_FAILED;
  if (begin >= 0 && begin % 4096 == 0) mapped = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, begin);
  close(file);
  if (mapped == MAP_FAILED) return has_more ? NND_CUT_BEHIND : NND_NOTHING_BEHIND;
  *appended = (struct nnd_appended){mapped, size};
  return NND_BUNDLE_BEHIND;
}
