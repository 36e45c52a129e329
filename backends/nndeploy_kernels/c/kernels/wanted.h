/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instructions the user does without: NNDEPLOY_KERNELS_WITHOUT holds names with commas between them.
 */
#ifndef NND_WANTED_H
#define NND_WANTED_H

#include <stdlib.h>
#include <string.h>

static inline int nnd_is_wanted(const char *name) {
  const char *without = getenv("NNDEPLOY_KERNELS_WITHOUT");
  return !without || !strstr(without, name);
}

#endif
