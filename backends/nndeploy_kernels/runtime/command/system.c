/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command asks of Linux and macOS alike.
 */
#define _GNU_SOURCE
#include "runtime/command/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

void nnd_process_begin(int *count, char ***words) { (void)count, (void)words; }

const char *nnd_base_name(const char *path) {
  const char *last = strrchr(path, '/');
  return last ? last + 1 : path;
}

FILE *nnd_file_open(const char *path) { return fopen(path, "rbe"); }

FILE *nnd_file_create(const char *path) { return fopen(path, "wbe"); }

int64_t nnd_file_size(FILE *file) {
  struct stat about;
  if (fstat(fileno(file), &about) || S_ISDIR(about.st_mode)) return -1;
  return about.st_size;
}

int64_t nnd_line_read(char **line, size_t *room, FILE *from) { return getline(line, room, from); }

int nnd_folder_make(const char *path) { return !mkdir(path, 0777) || errno == EEXIST; }

int64_t nnd_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
