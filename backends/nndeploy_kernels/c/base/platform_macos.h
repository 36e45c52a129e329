/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NND_PLATFORM_MACOS_H
#define NND_PLATFORM_MACOS_H

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As a futex of Linux; of the system's library, whose header has neither. */
int __ulock_wait(uint32_t operation, void *word, uint64_t value, uint32_t microseconds);
int __ulock_wake(uint32_t operation, void *word, uint64_t unused);

#define NND_COMPARE_AND_WAIT 1u
#define NND_WAKE_ALL 0x100u

NND_INLINE void *nnd_lines_take(size_t num_bytes) {
  void *memory;
  return posix_memalign(&memory, NND_LINE_BYTES, num_bytes) ? NULL : memory;
}

NND_INLINE void nnd_lines_free(void *memory) { free(memory); }

NND_INLINE int nnd_has_pages(void) { return 1; }

struct nnd_pages {
  void *data;
  size_t num_bytes;
};

NND_INLINE int nnd_pages_take(struct nnd_pages *pages, nnd_size num_bytes) {
  pages->num_bytes = (size_t)num_bytes;
  pages->data = mmap(NULL, pages->num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  return pages->data != MAP_FAILED;
}

NND_INLINE void nnd_pages_free(const struct nnd_pages *pages) { munmap(pages->data, pages->num_bytes); }

NND_INLINE void nnd_pages_give_back(uintptr_t begin, uintptr_t end) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (begin + page - 1) / page * page;
  const uintptr_t last = end / page * page;
  if (first < last) madvise((void *)first, (size_t)(last - first), MADV_FREE);
}

typedef pthread_t nnd_thread;

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  return !pthread_create(thread, NULL, run, argument);
}

NND_INLINE void nnd_thread_join(nnd_thread thread) { pthread_join(thread, NULL); }

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) {
  __ulock_wait(NND_COMPARE_AND_WAIT, word, (uint32_t)while_it_is, 0);
}

NND_INLINE void nnd_word_wake(atomic_int *word, int count) {
  __ulock_wake(NND_COMPARE_AND_WAIT | (count == 1 ? 0 : NND_WAKE_ALL), word, 0);
}

NND_INLINE int64_t nnd_now_ns(int of_thread) {
  return (int64_t)clock_gettime_nsec_np(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_UPTIME_RAW);
}

NND_INLINE void nnd_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

#endif
