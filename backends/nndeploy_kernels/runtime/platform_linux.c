/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of Linux alone: processors.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>

#include "runtime/inside.h"

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
