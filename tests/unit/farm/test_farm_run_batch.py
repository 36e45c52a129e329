# SPDX-License-Identifier: Apache-2.0
"""What a batch tries, in which order and how often, and that every job has an outcome however it ends."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_engine import FakeEngine, Heard, outcome_of, planned

from nndeploy.errors import InputOutputError
from nndeploy.farm import run_batch
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.planned import BUILT, FAILED, HIT, Planned
from nndeploy.farm.run_batch import BACK_OFF_SECONDS, MAX_TRIES, BatchRun

SAME = "5a" * 32


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path) as found:
        yield found


@pytest.fixture
def begin(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BatchRun]:
    """Returns a function that makes a batch of an engine, on the engine's clock."""

    def made(engine: FakeEngine, heard: Heard | None = None, most: int | None = None) -> BatchRun:
        monkeypatch.setattr(run_batch, "time", engine)
        return BatchRun(engine, journal, heard or Heard(), "fleet.toml", most)

    return made


def statuses(run: BatchRun) -> dict[str, str]:
    return {one.model: one.status for one in run.outcomes}


def again(journal: Journal) -> Journal:
    """Returns what the next call would read of a journal."""
    return Journal(journal.path.parent, is_read=True)


class BrokenError(Exception):
    """What is raised in the midst of a batch."""


def test_jobs_begin_in_the_order_of_the_plan_as_many_at_once_as_have_room(begin: Any) -> None:
    engine = FakeEngine(room=2)
    most = []
    engine.meanwhile = lambda name: most.append((name, len(engine.running) + 1))
    run = begin(engine)
    run.run([planned(name) for name in "dacb"])
    assert engine.order == ["d", "a", "c", "b"]
    assert most == [("d", 2), ("a", 2), ("c", 2), ("b", 1)]
    assert statuses(run) == dict.fromkeys("dacb", "ok")


def test_a_job_without_room_does_not_hold_up_one_that_has_it(begin: Any) -> None:
    class Narrow(FakeEngine):
        def has_room(self, one: Any) -> bool:
            return not self.running or (not one.needs and len(self.running) < 2)

    engine = Narrow()
    begin(engine).run([planned("a"), planned("gpu", needs={"gpu": "sm90"}), planned("b"), planned("c")])
    assert engine.order == ["a", "b", "c", "gpu"]


@pytest.mark.parametrize("status", [one for one in STATUSES if one not in ("infra", "skipped")])
def test_only_a_fault_of_the_machine_is_tried_again(begin: Any, journal: Journal, status: str) -> None:
    engine = FakeEngine({"a": [status]})
    run = begin(engine)
    run.run([planned("a")])
    assert engine.begun == [("a", 1, 0.0)]
    assert statuses(run) == {"a": status}


def test_a_fault_of_the_machine_is_tried_twice_more_after_a_while(begin: Any, journal: Journal) -> None:
    engine, heard = FakeEngine({"a": ["infra"]}), Heard()
    run = begin(engine, heard)
    run.run([planned("a"), planned("b")])
    (_, _, first), (_, _, second), (_, _, third) = (one for one in engine.begun if one[0] == "a")
    assert second - first >= BACK_OFF_SECONDS[0]
    assert third - second >= BACK_OFF_SECONDS[1]
    assert engine.order[:2] == ["a", "b"], "others go on meanwhile"
    assert [(one.tries, one.final) for one in run.outcomes if one.model == "a"] == [(MAX_TRIES, True)]
    assert [said for said in heard.said if said[1] == "a"] == [("started", "a"), ("infra", "a")] * MAX_TRIES
    known = again(journal).known("a/host", planned("a").key)
    assert known is not None
    assert known.tries == MAX_TRIES


def test_what_the_second_try_builds_is_built(begin: Any) -> None:
    run = begin(FakeEngine({"a": ["infra", "ok"]}))
    run.run([planned("a")])
    assert [(one.status, one.tries) for one in run.outcomes] == [("ok", 2)]


def test_jobs_of_one_key_wait_for_the_first_and_are_looked_up_then(begin: Any) -> None:
    engine = FakeEngine({"b": ["hit"], "c": ["hit"]}, room=4)
    at_once: list[set[str]] = []
    engine.meanwhile = lambda name: at_once.append({name, *(one.model for one, _ in engine.running.values())})
    run = begin(engine)
    run.run([planned("a", SAME), planned("b", SAME), planned("x"), planned("c", SAME)])
    assert at_once[0] == {"a", "x"}
    assert statuses(run) == {"a": "ok", "x": "ok", "b": "hit", "c": "hit"}
    assert [number for _, number, _ in engine.begun] == [1] * 4


