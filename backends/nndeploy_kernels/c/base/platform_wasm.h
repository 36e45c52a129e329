/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread, and a memory that only grows: there are no pages to take or to give back.
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

typedef int nnd_thread;

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  (void)thread, (void)run, (void)argument;
  return 0;
}

NND_INLINE void nnd_thread_join(nnd_thread thread) { (void)thread; }

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) { (void)word, (void)while_it_is; }

NND_INLINE void nnd_word_wake(atomic_int *word, int count) { (void)word, (void)count; }

NND_INLINE int64_t nnd_now_ns(int of_thread) {
  (void)of_thread;
  return 0;
}

NND_INLINE void nnd_pause(void) {}

#endif
