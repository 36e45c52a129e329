# SPDX-License-Identifier: Apache-2.0
"""How many jobs run at once: by cores and memory, and never more memory together than the machine gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.farm.job import Job
from nndeploy.farm.resources import Slots, slots_of

GIB = 1 << 30


def job(memory_bytes: int | None) -> Job:
    limits = {} if memory_bytes is None else {"memory_limit": memory_bytes}
    return Job("m/host", "m", "host", "", "/m.onnx", {}, limits, "/m.nnd")


@pytest.mark.parametrize(("memories", "asked", "cores", "machine", "expected", "reason"), [
    ([8 * GIB], None, 16, 64 * GIB, (6, 2), "6 at once: 48 GiB of memory for jobs of 8 GiB, on 16 cores"),
    ([8 * GIB], None, 4, 64 * GIB, (4, 1), "4 at once: as many as cores"),
    ([96 * GIB, 8 * GIB], None, 16, 128 * GIB, (12, 1), "12 at once: 96 GiB of memory for jobs of 8 GiB, on 16"),
    ([None], None, 16, 16 * GIB, (6, 2), "6 at once: 12 GiB of memory for jobs of 2 GiB, on 16 cores"),
    ([96 * GIB], None, 16, 64 * GIB, (1, 16), "1 at once: 48 GiB of memory for jobs of 96 GiB, on 16 cores"),
    ([8 * GIB], 10, 4, 16 * GIB, (10, 1), "10 at once, as asked"),
    ([], None, 2, 64 * GIB, (2, 1), "2 at once: as many as cores"),
])  # fmt: skip
def test_cores_and_memory_say_how_many(memories, asked, cores, machine, expected, reason) -> None:
    slots = slots_of(map(job, memories), asked, cores, machine)
    assert (slots.num_jobs, slots.builds_each) == expected
    assert slots.reason.startswith(reason)


def test_a_large_job_keeps_small_ones_out_only_where_memory_ends() -> None:
    slots = slots_of([job(96 * GIB), job(8 * GIB)], None, 16, 160 * GIB)
    assert slots.memory_bytes == 120 * GIB
    assert slots.admits(job(8 * GIB), [job(96 * GIB), job(8 * GIB)])
    assert not slots.admits(job(8 * GIB), [job(96 * GIB)] + [job(8 * GIB)] * 3)
    assert not slots.admits(job(96 * GIB), [job(96 * GIB)])
    assert slots.admits(job(200 * GIB), [])
    assert not slots.admits(job(GIB), [job(GIB)] * slots.num_jobs)


MEMORIES = st.lists(st.none() | st.integers(GIB // 2, 64 * GIB), min_size=1, max_size=8)


@given(memories=MEMORIES, cores=st.integers(1, 64), machine=st.integers(GIB, 512 * GIB))
def test_what_is_admitted_never_takes_more_than_there_is(memories, cores: int, machine: int) -> None:
    jobs = [job(memory) for memory in memories]
    slots = slots_of(jobs, None, cores, machine)
    running: list[Job] = []
    for one in jobs:
        if slots.admits(one, running):
            running.append(one)
    assert 1 <= len(running) <= slots.num_jobs <= cores
    assert len(running) == 1 or sum(map(slots.memory_of, running)) <= slots.memory_bytes


def test_jobs_that_state_no_memory_share_it_evenly() -> None:
    slots = slots_of([job(None)] * 9, 5, 8, 40 * GIB)
    assert slots == Slots(5, 1, 30 * GIB, 6 * GIB, "5 at once, as asked")
    assert slots.admits(job(None), [job(None)] * 4)
