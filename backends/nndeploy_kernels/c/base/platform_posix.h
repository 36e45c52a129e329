/* SPDX-License-Identifier: Apache-2.0
 *
 * What Linux and macOS have alike. Who includes this says before which clock is the exact one (NND_CLOCK), and which
 * advice lets pages go that nobody reads again (NND_ADVICE_UNUSED).
 */
#ifndef NND_PLATFORM_POSIX_H
#define NND_PLATFORM_POSIX_H

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As large as asked and no larger: sanitizers tell what lies behind. */
NND_INLINE void *nnd_lines_take(size_t num_bytes) {
  void *memory;
  return posix_memalign(&memory, NND_LINE_BYTES, num_bytes) ? NULL : memory;
}

NND_INLINE void nnd_lines_free(void *memory) { free(memory); }

NND_INLINE int nnd_has_pages(void) { return 1; }

struct nnd_pages {
  void *data, *mapped;
  size_t num_bytes;
};

/* Whole huge pages: page faults take longer than packing. Returns 0 where there is no memory. */
NND_INLINE int nnd_pages_take(struct nnd_pages *pages, nnd_size num_bytes) {
  pages->num_bytes = (size_t)(num_bytes + NND_HUGE_PAGE);
  pages->mapped =
      mmap(NULL, pages->num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages->mapped == MAP_FAILED) return 0;
  const uintptr_t begin = (uintptr_t)pages->mapped, huge = (uintptr_t)NND_HUGE_PAGE;
  pages->data = (void *)((begin + huge - 1) / huge * huge);
#ifdef MADV_HUGEPAGE
  madvise(pages->data, (size_t)num_bytes, MADV_HUGEPAGE);
#endif
  return 1;
}

NND_INLINE void nnd_pages_free(const struct nnd_pages *pages) { munmap(pages->mapped, pages->num_bytes); }

NND_INLINE void nnd_pages_give_back(uintptr_t begin, uintptr_t end) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (begin + page - 1) / page * page;
  const uintptr_t last = end / page * page;
  if (first < last) madvise((void *)first, (size_t)(last - first), NND_ADVICE_UNUSED);
}

typedef pthread_t nnd_thread;

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  return !pthread_create(thread, NULL, run, argument);
}

NND_INLINE void nnd_thread_join(nnd_thread thread) { pthread_join(thread, NULL); }

NND_INLINE int64_t nnd_now_ns(int of_thread) {
  struct timespec now;
  clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : NND_CLOCK, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

NND_INLINE void nnd_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

#endif
