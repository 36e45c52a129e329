/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of a module whose memory is shared: Workers of the page, or of Node, each with an instance of the module over
 * this memory. One that is free waits in nnd_web_work(); who asks for a thread is the one that opened the program.
 */
#include <stdatomic.h>

#define NND_MOST_WORKERS 32

/* Whether this instance may sleep: the first thread of a page may not. */
__attribute__((import_module("env"), import_name("may_wait"))) int nnd_may_wait(void);

static struct {
  atomic_int is_asked; /* the word that a Worker waits for */
  void *(*run)(void *);
  void *argument;
} nnd_workers[NND_MOST_WORKERS];

static int nnd_num_workers;

void nnd_wait_while(atomic_int *word, int value) {
  if (nnd_may_wait()) __builtin_wasm_memory_atomic_wait32((int *)word, value, -1);
}

/* Says how many Workers there will be; returns how many there may be. */
int nnd_web_begin(int workers) { return nnd_num_workers = workers < NND_MOST_WORKERS ? workers : NND_MOST_WORKERS; }

/* Works as thread `number`, and never returns. */
void nnd_web_work(int number) {
  for (;;) {
    while (!atomic_load(&nnd_workers[number].is_asked)) nnd_wait_while(&nnd_workers[number].is_asked, 0);
    nnd_workers[number].run(nnd_workers[number].argument);
    atomic_store(&nnd_workers[number].is_asked, 0);
    __builtin_wasm_memory_atomic_notify((int *)&nnd_workers[number].is_asked, 1);
  }
}

int nnd_worker_begin(void *(*run)(void *), void *argument) {
  for (int i = 0; i < nnd_num_workers; i++) {
    if (atomic_load(&nnd_workers[i].is_asked)) continue;
    nnd_workers[i].run = run;
    nnd_workers[i].argument = argument;
    atomic_store(&nnd_workers[i].is_asked, 1);
    __builtin_wasm_memory_atomic_notify((int *)&nnd_workers[i].is_asked, 1);
    return i;
  }
  return -1;
}

void nnd_worker_join(int worker) {
  while (atomic_load(&nnd_workers[worker].is_asked)) nnd_wait_while(&nnd_workers[worker].is_asked, 1);
}
