/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command asks of Linux alone.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/command/system.h"

const uint8_t *nnd_program_map(int64_t *size) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0 && getauxval(AT_EXECFN)) /* without /proc, as in an init ramdisk: by the path that was executed */
    file = open((const char *)getauxval(AT_EXECFN), O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0) return NULL;
  void *mapped = MAP_FAILED;
  if (!fstat(file, &about)) mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return NULL;
  *size = about.st_size;
  return mapped;
}

int64_t nnd_program_end(const uint8_t *program, int64_t size) { /* its table of sections is the last of it */
  Elf64_Ehdr head;
  if (size < (int64_t)sizeof head) return 0;
  memcpy(&head, program, sizeof head);
  return (int64_t)head.e_shoff + (int64_t)head.e_shnum * head.e_shentsize;
}
