/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NND_PLATFORM_MACOS_H
#define NND_PLATFORM_MACOS_H

#define NND_CLOCK CLOCK_UPTIME_RAW /* CLOCK_MONOTONIC counts whole microseconds there */
#define NND_ADVICE_UNUSED MADV_FREE
#include "base/platform_posix.h"

/* As a futex of Linux; of the system's library, whose header has neither. */
int __ulock_wait(uint32_t operation, void *word, uint64_t value, uint32_t microseconds);
int __ulock_wake(uint32_t operation, void *word, uint64_t unused);

#define NND_COMPARE_AND_WAIT 1u
#define NND_WAKE_ALL 0x100u

NND_INLINE void nnd_word_wait(atomic_int *word, int while_it_is) {
  __ulock_wait(NND_COMPARE_AND_WAIT, word, (uint32_t)while_it_is, 0);
}

NND_INLINE void nnd_word_wake(atomic_int *word, int count) {
  __ulock_wake(NND_COMPARE_AND_WAIT | (count == 1 ? 0 : NND_WAKE_ALL), word, 0);
}

#endif
