# SPDX-License-Identifier: Apache-2.0
"""Each session goes on from its own state, whatever comes between its records, up to the limit."""

from typing import Any

import numpy as np
import pytest

from nndeploy.errors import InputError
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine import sessions
from nndeploy.stream.engine.sessions import Sessions
from nndeploy.stream.records import Record

PLAN = RunnerPlan({"x": "x"}, {"y": "y"}, carry={"after": "before"}, session="who", sessions=2)


class Adding:
    """Stands for a runner: each record's y is the sum of all x of its session; a negative x fails."""

    def run_carried(self, record: Record, state: dict[str, Any]) -> dict[str, Any]:
        if record.fields["x"] < 0:
            record.fail(InputError("is negative"), "model")
            return {}
        total = state["before"] + record.fields["x"]
        record.add({"y": total})
        return {"before": total}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.setattr(sessions, "first_state", lambda *_: 0)
    manifest: Any = None
    return Sessions(PLAN, manifest, "model")


def ran(states: Sessions, who: Any, x: int) -> Record:
    record = Record(0, "line 1", "1", fields={"who": who, "x": x})
    runner: Any = Adding()
    assert list(states.run(runner, record)) == [record]
    return record


def sums(states: Sessions, *given: tuple[Any, int]) -> list[int | None]:
    return [ran(states, who, x).made.get("y") for who, x in given]


def test_sessions_do_not_know_of_each_other(states) -> None:
    assert sums(states, ("a", 1), ("b", 10), ("a", 2), ("b", 20), ("a", 4)) == [1, 10, 3, 30, 7]
    assert states.num_forgotten == 0


def test_of_more_than_the_limit_the_one_that_waited_longest_is_forgotten(states) -> None:
    assert sums(states, ("a", 1), ("b", 10), ("a", 2), ("c", 100), ("a", 4), ("b", 20)) == [1, 10, 3, 100, 7, 20]
    assert states.num_forgotten == 2


def test_a_record_that_fails_leaves_its_session_as_it_was(states) -> None:
    assert sums(states, ("a", 1), ("a", -1), ("a", 2)) == [1, None, 3]


def test_a_record_with_an_error_passes_untouched(states) -> None:
    record = Record(0, "line 1", "1", error=InputError("cannot be read"))
    runner: Any = Adding()
    assert list(states.run(runner, record)) == [record]
    assert str(record.error) == "cannot be read"


@pytest.mark.parametrize("name", [7, np.array(7), np.array([7], np.int32), "7", np.array("7"), b"7"])
def test_a_session_is_named_by_a_text_or_a_whole_number(states, name) -> None:
    assert sums(states, (name, 1), (name, 2)) == [1, 3]


@pytest.mark.parametrize("name", [1.5, None, True, [1], np.array([1, 2]), np.array(0.5)])
def test_what_names_nothing_is_an_error_of_that_record(states, name) -> None:
    error = ran(states, name, 1).error
    assert error is not None
    assert "session 'who'" in str(error)
    assert "is neither a text nor a whole number" in str(error)
    assert sums(states, ("a", 1)) == [1]
