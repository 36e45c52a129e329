/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows 8 and later: before, no word could be waited for.
 */
#ifndef NND_PLATFORM_WINDOWS_H
#define NND_PLATFORM_WINDOWS_H

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <windows.h>

NND_INLINE void *nnd_lines_take(size_t num_bytes) { return _aligned_malloc(num_bytes, NND_LINE_BYTES); }

NND_INLINE void nnd_lines_free(void *memory) { _aligned_free(memory); }

NND_INLINE int nnd_has_pages(void) { return 1; }

struct nnd_pages {
  void *data;
};

/* Huge ones need a right that programs seldom have. */
NND_INLINE int nnd_pages_take(struct nnd_pages *pages, nnd_size num_bytes) {
  pages->data = VirtualAlloc(NULL, (size_t)num_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  return pages->data != NULL;
}

NND_INLINE void nnd_pages_free(const struct nnd_pages *pages) { VirtualFree(pages->data, 0, MEM_RELEASE); }

NND_INLINE void nnd_pages_give_back(uintptr_t begin, uintptr_t end) {
  SYSTEM_INFO system;
  GetSystemInfo(&system);
  const uintptr_t page = system.dwPageSize, first = (begin + page - 1) / page * page, last = end / page * page;
  if (first < last) VirtualFree((void *)first, last - first, MEM_DECOMMIT);
}

typedef HANDLE nnd_thread;

/* What a thread begins with; the thread frees it. */
struct nnd_beginning {
  void *(*run)(void *);
  void *argument;
};

static DWORD WINAPI nnd_thread_main(void *beginning) {
  const struct nnd_beginning begin = *(struct nnd_beginning *)beginning;
  free(beginning);
  begin.run(begin.argument);
  return 0;
}

NND_INLINE int nnd_thread_start(nnd_thread *thread, void *(*run)(void *), void *argument) {
  struct nnd_beginning *beginning = malloc(sizeof *beginning);
  if (!beginning) return 0;
  *beginning = (struct nnd_beginning){run, argument};
  *thread = CreateThread(NULL, 0, nnd_thread_main, beginning, 0, NULL);
  if (!*thread) free(beginning);
  return *thread != NULL;
}

NND_INLINE void nnd_thread_join(nnd_thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) {
  WaitOnAddress((void *)word, &while_it_is, sizeof while_it_is, INFINITE);
}

NND_INLINE void nnd_word_wake(atomic_int *word, int count) {
  if (count == 1)
    WakeByAddressSingle((void *)word);
  else
    WakeByAddressAll((void *)word);
}

NND_INLINE int64_t nnd_now_ns(int of_thread) {
  if (of_thread) {
    FILETIME ignored, kernel, user;
    GetThreadTimes(GetCurrentThread(), &ignored, &ignored, &kernel, &user);
    const int64_t high = (int64_t)kernel.dwHighDateTime + user.dwHighDateTime;
    return 100 * ((high << 32) + kernel.dwLowDateTime + user.dwLowDateTime);
  }
  LARGE_INTEGER now, each_second;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&each_second);
  return now.QuadPart / each_second.QuadPart * 1000000000 +
         now.QuadPart % each_second.QuadPart * 1000000000 / each_second.QuadPart;
}

NND_INLINE void nnd_pause(void) { __builtin_ia32_pause(); }

#endif