@pytest.mark.parametrize("status", ["failed", "unsupported", "crash"])
def test_jobs_of_one_key_fail_together_and_each_is_in_the_journal(begin: Any, journal: Journal, status: str) -> None:
    engine = FakeEngine({"a": [status]})
    run = begin(engine)
    run.run([planned("a", SAME), planned("b", SAME), planned("c", SAME)])
    assert engine.order == ["a"]
    assert [(one.job, one.output, one.status) for one in run.outcomes] == [
        (f"{name}/host", f"/nowhere/{name}.nnd", status) for name in "abc"
    ]
    assert all("--retry-failed" in one.repeat and f"--only={one.job}" in one.repeat for one in run.outcomes)
    assert all(again(journal).known(f"{name}/host", SAME) for name in "abc")


@pytest.mark.parametrize("status", ["timeout", "memory", "infra"])
def test_a_limit_or_a_machine_that_ended_the_first_of_a_key_says_nothing_of_the_next(begin: Any, status: str) -> None:
    engine = FakeEngine({"a": [status], "c": ["hit"]}, room=4)
    run = begin(engine)
    run.run([planned("a", SAME), planned("b", SAME), planned("c", SAME)])
    assert list(dict.fromkeys(engine.order)) == ["a", "b", "c"]
    assert statuses(run) == {"a": status, "b": "ok", "c": "hit"}


def test_jobs_without_a_key_are_all_built(begin: Any) -> None:
    engine = FakeEngine({"a": ["failed"]})
    one, other = (Planned(planned(name).job, "", "build") for name in "ab")
    run = begin(engine)
    run.run([one, other])
    assert statuses(run) == {"a": "failed", "b": "ok"}


def test_what_is_known_is_told_and_not_begun(begin: Any) -> None:
    good, bad = planned("a"), planned("b")
    engine, heard = FakeEngine(), Heard()
    run = begin(engine, heard)
    run.run([
        planned("a", state=BUILT, known=outcome_of(good.job, "ok", seconds=9.0)),
        planned("b", state=FAILED, known=outcome_of(bad.job, "crash", seconds=9.0)),
    ])  # fmt: skip
    assert engine.begun == []
    assert [(one.status, one.seconds) for one in run.outcomes] == [("hit", 0.0), ("crash", 0.0)]
    assert heard.said == [("planned", ""), ("hit", "a"), ("crash", "b")]


@pytest.mark.parametrize(("most", "failed", "cancelled"), [(1, 1, 4), (2, 2, 3), (4, 4, 1), (9, 5, 0), (None, 5, 0)])
def test_enough_failures_end_the_batch(begin: Any, most: int | None, failed: int, cancelled: int) -> None:
    engine = FakeEngine({name: ["failed"] for name in "abcde"})
    run = begin(engine, most=most)
    run.run([planned(name) for name in "abcde"])
    found = [one.status for one in run.outcomes]
    assert (found.count("failed"), found.count("cancelled")) == (failed, cancelled)
    assert engine.is_cancelled == bool(cancelled)


def test_tries_that_are_not_final_are_no_failures_yet(begin: Any) -> None:
    run = begin(FakeEngine({"a": ["infra", "infra", "ok"]}), most=1)
    run.run([planned("a"), planned("b")])
    assert statuses(run) == {"a": "ok", "b": "ok"}


@pytest.mark.parametrize("state", ["build", HIT])
def test_what_no_worker_will_ever_build_costs_no_other(begin: Any, state: str) -> None:
    engine, heard = FakeEngine(never={"b": "needs a GPU sm90"}), Heard()
    run = begin(engine, heard, most=1)
    run.run([planned("a"), planned("b", state=state), planned("c")])
    assert statuses(run) == {"a": "ok", "b": "infra", "c": "ok"}
    assert engine.order == ["a", "c"]
    (never,) = [one for one in run.outcomes if one.model == "b"]
    assert (never.exit_code, never.error["code"]) == (69, "unavailable")
    assert "sm90" in never.reason


def test_what_is_built_already_needs_no_worker(begin: Any) -> None:
    run = begin(FakeEngine(never={"a": "needs a GPU"}))
    run.run([planned("a", state=BUILT, known=outcome_of(planned("a").job))])
    assert statuses(run) == {"a": "hit"}


