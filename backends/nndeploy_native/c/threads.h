/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool: one persistent worker a thread, which spins briefly for the next piece of work and then sleeps on a futex.
 *
 * The thread that calls nnd_pool_run() is worker 0. Work follows work within microseconds while a network runs, so
 * that a worker seldom sleeps then; between two runs it sleeps and takes no processor time.
 * Law: one nnd_pool_run() at a time (the caller's lock); it returns when every worker has finished its part.
 * Linux only. A pool does not survive fork(): the child has none of its workers.
 */
#ifndef NND_THREADS_H
#define NND_THREADS_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vector.h"

#define NND_MOST_THREADS 256
#define NND_SPINS 4000 /* about 50 microseconds: AMD Zen 5, 2026-11-20 */

struct nnd_pool;
/* Does part `worker` of `pool->workers`, or all where there is no pool. */
typedef void (*nnd_task)(const void *context, struct nnd_pool *pool, int worker);

struct nnd_pool {
  _Alignas(64) atomic_int epoch; /* goes up by one with each task: the workers' futex */
  atomic_int sleeping;           /* workers that wait, or are about to */
  _Alignas(64) atomic_int busy;  /* workers that have not finished: the caller's futex */
  _Alignas(64) atomic_int arrived; /* workers at the barrier */
  atomic_int phase;                /* goes up by one with each barrier: the futex of those who wait there */
  atomic_int waiting;              /* workers that sleep there, or are about to */
  _Alignas(64) nnd_task task;      /* null: end */
  const void *context;
  int workers; /* with the caller */
  struct nnd_worker {
    struct nnd_pool *pool;
    pthread_t thread;
    int number;
  } worker[NND_MOST_THREADS];
};

NND_INLINE void nnd_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

NND_INLINE void nnd_futex_wait(atomic_int *word, int while_it_is) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

NND_INLINE void nnd_futex_wake(atomic_int *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Returns when `word` is no longer `value`. */
static void nnd_wait_for_change(atomic_int *word, int value, atomic_int *sleeping) {
  for (int spin = 0; spin < NND_SPINS; spin++) {
    if (atomic_load_explicit(word, memory_order_acquire) != value) return;
    nnd_pause();
  }
  if (sleeping) atomic_fetch_add(sleeping, 1);
  while (atomic_load(word) == value) nnd_futex_wait(word, value);
  if (sleeping) atomic_fetch_sub(sleeping, 1);
}

static void *nnd_worker_main(void *argument) {
  struct nnd_worker *self = argument;
  struct nnd_pool *pool = self->pool;
  for (unsigned epoch = 0;; epoch++) {
    nnd_wait_for_change(&pool->epoch, (int)epoch, &pool->sleeping);
    if (!pool->task) return NULL;
    pool->task(pool->context, pool, self->number);
    if (atomic_fetch_sub(&pool->busy, 1) == 1) nnd_futex_wake(&pool->busy, 1);
  }
}

static void nnd_pool_post(struct nnd_pool *pool, nnd_task task, const void *context) {
  pool->task = task;
  pool->context = context;
  atomic_store(&pool->busy, pool->workers - 1);
  atomic_fetch_add(&pool->epoch, 1);
  if (atomic_load(&pool->sleeping) > 0) nnd_futex_wake(&pool->epoch, pool->workers);
}

/* Runs `task` on every worker, this thread being number 0. */
static void nnd_pool_run(struct nnd_pool *pool, nnd_task task, const void *context) {
  if (pool->workers > 1) nnd_pool_post(pool, task, context);
  task(context, pool, 0);
  if (pool->workers == 1) return;
  for (int left; (left = atomic_load_explicit(&pool->busy, memory_order_acquire)) > 0;)
    nnd_wait_for_change(&pool->busy, left, NULL);
}

/* Returns when all workers of a task are here. */
NND_INLINE void nnd_barrier(struct nnd_pool *pool) {
  if (!pool || pool->workers == 1) return;
  const int phase = atomic_load(&pool->phase);
  if (atomic_fetch_add(&pool->arrived, 1) + 1 < pool->workers) {
    nnd_wait_for_change(&pool->phase, phase, &pool->waiting);
    return;
  }
  atomic_store(&pool->arrived, 0);
  atomic_fetch_add(&pool->phase, 1);
  if (atomic_load(&pool->waiting) > 0) nnd_futex_wake(&pool->phase, pool->workers);
}

/* Ends the workers; the pool may be started again. */
static void nnd_pool_stop(struct nnd_pool *pool) {
  if (pool->workers > 1) nnd_pool_post(pool, NULL, NULL);
  for (int i = 1; i < pool->workers; i++) pthread_join(pool->worker[i].thread, NULL);
  pool->workers = 0;
}

/* Starts `workers` - 1 threads. Returns 0, or the error of the thread that could not be started; none is left then. */
static int nnd_pool_start(struct nnd_pool *pool, int workers) {
  if (workers < 1 || workers > NND_MOST_THREADS) return -1;
  memset((void *)pool, 0, sizeof *pool);
  pool->workers = 1;
  for (int i = 1; i < workers; i++) {
    pool->worker[i] = (struct nnd_worker){.pool = pool, .number = i};
    const int error = pthread_create(&pool->worker[i].thread, NULL, nnd_worker_main, &pool->worker[i]);
    if (error) {
      nnd_pool_stop(pool);
      return error;
    }
    pool->workers = i + 1;
  }
  return 0;
}

#endif
