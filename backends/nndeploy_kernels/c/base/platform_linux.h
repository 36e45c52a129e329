/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NND_PLATFORM_LINUX_H
#define NND_PLATFORM_LINUX_H

#include <linux/futex.h>
#include <sys/syscall.h>

#define NND_CLOCK CLOCK_MONOTONIC
#define NND_ADVICE_UNUSED MADV_DONTNEED
#include "base/platform_posix.h"

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

NND_INLINE void nnd_word_wake(atomic_int *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

#endif
