/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory that only grows: there are no pages to take or to give back. One thread, but where the memory is shared.
 */
#ifndef NND_PLATFORM_WASM_H
#define NND_PLATFORM_WASM_H

/* As large as asked and no larger: sanitizers tell what lies behind. */
NND_INLINE void *nnd_lines_take(size_t num_bytes) {
  void *memory;
  return posix_memalign(&memory, NND_LINE_BYTES, num_bytes) ? NULL : memory;
}

NND_INLINE void nnd_lines_free(void *memory) { free(memory); }

NND_INLINE int nnd_has_pages(void) { return 0; }

struct nnd_pages {
  void *data;
};

NND_INLINE int nnd_pages_take(struct nnd_pages *pages, nnd_size num_bytes) {
  (void)pages, (void)num_bytes;
  return 0;
}

NND_INLINE void nnd_pages_free(const struct nnd_pages *pages) { (void)pages; }

NND_INLINE void nnd_pages_give_back(uintptr_t begin, uintptr_t end) { (void)begin, (void)end; }

#if defined(__wasm_atomics__)
/* As threads, Workers of the page that share this memory and wait for work (`web/threads.c`). */
typedef int nnd_thread;

int nnd_worker_begin(void *(*run)(void *), void *argument); /* -1 where none is free */
void nnd_worker_join(int worker);
void nnd_wait_while(atomic_int *word, int value);

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  *thread = nnd_worker_begin(run, argument);
  return *thread >= 0;
}

NND_INLINE void nnd_thread_join(nnd_thread thread) { nnd_worker_join(thread); }

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) { nnd_wait_while(word, while_it_is); }

NND_INLINE void nnd_word_wake(atomic_int *word, int count) {
  __builtin_wasm_memory_atomic_notify((int *)word, (unsigned)count);
}
#else
typedef int nnd_thread;

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  (void)thread, (void)run, (void)argument;
  return 0;
}

NND_INLINE void nnd_thread_join(nnd_thread thread) { (void)thread; }

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) { (void)word, (void)while_it_is; }

NND_INLINE void nnd_word_wake(atomic_int *word, int count) { (void)word, (void)count; }
#endif

NND_INLINE int64_t nnd_now_ns(int of_thread) {
  (void)of_thread;
  return 0;
}

NND_INLINE void nnd_pause(void) {}

#endif
