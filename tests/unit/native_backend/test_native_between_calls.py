# SPDX-License-Identifier: Apache-2.0
"""Trials between calls: a call waits for one at most, and they use inputs of shapes that come again."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from native_models import made, model_of, reals
from nndeploy_native.between_calls import SEEN, SeenInputs, TrialClock, Turns
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.probe import probe
from nndeploy_native.session import open_session

from nndeploy.errors import InputOutputError
from nndeploy.plugin.interface import OpenOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import DimRange

TEXT = "g (float[1,8,N,20] x) => (float[n,o,p,q] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"
SECONDS = 30.0


def test_a_call_waits_for_the_trial_that_is_under_way() -> None:
    turns, is_done = Turns(), threading.Event()

    def call() -> None:
        with turns.call():
            is_done.set()

    with turns.trial() as is_ours:
        assert is_ours
        calling = threading.Thread(target=call)
        calling.start()
        assert not is_done.wait(0.02)
    calling.join(SECONDS)
    assert is_done.is_set()


def test_calls_work_at_once_and_leave_no_trial_between_them() -> None:
    turns = Turns()
    with turns.call(), turns.call(), turns.trial() as is_ours:
        assert not is_ours
    with turns.trial() as is_ours:
        assert is_ours


def test_a_trial_that_waits_comes_before_the_next_call() -> None:
    """Calls that follow each other at once, as those of a worker do, leave it in between two of them."""
    turns, order = Turns(), list[str]()

    def trial() -> None:
        with turns.trial() as is_ours:
            order.append(f"trial {is_ours}")

    waiting = threading.Thread(target=trial)
    with turns.call():
        waiting.start()
        while not turns._is_wanted:
            pass
    with turns.call():
        order.append("call")
    waiting.join(SECONDS)
    assert order == ["trial True", "call"]


def test_inputs_of_shapes_that_come_again_are_copied_one_set_at_a_time() -> None:
    seen, array = SeenInputs(), np.ones(3)
    for number in range(SEEN):
        assert seen.shapes is None
        seen.saw(((3,),), [(array, 0)])
        seen.saw(((number + 4,),), [(np.ones(number + 4), 0)])
    assert seen.shapes == ((3,),)
    array[:] = 7
    assert seen.given()[0][0].tolist() == [1, 1, 1]
    seen.end()
    for _ in range(2 * SEEN):
        seen.saw(((3,),), [(array, 0)])  # does not come back
    assert seen.shapes is None


def test_the_clock_of_trials_stands_between_them() -> None:
    clock = TrialClock()
    assert clock() == 0
    with clock.running():
        threading.Event().wait(0.001)
        assert clock() > 0
    after = clock()
    threading.Event().wait(0.001)
    assert clock() == after > 0


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., PlanSession]:
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    artifact = made(model_of(TEXT, {"w": reals(16, 8, 3, 3)}), {"N": DimRange(8, 64, 8)})

    def opened(folder: Path | None = tmp_path) -> PlanSession:
        files = {name: memoryview(data) for name, data in artifact.files.items()}
        how = OpenOptions(threads=1, cache_dir="" if folder is None else str(folder))
        found = open_session(files, artifact.metadata, how)
        assert isinstance(found, PlanSession)
        return found

    return opened


def test_shapes_are_tried_one_after_another_and_known_ones_are_not(opened: Callable[..., PlanSession]) -> None:
    def tuned(session: PlanSession) -> list[list[list[int]]]:
        session.begin_trials(0.05)
        found = list[list[list[int]]]()
        for height in (8, 9):
            x = reals(1, 8, height, 20)
            bits = np.asarray(session.run({"x": x})["y"]).tobytes()
            for _ in range(SEEN):
                session.run({"x": x})
            while (tables := session.try_once()) is not None:
                found += [table["shapes"] for one in tables for table in one["tables"]]
            assert np.asarray(session.run({"x": x})["y"]).tobytes() == bits
        session.end_trials()
        return found

    with closing(opened()) as session, closing(opened()) as another:
        assert tuned(session) == [[[1, 8, 8, 20]], [[1, 8, 9, 20]]]
        assert tuned(another) == []  # which finds in the file what was found since it was opened


def test_a_session_that_is_closed_makes_no_trial(opened: Callable[..., PlanSession]) -> None:
    session = opened()
    session.begin_trials(1.0)
    for _ in range(SEEN):
        session.run({"x": reals(1, 8, 8, 20)})
    between = session._between
    assert between is not None
    assert session.try_once() == []
    session.close()
    assert session.try_once() is None
    assert between.try_once() is None  # as a thread that was about to


def test_without_shapes_that_come_again_nothing_is_tried(opened: Callable[..., PlanSession]) -> None:
    with closing(opened()) as session:
        assert session.try_once() is None
        session.begin_trials(1.0)
        for height in range(8, 64):
            session.run({"x": reals(1, 8, height, 20)})
        assert session.try_once() is None


def test_a_folder_that_cannot_be_written_ends_it_before_it_begins(opened: Callable[..., PlanSession]) -> None:
    with closing(opened(None)) as session:
        with pytest.raises(InputOutputError):
            session.begin_trials(1.0)
        assert session.try_once() is None
