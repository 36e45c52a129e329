/* SPDX-License-Identifier: Apache-2.0
 *
 * What a generated program of steps includes, and how it is called: nnd_run() of a library of kernels.
 *
 * A program is one function that each worker runs: step after step, with a barrier between two. Scratch memory of a
 * worker is `scratch_bytes` from `scratch` on.
 */
#ifndef NND_PROGRAM_H
#define NND_PROGRAM_H

#include <stdlib.h>

#include "along_axis.h"
#include "convolution.h"
#include "elementwise.h"
#include "grouped.h"
#include "inverted_residual.h"
#include "layout.h"
#include "matrix.h"
#include "movement.h"
#include "pooling.h"
#include "resize.h"
#include "separable.h"
#include "threads.h"

#define NND_EXPORT __attribute__((visibility("default")))

struct nnd_call {
  const void *const *inputs;
  void *const *outputs;
  const char *constants;
  char *arena, *scratch;
  nnd_size scratch_bytes; /* of one worker */
};

/* The part of `worker` of a call. */
NND_INLINE struct nnd_part nnd_part_of(const struct nnd_call *call, int worker, int workers) {
  return (struct nnd_part){worker, workers, call->scratch + worker * call->scratch_bytes};
}

/* Returns a pool of `workers`, null where their threads cannot be started. */
NND_EXPORT struct nnd_pool *nnd_start(int workers) {
  struct nnd_pool *pool = aligned_alloc(64, sizeof *pool);
  if (pool && nnd_pool_start(pool, workers)) {
    free(pool);
    return NULL;
  }
  return pool;
}

NND_EXPORT void nnd_stop(struct nnd_pool *pool) {
  nnd_pool_stop(pool);
  free(pool);
}

#endif
