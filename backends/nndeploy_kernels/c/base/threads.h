/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of workers that run the steps of a program together. The thread that calls nnd_pool_run() is worker 0.
 *
 * Each step is cut in chunks, some for each worker. A worker takes its own first, so that what a core has written it
 * mostly reads again, then those that others have not begun: nobody waits for a worker that the system does not let
 * run, unless it is inside a chunk. A worker spins for a moment for the next step or call, then sleeps on a futex;
 * between two calls nobody takes processor time.
 * Law: one nnd_pool_run() at a time (the caller's lock). A worker that comes too late for a call is shut out of it.
 * Where there are no threads there is no pool. A pool does not survive fork(): the child has none of its workers.
 */
#ifndef NND_THREADS_H
#define NND_THREADS_H

#include "base/platform.h"
#include "base/step.h"

#define NND_MOST_THREADS 256
#define NND_SPINS 4000 /* about 50 microseconds: AMD Zen 5, 2026-11-20 */
#define NND_CLOSED (1 << 30)

struct nnd_pool;
/* Runs all steps of a program as worker `worker`. */
typedef void (*nnd_task)(const void *context, struct nnd_pool *pool, int worker);

struct nnd_worker {
  struct nnd_pool *pool;
  nnd_thread thread;
  int number;
};

struct nnd_pool {
  _Alignas(64) atomic_int epoch;   /* goes up by one with each call: the futex of workers between calls */
  atomic_int sleeping;             /* workers that wait there, or are about to */
  _Alignas(64) atomic_int gate;    /* workers inside a call, and NND_CLOSED between calls: the caller's futex */
  atomic_int caller_sleeps;        /* until the gate is empty, or is about to */
  _Alignas(64) atomic_int waiting; /* workers that sleep until a step is finished, or are about to */
  _Alignas(64) nnd_task task;      /* null: end */
  const void *context;
  int workers, steps; /* workers with the caller */
  struct nnd_worker *worker;
  atomic_int *finished; /* chunks of each step */
  atomic_int *claimed;  /* [step][worker]: of the worker's own chunks, by whomever */
};

/* Returns when `word` is no longer `value`; counts itself in `sleeping` while it may sleep. */
static void nnd_wait_for_change(atomic_int *word, int value, atomic_int *sleeping) {
  for (int spin = 0; spin < NND_SPINS; spin++) {
    if (atomic_load_explicit(word, memory_order_acquire) != value) return;
    nnd_pause();
  }
  atomic_fetch_add(sleeping, 1);
  while (atomic_load(word) == value) nnd_word_wait(word, value);
  atomic_fetch_sub(sleeping, 1);
}

/* Leaves the gate; wakes the caller where it waits for the last one. */
static void nnd_leave(struct nnd_pool *pool) {
  if (atomic_fetch_sub(&pool->gate, 1) == NND_CLOSED + 1 && atomic_load(&pool->caller_sleeps) > 0)
    nnd_word_wake(&pool->gate, 1);
}

static void *nnd_worker_main(void *argument) {
  struct nnd_worker *self = argument;
  struct nnd_pool *pool = self->pool;
  for (int seen = 0;;) {
    nnd_wait_for_change(&pool->epoch, seen, &pool->sleeping);
    seen = atomic_load(&pool->epoch);
    if (!(atomic_fetch_add(&pool->gate, 1) & NND_CLOSED)) {
      if (!pool->task) return NULL;
      pool->task(pool->context, pool, self->number);
    }
    nnd_leave(pool);
  }
}

/* Opens the gate for a task. */
static void nnd_pool_post(struct nnd_pool *pool, nnd_task task, const void *context) {
  pool->task = task;
  pool->context = context;
  for (int step = 0; step < pool->steps; step++) {
    atomic_store_explicit(&pool->finished[step], 0, memory_order_relaxed);
    for (int i = 0; i < pool->workers; i++)
      atomic_store_explicit(&pool->claimed[step * pool->workers + i], 0, memory_order_relaxed);
  }
  atomic_fetch_and(&pool->gate, ~NND_CLOSED);
  atomic_fetch_add(&pool->epoch, 1);
  if (atomic_load(&pool->sleeping) > 0) nnd_word_wake(&pool->epoch, pool->workers);
}

/* Runs `task`; returns when all of it is done and no worker is inside any more. */
static void nnd_pool_run(struct nnd_pool *pool, nnd_task task, const void *context) {
  nnd_pool_post(pool, task, context);
  task(context, pool, 0);
  atomic_fetch_or(&pool->gate, NND_CLOSED);
  for (int gate; (gate = atomic_load(&pool->gate)) != NND_CLOSED;)
    nnd_wait_for_change(&pool->gate, gate, &pool->caller_sleeps);
}

/* What worker `worker` does of the chunks of step `step`; returns when the whole step is done. */
NND_INLINE void nnd_pool_step(struct nnd_pool *pool, int step, int worker, int each,
                              void (*run)(const void *context, struct nnd_part part), const void *context,
                              char *scratch) {
  const int chunks = each * pool->workers;
  nnd_size held = -1;
  for (int k = 0; k < pool->workers; k++) {
    const int owner = (worker + k) % pool->workers;
    atomic_int *claimed = &pool->claimed[step * pool->workers + owner];
    for (int i; (i = atomic_fetch_add(claimed, 1)) < each;) {
      run(context, (struct nnd_part){.number = owner * each + i, .count = chunks, .scratch = scratch, .held = &held});
      if (atomic_fetch_add(&pool->finished[step], 1) + 1 == chunks && atomic_load(&pool->waiting) > 0)
        nnd_word_wake(&pool->finished[step], pool->workers);
    }
  }
  for (int done; (done = atomic_load_explicit(&pool->finished[step], memory_order_acquire)) != chunks;)
    nnd_wait_for_change(&pool->finished[step], done, &pool->waiting);
}

/* Whether the worker that asks is the first: it does alone what begins at `step`, a step that is not cut. */
NND_INLINE int nnd_pool_claim(struct nnd_pool *pool, int step) {
  return !atomic_fetch_add(&pool->claimed[step * pool->workers], 1);
}

/* What one worker did alone is done, and ends with `step`: told by the one who did it, waited for by all others. */
NND_INLINE void nnd_pool_claimed_done(struct nnd_pool *pool, int step, int is_mine) {
  if (is_mine) {
    atomic_store(&pool->finished[step], 1);
    if (atomic_load(&pool->waiting) > 0) nnd_word_wake(&pool->finished[step], pool->workers);
  } else if (!atomic_load_explicit(&pool->finished[step], memory_order_acquire)) {
    nnd_wait_for_change(&pool->finished[step], 0, &pool->waiting);
  }
}

/* Ends the workers and frees the pool. */
static void nnd_pool_stop(struct nnd_pool *pool) {
  nnd_pool_post(pool, NULL, NULL);
  for (int i = 1; i < pool->workers; i++) nnd_thread_join(pool->worker[i].thread);
  free(pool->worker);
  free(pool->finished);
  free(pool->claimed);
  nnd_lines_free(pool);
}

/* Returns a pool of `workers`, the caller being one of them, for programs of `steps` steps; null where the system
 * gives no memory or threads. */
static struct nnd_pool *nnd_pool_start(int workers, int steps) {
  if (workers < 2 || workers > NND_MOST_THREADS) return NULL;
  struct nnd_pool *pool = nnd_lines_take(sizeof *pool);
  if (!pool) return NULL;
  memset((void *)pool, 0, sizeof *pool);
  pool->gate = NND_CLOSED;
  pool->steps = steps;
  pool->worker = calloc((size_t)workers, sizeof *pool->worker);
  pool->finished = calloc((size_t)steps, sizeof *pool->finished);
  pool->claimed = calloc((size_t)steps * (size_t)workers, sizeof *pool->claimed);
  int started = pool->worker && pool->finished && pool->claimed;
  for (pool->workers = 1; started && pool->workers < workers; pool->workers += started) {
    struct nnd_worker *worker = &pool->worker[pool->workers];
    *worker = (struct nnd_worker){.pool = pool, .number = pool->workers};
    started = nnd_thread_start(&worker->thread, nnd_worker_main, worker);
  }
  if (started) return pool;
  pool->steps = 0;
  nnd_pool_stop(pool);
  return NULL;
}

#endif
