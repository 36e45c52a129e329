# SPDX-License-Identifier: Apache-2.0
"""Trials are made while a program is used, within a share of the time, by those of its sessions that can."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nndeploy.errors import InputOutputError, UnavailableError
from nndeploy.runtime.tuned_meanwhile import SHARE, tuned_meanwhile

TRIAL_SECONDS = 0.005


class Session:
    """Makes trials of so many seconds; `what` happens in each."""

    def __init__(self, what: Callable[[], Any] = list, begin: Callable[[], None] = lambda: None) -> None:
        self._what, self._begin = what, begin
        self.num_trials, self.is_over = 0, False

    def begin_trials(self, seconds: float) -> None:
        assert seconds == 3.0
        self._begin()

    def try_once(self) -> Any:
        assert not self.is_over
        self.num_trials += 1
        time.sleep(TRIAL_SECONDS)
        return self._what()

    def end_trials(self) -> None:
        self.is_over = True


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def program(*sessions: object) -> Any:
    return SimpleNamespace(path=Path("m.nnd"), sessions=dict(enumerate(sessions)))


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not holds() and time.monotonic() < limit:
        time.sleep(0.002)
    assert holds()


def test_trials_take_their_share_of_the_time_at_most() -> None:
    session, began = Session(), time.monotonic()
    with tuned_meanwhile([program(session)], 3.0, pytest.fail) as figures:
        until(lambda: session.num_trials >= 4)
        took = time.monotonic() - began
    assert session.is_over
    assert took >= 3 * TRIAL_SECONDS / SHARE  # between four trials there are three waits
    assert figures.seconds >= 4 * TRIAL_SECONDS
    assert figures.num_tuned == 0


def test_what_was_found_is_counted_and_told() -> None:
    tables = [
        {"shapes": [[1, 3], []], "steps": {"0": {"chunks": 2}}, "rule_us": 2000.0, "tuned_us": 1000.0},
        {"shapes": [[2, 3]], "steps": {}, "rule_us": 2000.0, "tuned_us": 2000.0},
    ]
    session = Session(lambda: [{"tables": tables}])
    with tuned_meanwhile([program(session)], 3.0, pytest.fail) as figures:
        until(lambda: session.num_trials >= 2)
    assert (figures.num_tuned, figures.num_faster) == (2 * session.num_trials, session.num_trials)
    assert "1x3 1" in figures.lines[0]
    assert figures.to_json()["faster_shapes"] == figures.num_faster


def test_a_session_that_cannot_is_told_and_the_others_go_on() -> None:
    told, able = list[str](), Session()
    unable, other = Session(begin=raising(UnavailableError("paced"))), Session(raising(InputOutputError("full")))
    with tuned_meanwhile([program(unable, able), program(other), program(object())], 3.0, told.append):
        until(lambda: able.num_trials >= 2 and len(told) >= 3)
    assert len(told) == 3
    assert all("m.nnd" in line for line in told)
    assert unable.num_trials == 0
    assert other.num_trials == 1
