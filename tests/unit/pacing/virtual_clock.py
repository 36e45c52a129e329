# SPDX-License-Identifier: Apache-2.0
"""The library of delays on a clock that only a test and the library's own sleeps move: nothing can hold a thread up."""

import ctypes
from pathlib import Path

from c_library import library_from_source

from nndeploy.pacing.run.library import PaceLibrary

_SOURCE = """
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int64_t virtual_now, virtual_used, virtual_late;

static int virtual_gettime(clockid_t clock, struct timespec *at) {
  const int64_t told = clock == CLOCK_MONOTONIC ? virtual_now : clock == CLOCK_REALTIME ? 0 : virtual_used;
  at->tv_sec = told / 1000000000;
  at->tv_nsec = told % 1000000000;
  return 0;
}

static int virtual_nanosleep(clockid_t clock, int flags, const struct timespec *at) {
  if (clock != CLOCK_MONOTONIC) return EINVAL;
  const int64_t asked = at->tv_sec * 1000000000 + at->tv_nsec;
  const int64_t until = flags & TIMER_ABSTIME ? asked : virtual_now + asked;
  if (until > virtual_now) virtual_now = until;
  virtual_now += virtual_late;
  return 0;
}

/* There is no timer: a test says when work is interrupted. */
static long virtual_syscall(long number, ...) {
  (void)number;
  return -1;
}

#define clock_gettime(clock, at) virtual_gettime(clock, at)
#define clock_nanosleep(clock, flags, at, left) virtual_nanosleep(clock, flags, at)
#define prctl(...) 0
#define syscall(...) virtual_syscall(__VA_ARGS__)
#include "pacing/pace.c"

EXPORT void virtual_interrupt(void) { nnd_stretch_interrupted(0); }

EXPORT void virtual_begin(int64_t now, int64_t used) {
  virtual_now = now;
  virtual_used = used;
  virtual_late = nnd_rested_used = nnd_ended_used = nnd_ended = 0;
  nnd_usually_late = 0.0;
  nnd_current = NULL;
}
"""
_SOME_NOW, _SOME_USED = 1_000_000_000_000, 3_000_000_000
"""The clocks of a thread that has been there for a while: two times that no test takes for each other."""


class VirtualPace(PaceLibrary):
    """The library as it is but for its clock; all threads share the clock."""

    def __init__(self, workdir: Path) -> None:
        """Builds and loads it; `workdir` is private."""
        path = library_from_source([_SOURCE], workdir)
        super().__init__(path)
        library = ctypes.CDLL(str(path))
        self._now, self._used, self._late = (
            ctypes.c_int64.in_dll(library, f"virtual_{name}") for name in ("now", "used", "late")
        )
        self.waited: int | None = 0
        """The nanoseconds that the thread waited for a core; a test may say that nobody counts them."""
        self.interrupt = library.virtual_interrupt
        self._begin = library.virtual_begin
        self._begin.argtypes, self._begin.restype = (ctypes.c_int64, ctypes.c_int64), None

    def start_anew(self) -> None:
        """Sets the clocks, and lets this thread be one that never worked on an item."""
        self._begin(_SOME_NOW, _SOME_USED)
        self.waited = 0

    @property
    def now(self) -> int:
        """The nanoseconds of CLOCK_MONOTONIC."""
        return self._now.value

    @property
    def used(self) -> int:
        """The nanoseconds of the clocks of processor time."""
        return self._used.value

    def work(self, nanoseconds: int) -> None:
        """Lets time pass in which the thread runs."""
        self._now.value += nanoseconds
        self._used.value += nanoseconds

    def wait(self, nanoseconds: int) -> None:
        """Lets time pass in which the thread does not run, because others have the core."""
        self._now.value += nanoseconds
        self.waited += nanoseconds

    def wake_late(self, nanoseconds: int) -> None:
        """Lets all sleeps from now on end so much later than they are asked to."""
        self._late.value = nanoseconds