@pytest.mark.parametrize("after", range(6))
def test_an_interrupted_batch_has_an_outcome_for_every_job_and_rows_of_what_ended(begin, journal, after) -> None:
    """Jobs that run, wait, follow another or rest before their next try."""
    ended: list[str] = []

    class Interrupted(Heard):
        def finished(self, outcome: Any) -> None:
            super().finished(outcome)
            if len(self.said) > after:
                self.said.clear()
                raise BrokenError

    jobs = [planned("r"), planned("a", SAME), planned("b", SAME), planned("c"), planned("d")]
    heard = Interrupted()
    run = begin(FakeEngine({"r": ["infra"]}, room=2), heard)
    with pytest.raises(BrokenError):
        run.run(jobs)
    heard.finished = lambda outcome: ended.append(outcome.model)  # type: ignore[method-assign]
    run.interrupt()
    assert sorted(statuses(run)) == ["a", "b", "c", "d", "r"]
    assert len(run.outcomes) == 5
    assert "cancelled" in statuses(run).values()
    for one in jobs:
        known = again(journal).known(one.job.id, one.key)
        assert (known is not None) == (statuses(run)[one.job.model] == "ok")


def test_an_interrupt_where_a_job_had_just_begun_leaves_no_job_without_an_outcome(begin: Any) -> None:
    class Interrupted(FakeEngine):
        def start(self, one: Any, number: int) -> None:
            if one.model == "b":
                raise KeyboardInterrupt
            super().start(one, number)

    run = begin(Interrupted(room=2))
    with pytest.raises(KeyboardInterrupt):
        run.run([planned("a"), planned("b"), planned("c")])
    run.interrupt()
    assert statuses(run) == dict.fromkeys("abc", "cancelled")


def test_an_interrupted_try_says_nothing_to_the_next_call_but_a_bundle_that_was_built_does(begin, journal) -> None:
    class Slow(FakeEngine):
        def wait(self, seconds: float) -> Any:
            if not self.is_cancelled:
                raise BrokenError
            found = [(one, outcome_of(one, "ok" if one.model == "a" else "failed")) for one, _ in self.running.values()]
            self.running.clear()
            return found

    run = begin(Slow(room=2))
    with pytest.raises(BrokenError):
        run.run([planned("a"), planned("b")])
    run.interrupt()
    assert statuses(run) == {"a": "ok", "b": "failed"}
    assert all(one.key and one.final for one in run.outcomes)
    next_one = again(journal)
    assert next_one.known("a/host", planned("a").key) is not None
    assert next_one.known("b/host", planned("b").key) is None


def test_a_worker_that_does_not_end_costs_seconds_and_its_job_is_cancelled(begin: Any) -> None:
    class Stuck(FakeEngine):
        def wait(self, seconds: float) -> Any:
            self.now += seconds
            if not self.is_cancelled:
                raise BrokenError
            return []

    engine = Stuck()
    run = begin(engine)
    with pytest.raises(BrokenError):
        run.run([planned("a"), planned("b")])
    run.interrupt()
    assert statuses(run) == {"a": "cancelled", "b": "cancelled"}
    assert engine.now < 2 * run_batch.CANCEL_SECONDS


def test_a_journal_that_cannot_be_written_ends_the_batch_and_what_runs(begin, journal, monkeypatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise InputOutputError("the journal cannot be written")

    engine = FakeEngine(room=2)
    engine.meanwhile = lambda _name: monkeypatch.setattr(journal, "write", full)
    run = begin(engine)
    with pytest.raises(InputOutputError):
        run.run([planned(name) for name in "abc"])
    run.interrupt()
    assert engine.is_cancelled
    assert statuses(run) == dict.fromkeys("abc", "cancelled")


def test_an_outcome_is_in_the_journal_before_anybody_hears_of_it(begin: Any, journal: Journal) -> None:
    seen: list[bool] = []

    class Curious(Heard):
        def finished(self, outcome: Any) -> None:
            seen.append(again(journal).known(outcome.job, outcome.key) is not None)

    begin(FakeEngine({"b": ["failed"]}), Curious()).run([planned("a"), planned("b"), planned("c")])
    assert seen == [True] * 3


def test_ten_thousand_jobs_that_wait_are_not_asked_for_one_by_one(begin: Any) -> None:
    asked = []

    class Counting(FakeEngine):
        def has_room(self, one: Any) -> bool:
            asked.append(one.model)
            return super().has_room(one)

    engine = Counting(room=2)
    begin(engine).run([planned(str(number)) for number in range(300)])
    assert engine.order == [str(number) for number in range(300)]
    assert len(asked) < 3 * 300
