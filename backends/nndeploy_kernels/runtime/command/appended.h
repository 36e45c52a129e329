/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle behind the program itself, as `nndeploy export` puts it there: the program, zeros up to a page, the bundle,
 * its size in 8 bytes, and the mark. With decisions their text, which ends at a zero, and its size come before the size of
 * the bundle, and the mark is another.
 */
#ifndef NND_COMMAND_APPENDED_H
#define NND_COMMAND_APPENDED_H

#include <stdint.h>

#define NND_MARK "nndeploy-export1"
#define NND_MARK_OF_DECISIONS "nndeploy-export2"

enum nnd_behind { NND_NOTHING_BEHIND, NND_BUNDLE_BEHIND, NND_CUT_BEHIND };

struct nnd_appended {
  const void *bundle;
  int64_t size;
  const char *decisions; /* null: there are none */
};

/* Returns what stands behind the program: a bundle, which stays as long as the process, or what is left of one. */
enum nnd_behind nnd_appended_here(struct nnd_appended *appended);

#endif
