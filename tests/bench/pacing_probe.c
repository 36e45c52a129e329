/* SPDX-License-Identifier: Apache-2.0
 *
 * What watches a paced network, and what shares its core: for bench_pacing.py. Python would disturb what it measures.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define PERIOD 250000 /* nanoseconds between two readings */

static int64_t clock_of(clockid_t clock) {
  struct timespec now;
  if (clock_gettime(clock, &now)) return 0;
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t at) {
  const struct timespec until = {at / 1000000000, at % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)) {
  }
}

/* Reads the processor clocks of `num_threads` threads of this process until `end`; the sum of them goes into `used`,
 * the time of it into `at`, at most `most` times. What was read while this thread was held up is left out. */
int64_t watch(const int32_t *threads, int64_t num_threads, int64_t end, int64_t *at, int64_t *used, int64_t most) {
  int64_t count = 0;
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  for (int64_t next = clock_of(CLOCK_MONOTONIC); count < most && next < end; next += PERIOD) {
    sleep_until(next);
    const int64_t before = clock_of(CLOCK_MONOTONIC);
    int64_t sum = 0;
    for (int64_t i = 0; i < num_threads; i++) sum += clock_of((clockid_t)(~(uint32_t)threads[i] << 3 | 6));
    const int64_t after = clock_of(CLOCK_MONOTONIC);
    if (after - before > 20000) continue;
    at[count] = before / 2 + after / 2;
    used[count++] = sum;
  }
  return count;
}

/* Reads the processor clock of this process, and those of `counts[0]` threads of it, which may become more, until
 * `counts[1]` is set: into rows of `used`, each with room for the process and `most_threads` threads, and the time into
 * `at`, at most `most` times. This thread's own time is left out, and what was read while it was held up. */
int64_t watch_process(const int32_t *threads, const volatile int64_t *counts, int64_t *at, int64_t *used,
                      int64_t most_threads, int64_t most) {
  int64_t count = 0;
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  for (int64_t next = clock_of(CLOCK_MONOTONIC); count < most && !counts[1]; next += PERIOD) {
    sleep_until(next);
    const int64_t before = clock_of(CLOCK_MONOTONIC);
    int64_t *row = used + count * (1 + most_threads);
    row[0] = clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID);
    for (int64_t i = 0; i < counts[0]; i++) {
      const int64_t now = clock_of((clockid_t)(~(uint32_t)threads[i] << 3 | 6));
      row[1 + i] = now ? now : count ? row[-most_threads + i] : 0; /* 0: it has ended */
    }
    const int64_t after = clock_of(CLOCK_MONOTONIC);
    if (after - before > 20000) continue;
    at[count++] = before / 2 + after / 2;
  }
  return count;
}

/* Wakes every 5 to 15 ms until `end` and works for `work` nanoseconds of processor time; `waits` says how long each took
 * from when it should have woken. */
int64_t neighbour(int64_t end, int64_t work, int64_t *waits, int64_t most) {
  int64_t count = 0;
  srand(0);
  while (count < most) {
    const int64_t wake = clock_of(CLOCK_MONOTONIC) + 5000000 + rand() % 10000000;
    if (wake > end) break;
    sleep_until(wake);
    const int64_t until = clock_of(CLOCK_THREAD_CPUTIME_ID) + work;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until) {
    }
    waits[count++] = clock_of(CLOCK_MONOTONIC) - wake;
  }
  return count;
}

/* Works until `end` without ever sleeping. */
void hog(int64_t end) {
  while (clock_of(CLOCK_MONOTONIC) < end) {
  }
}
