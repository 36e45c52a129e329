/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of Linux alone: processors and their caches.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "runtime/inside.h"

int nnd_num_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

/* Opens what the system says of a cache of the first processor; null where it says nothing. */
static FILE *nnd_cache_fact(int index, const char *fact) {
  char path[80];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, fact);
  return fopen(path, "re");
}

int64_t nnd_cache_bytes(int level) {
  for (int index = 0; index < 8; index++) {
    char kind = 0, unit = 0;
    int found = 0;
    long long size = 0;
    FILE *file = nnd_cache_fact(index, "level");
    if (!file) return 0;
    const int is_level = fscanf(file, "%d", &found) == 1 && found == level;
    fclose(file);
    if (!is_level) continue;
    if (!(file = nnd_cache_fact(index, "type"))) return 0;
    const int is_of_data = fscanf(file, "%c", &kind) == 1 && kind != 'I';
    fclose(file);
    if (!is_of_data) continue;
    if (!(file = nnd_cache_fact(index, "size"))) return 0;
    const int count = fscanf(file, "%lld%c", &size, &unit);
    fclose(file);
    if (count < 1 || size <= 0) return 0;
    return size << (count == 2 && unit == 'K' ? 10 : count == 2 && unit == 'M' ? 20 : 0);
  }
  return 0;
}

void nnd_cpu_name(char *name, size_t room) {
  FILE *file = fopen("/proc/cpuinfo", "re");
  char line[512];
  struct utsname system;
  snprintf(name, room, "%s", uname(&system) ? "" : system.machine);
  while (file && fgets(line, sizeof line, file)) {
    char *begin = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    if (!begin) continue;
    begin += 1 + strspn(begin + 1, " \t");
    begin[strcspn(begin, "\n")] = 0;
    snprintf(name, room, "%s", begin);
    break;
  }
  if (file) fclose(file);
}
