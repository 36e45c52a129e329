/* SPDX-License-Identifier: Apache-2.0
 *
 * An item as the library of delays sees it: behind what kernels know of it stand the terms on which it sleeps.
 *
 * Kernels hand out the item alone, which comes first, so they need not know of the rest. Memory is the caller's
 * (nndeploy/pacing/run/item.py); it must have room for the terms, which libraries before version 3 did not know.
 */
#ifndef NND_PACED_ITEM_H
#define NND_PACED_ITEM_H

#include "base/pace.h"
#include "pacing/group.h"

#define NND_PACE_LIBRARY_VERSION 3 /* of struct nnd_paced_item and struct nnd_group */

struct nnd_paced_item {
  struct nnd_pace_item item;
  const double *presets;       /* of each point: nanoseconds that are slept behind it whatever else is, and nothing is
                                  inside of its operator; null: as the plan says alone */
  const double *presets_after; /* of each point: the sum of those that are passed behind it */
  struct nnd_group *group; /* with whom the processor is shared, which alone then says when to sleep; null: nobody */
  int64_t member;          /* the place in it */
};

#endif
