# SPDX-License-Identifier: Apache-2.0
"""A clock, and a counter of the processor, around each step of kernels that the backend `native` built.

`HEAD` stands before the source that a build compiles (c/program.h has the places); what a build ships knows nothing of
this. The library then exports what each step took in the last run, by the clock of the first worker: a step of several
threads counts until the last has finished.
"""

import ctypes

MOST_STEPS = 4096
HEAD = f"""#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#include <unistd.h>
__attribute__((visibility("default"))) int64_t nnd_bench_ns[{MOST_STEPS}], nnd_bench_counts[{MOST_STEPS}];
__attribute__((visibility("default"))) int nnd_bench_counter = -1;
static int64_t nnd_bench_now(void) {{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}}
static int64_t nnd_bench_count(void) {{
  int64_t count = 0;
  return nnd_bench_counter >= 0 && read(nnd_bench_counter, &count, sizeof count) == sizeof count ? count : 0;
}}
#define NND_BEFORE_STEP(step, worker) const int64_t count = nnd_bench_count(), start = nnd_bench_now();
#define NND_AFTER_STEP(step, worker) \\
  if (!worker) nnd_bench_ns[step] = nnd_bench_now() - start, nnd_bench_counts[step] = nnd_bench_count() - count;
"""


def nanoseconds(library: ctypes.CDLL) -> "ctypes.Array[ctypes.c_int64]":
    """Returns what each step took, by its number: the library's own memory, new after each run."""
    return (ctypes.c_int64 * MOST_STEPS).in_dll(library, "nnd_bench_ns")


def counts(library: ctypes.CDLL) -> "ctypes.Array[ctypes.c_int64]":
    """Returns by how much the counter grew during each step, as `nanoseconds` does."""
    return (ctypes.c_int64 * MOST_STEPS).in_dll(library, "nnd_bench_counts")


def counter(library: ctypes.CDLL) -> ctypes.c_int:
    """Returns the place of the descriptor that the counter is read from; -1 where none is."""
    return ctypes.c_int.in_dll(library, "nnd_bench_counter")
