/* SPDX-License-Identifier: Apache-2.0
 *
 * What a generated program of steps includes, and how it is called: nnd_run() of a library of kernels.
 *
 * A program is one function that each worker runs: step after step, each begun when the one before is done. Scratch
 * memory of a worker is `scratch_bytes` from `scratch` on.
 */
#ifndef NND_PROGRAM_H
#define NND_PROGRAM_H

#include "along_axis.h"
#include "convolution.h"
#include "elementwise.h"
#include "grouped.h"
#include "inverted_residual.h"
#include "layout.h"
#include "matrix.h"
#include "movement.h"
#include "pace.h"
#include "planar_separable.h"
#include "pooling.h"
#include "recurrent.h"
#include "resize.h"
#include "separable.h"
#include "stem.h"
#include "threads.h"

#define NND_EXPORT __attribute__((visibility("default")))

struct nnd_call {
  const void *const *inputs;
  void *const *outputs;
  const char *constants;
  char *arena, *scratch;
  nnd_size scratch_bytes; /* of one worker */
  const nnd_size *sizes;  /* what nnd_compose made of the shapes of the inputs; not read where all are fixed */
  struct nnd_pace_item *pace; /* null: nothing is paced */
};

/* A step that is paced: it is cut finer, and passes a point behind each of its chunks. */
struct nnd_paced_step {
  void (*run)(const void *context, struct nnd_part part);
  const struct nnd_call *call;
  nnd_size point;
  int worker, each;
};

static void nnd_paced_chunk(const void *context, struct nnd_part part) {
  const struct nnd_paced_step *step = context;
  struct nnd_pace_item *item = step->call->pace;
  step->run(step->call, part);
  const int done = part.number % step->each + 1; /* of the chunks that one worker has to begin with */
  if (done < step->each) item->pass(item, step->worker, step->point, done, step->each);
}

static void nnd_run_paced(struct nnd_pool *pool, int step, int worker, int each,
                          void (*run)(const void *context, struct nnd_part part), const struct nnd_call *call,
                          char *scratch) {
  struct nnd_pace_item *item = call->pace;
  const int workers = pool ? pool->workers : 1;
  const nnd_size point = item->first + step;
  const nnd_size parts = item->plan && point < item->num_points ? item->plan->points[point].parts : 1;
  const nnd_size wanted = nnd_ceil_div(parts, workers);
  if (!pool) each = 1;
  if (wanted > each) each = (int)wanted;
  const struct nnd_paced_step paced = {run, call, step, worker, each};
  if (pool) nnd_pool_step(pool, step, worker, each, nnd_paced_chunk, &paced, scratch);
  else
    for (int i = 0; i < each; i++) nnd_paced_chunk(&paced, (struct nnd_part){i, each, scratch});
  item->pass(item, worker, step, 1, 1);
}

#ifndef NND_BEFORE_STEP /* what measures steps defines these before it includes this */
#define NND_BEFORE_STEP(step, worker)
#define NND_AFTER_STEP(step, worker)
#endif

/* What worker `worker` does of a step, `each` chunks for a worker; without a pool the whole step. */
NND_INLINE void nnd_run_step(struct nnd_pool *pool, int step, int worker, int each,
                             void (*run)(const void *context, struct nnd_part part), const void *context) {
  const struct nnd_call *call = context;
  char *scratch = call->scratch + worker * call->scratch_bytes;
  NND_BEFORE_STEP(step, worker)
  if (call->pace) nnd_run_paced(pool, step, worker, each, run, call, scratch);
  else if (pool) nnd_pool_step(pool, step, worker, each, run, context, scratch);
  else run(context, (struct nnd_part){0, 1, scratch});
  NND_AFTER_STEP(step, worker)
}

#endif
