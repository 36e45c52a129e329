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

/* In how many chunks a worker does its share of a step. */
static int nnd_paced_chunks(const struct nnd_pace_item *item, int step, int workers, int each) {
  const nnd_size point = item->first + step;
  const nnd_size parts = item->plan && point < item->num_points ? item->plan->points[point].parts : 1;
  const nnd_size wanted = nnd_ceil_div(parts, workers);
  return wanted > each ? (int)wanted : each;
}

static void nnd_run_in_chunks(struct nnd_pool *pool, int step, int worker, int each,
                              void (*run)(const void *context, struct nnd_part part), const struct nnd_call *call,
                              char *scratch) {
  const struct nnd_paced_step paced = {run, call, step, worker, each};
  if (pool) nnd_pool_step(pool, step, worker, each, nnd_paced_chunk, &paced, scratch);
  else
    for (int i = 0; i < each; i++) nnd_paced_chunk(&paced, (struct nnd_part){i, each, scratch});
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
  struct nnd_pace_item *pace = call->pace;
  NND_BEFORE_STEP(step, worker)
  if (pace) each = nnd_paced_chunks(pace, step, pool ? pool->workers : 1, pool ? each : 1);
  if (pace && each > 1) nnd_run_in_chunks(pool, step, worker, each, run, call, scratch);
  else if (pool) nnd_pool_step(pool, step, worker, each, run, context, scratch);
  else run(context, (struct nnd_part){0, 1, scratch}); /* a whole step is compiled by itself: faster than a chunk */
  if (pace) pace->pass(pace, worker, step, 1, 1);
  NND_AFTER_STEP(step, worker)
}

#endif
