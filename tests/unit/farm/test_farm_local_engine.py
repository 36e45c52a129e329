# SPDX-License-Identifier: Apache-2.0
"""This machine builds as many jobs at once as it has room for, and tells of every one that it began."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from fake_engine import FakeEngine, job, outcome_of

from nndeploy.build_cache.remote_cache import RemoteCache
from nndeploy.compiler.cached_compile import CacheOptions
from nndeploy.farm import build_job, local_engine
from nndeploy.farm.job import Job
from nndeploy.farm.local_engine import LocalEngine
from nndeploy.farm.resources import Slots
from nndeploy.target.target import Gpu, Target
from nndeploy.trust.trust_store import TrustStore

PLAIN = Target("host", "x86_64")
TWO_GPUS = replace(PLAIN, gpus=(Gpu("A", "9.0"), Gpu("B", "9.0")))


class Compiles:
    """Stands in for compiles: each waits until it is let go on, and ends with its status or an exception."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.jobs: list[Job] = []
        self.result: Callable[[Job], Any] = outcome_of

    def run(self, build: build_job.Build, _caching: CacheOptions) -> Any:
        self.jobs.append(build.job)
        assert self.go_on.wait(60)
        return self.result(build.job)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiles]:
    found = Compiles()
    monkeypatch.setattr(build_job.Build, "run", lambda build, caching, _around: found.run(build, caching))
    yield found
    found.go_on.set()


def engine(num_jobs: int = 2, here: Target = PLAIN, memory: int = 100) -> LocalEngine:
    slots = Slots(num_jobs, 3, memory, memory // num_jobs, "")
    return LocalEngine(slots, here, CacheOptions(cache=False), lambda *_: None)


def ended(one: LocalEngine, count: int) -> dict[str, str]:
    """Returns the status of so many jobs by model; waits for them."""
    found: dict[str, str] = {}
    for _ in range(600):
        found |= {each.model: outcome.status for each, outcome in one.wait(0.1)}
        if len(found) >= count:
            break
    return found


def test_every_job_that_began_ends_once(compiles: Compiles) -> None:
    machine, jobs = engine(4), [job(name) for name in "abcd"]
    for one in jobs:
        assert machine.has_room(one)
        machine.start(one, 1)
    assert not machine.has_room(job("e"))
    assert machine.wait(0.01) == []
    compiles.go_on.set()
    assert ended(machine, 4) == dict.fromkeys("abcd", "ok")
    assert machine.wait(0.01) == []
    assert machine.has_room(job("e"))


def test_all_jobs_ask_one_shared_cache_so_that_its_failure_is_said_once(monkeypatch, compiles) -> None:
    compiles.go_on.set()
    shared = RemoteCache("http://127.0.0.1:1", TrustStore({}), lambda _line: None)
    given: list[object] = []
    monkeypatch.setattr(
        build_job.Build,
        "run",
        lambda build, caching, around: given.append(around.remote) or compiles.run(build, caching),
    )
    machine = LocalEngine(Slots(2, 3, 100, 50, ""), PLAIN, CacheOptions(), lambda *_: None, shared)
    for one in (job("a"), job("b")):
        machine.start(one, 1)
    assert ended(machine, 2) == dict.fromkeys("ab", "ok")
    assert given == [shared, shared]


def test_a_job_comes_back_as_it_was_given_and_builds_with_its_share_of_cores(compiles: Compiles) -> None:
    compiles.go_on.set()
    machine, one, two = engine(), job("a"), job("b", limits={"jobs": 1})
    machine.start(one, 2)
    machine.start(two, 1)
    found = dict[str, Any]()
    while len(found) < 2:
        found |= {each.model: (each, outcome) for each, outcome in machine.wait(0.1)}
    assert found["a"][0] is one
    assert found["a"][1].tries == 2
    assert {each.model: each.limits["jobs"] for each in compiles.jobs} == {"a": 3, "b": 1}


def test_memory_admits_what_fits_beside_what_runs_and_whatever_is_alone(compiles: Compiles) -> None:
    machine = engine(4)
    large = job("large", limits={"memory_limit": 500})
    assert machine.has_room(large)
    machine.start(job("a", limits={"memory_limit": 60}), 1)
    assert not machine.has_room(large)
    assert not machine.has_room(job("b", limits={"memory_limit": 41}))
    assert machine.has_room(job("c", limits={"memory_limit": 40}))


def test_as_many_builds_time_kernels_as_there_are_gpus(compiles: Compiles) -> None:
    machine, needs = engine(9, TWO_GPUS), {"needs": {"gpu": "sm90"}}
    for name in "ab":
        assert machine.has_room(job(name, **needs))
        machine.start(job(name, **needs), 1)
    assert not machine.has_room(job("c", **needs))
    assert machine.has_room(job("d"))


@pytest.mark.parametrize(("needs", "here", "why"), [
    ({}, PLAIN, ""),
    ({"gpu": "sm90"}, TWO_GPUS, ""),
    ({"gpu": "sm90"}, PLAIN, "needs gpu 'sm90'; there is none"),
    ({"gpu": "sm120"}, TWO_GPUS, "needs gpu 'sm120'; there is sm90"),
    ({"os": "linux"}, PLAIN, f"needs os 'linux'; there is linux-{PLAIN.arch}"),
])  # fmt: skip
def test_what_this_machine_will_never_build_is_said(needs: dict[str, str], here: Target, why: str) -> None:
    assert engine(here=here).why_never(job("a", needs=needs)) == why


def test_a_machine_without_threads_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    machine = engine()
    with monkeypatch.context() as without:
        without.setattr(local_engine.threading.Thread, "start", start)
        machine.start(job("a"), 1)
    assert ended(machine, 1) == {"a": "infra"}


def test_a_try_that_waits_for_another_command_is_cancelled_at_once(compiles: Compiles) -> None:
    """It has no process that could be ended, and may wait as long as that command builds."""
    machine = engine()
    machine.start(job("a"), 1)
    machine.cancel()
    assert ended(machine, 1) == {"a": "cancelled"}
    compiles.go_on.set()
    assert machine.wait(0.2) == [], "it is told once"


def test_what_the_engine_promises_the_stand_in_of_other_tests_promises_too() -> None:
    names = {name for name in vars(LocalEngine) if not name.startswith("_")}
    assert names <= {name for name in dir(FakeEngine) if not name.startswith("_")}
