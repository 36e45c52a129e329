/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of macOS alone: processors.
 */
#include <stdio.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "runtime/inside.h"

int nnd_num_processors(void) {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int)count : 1;
}

int64_t nnd_cache_bytes(int level) {
  static const char *const names[] = {"hw.l1dcachesize", "hw.l2cachesize", "hw.l3cachesize"};
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return level < 1 || level > 3 || sysctlbyname(names[level - 1], &bytes, &size, NULL, 0) ? 0 : bytes;
}

void nnd_cpu_name(char *name, size_t room) {
  size_t size = room;
  if (sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0)) snprintf(name, room, "unknown");
}
