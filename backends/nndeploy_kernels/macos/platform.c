/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime asks of macOS alone: processors.
 */
#include <sys/sysctl.h>
#include <unistd.h>

#include "runtime/inside.h"

int nnd_num_processors(void) {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int)count : 1;
}

int64_t nnd_second_cache_bytes(void) {
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return sysctlbyname("hw.l2cachesize", &bytes, &size, NULL, 0) ? 0 : bytes;
}
