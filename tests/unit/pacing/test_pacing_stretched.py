# SPDX-License-Identifier: Apache-2.0
"""Work that passes no points and sleeps in between: by a clock of ours, and in a call of somebody else's library."""

import hashlib
import resource
import threading
import time

from virtual_clock import VirtualPace

from nndeploy.pacing.run.library import PaceLibrary

MS = 1_000_000


def test_work_takes_its_time_evenly_and_no_longer_than_it_may(virtual_pace: VirtualPace) -> None:
    begin = virtual_pace.now
    with virtual_pace.stretched(begin + 30 * MS, 10 * MS) as slept:
        for done in range(1, 10):
            virtual_pace.work(MS)
            virtual_pace.interrupt()
            assert virtual_pace.now == begin + done * 3 * MS
        for _ in range(5):  # more than was thought
            virtual_pace.work(MS)
            virtual_pace.interrupt()
        assert virtual_pace.now == begin + 34 * MS
    assert (virtual_pace.now, slept()) == (begin + 34 * MS, 20 * MS)


def test_time_that_others_took_is_not_slept(virtual_pace: VirtualPace) -> None:
    begin = virtual_pace.now
    with virtual_pace.stretched(begin + 30 * MS, 10 * MS) as slept:
        virtual_pace.work(MS)
        virtual_pace.wait(2 * MS)
        virtual_pace.interrupt()
        assert virtual_pace.now == begin + 3 * MS
        virtual_pace.wait(10 * MS)
        virtual_pace.work(MS)
        virtual_pace.interrupt()
    assert slept() == 0


def test_who_is_late_or_not_expected_to_work_does_not_sleep(virtual_pace: VirtualPace) -> None:
    for due, work in ((virtual_pace.now - MS, MS), (virtual_pace.now + 100 * MS, 0)):
        with virtual_pace.stretched(due, work) as slept:
            virtual_pace.work(5 * MS)
            virtual_pace.interrupt()
        assert slept() == 0


def test_an_interruption_is_short_and_the_rest_is_slept_at_the_end(virtual_pace: VirtualPace) -> None:
    begin = virtual_pace.now
    with virtual_pace.stretched(begin + 100 * MS, MS) as slept:
        virtual_pace.work(MS)
        virtual_pace.interrupt()  # as if a lock were held
        assert virtual_pace.now <= begin + 6 * MS
    assert (virtual_pace.now, slept()) == (begin + 100 * MS, 99 * MS)
    virtual_pace.interrupt()  # a signal that comes late
    assert virtual_pace.now == begin + 100 * MS


def test_what_is_followed_by_nothing_does_not_sleep_at_its_end(virtual_pace: VirtualPace) -> None:
    begin = virtual_pace.now
    with virtual_pace.stretched(begin + 100 * MS, 10 * MS, is_followed=False) as slept:
        virtual_pace.work(MS)
    assert (virtual_pace.now, slept()) == (begin + MS, 0)


def test_a_single_call_of_a_library_is_interrupted_and_gives_what_it_gives(pace_library: PaceLibrary) -> None:
    data = bytes(32 * MS)
    want = hashlib.sha256(data).digest()
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    with pace_library.stretched(time.monotonic_ns() + 800 * MS, MS) as slept:
        digest = hashlib.sha256(data).digest()
        num_sleeps = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
    assert digest == want
    assert num_sleeps >= 3
    assert slept() > 3 * MS


def test_a_thread_that_waits_is_interrupted_ever_less(pace_library: PaceLibrary) -> None:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    with pace_library.stretched(time.monotonic_ns() + 60_000 * MS, 30_000 * MS) as slept:
        time.sleep(0.5)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before < 60  # 500 milliseconds
    assert slept() == 0


def test_files_are_read_and_locks_are_taken_as_without(pace_library: PaceLibrary, tmp_path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 10_000)
    lock, got = threading.Lock(), list[bool]()
    lock.acquire()
    threading.Timer(0.05, lock.release).start()
    with pace_library.stretched(time.monotonic_ns() + 200 * MS, 10 * MS):
        got.append(lock.acquire(timeout=60))  # interrupted again and again while it waits
        read = (tmp_path / "x").read_bytes()
    assert got == [True]
    assert read == bytes(range(256)) * 10_000
