# SPDX-License-Identifier: Apache-2.0
"""Every sample that is issued is answered once, in the order of arrival, whatever goes wrong."""

import threading

import numpy as np
import pytest
from loadgen_programs import FakeProgram, samples

from nndeploy.errors import InputError
from nndeploy.loadgen.answering import Answering, Question
from nndeploy.loadgen.rehearsal import rehearse
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import Request, Scenario
from nndeploy.runtime.batching import JoinedCalls


def questions(count: int, of: int) -> list[Question]:
    return [Question(1000 + i, i % of) for i in range(count)]


@pytest.mark.parametrize("num_workers", [0, 1, 4])
@pytest.mark.parametrize("rows", [1, 8])
def test_every_question_gets_its_own_answer_once(num_workers, rows) -> None:
    given, answers = samples(5), []
    answering = Answering(JoinedCalls(FakeProgram(), rows), given, answers.extend, num_workers=num_workers)
    asked = questions(100, of=5)
    for start in range(0, 100, 10):
        answering.issue(asked[start : start + 10])
    answering.close()
    assert sorted(question.id for question, _ in answers) == [question.id for question in asked]
    assert answering.num_answered == 100
    for question, outputs in answers:
        np.testing.assert_array_equal(outputs["y"], 2 * given[question.index].values["x"])


def test_one_worker_answers_in_the_order_of_arrival() -> None:
    answers = []
    answering = Answering(JoinedCalls(FakeProgram(), 8), samples(3), answers.extend, num_workers=1)
    answering.issue(questions(50, of=3))
    answering.close()
    assert [question.id for question, _ in answers] == list(range(1000, 1050))


def test_a_query_that_waits_is_answered_in_one_call() -> None:
    program = FakeProgram()
    answering = Answering(JoinedCalls(program, 8), samples(8), lambda answers: None, num_workers=1)
    answering.issue(questions(8, of=8))
    answering.close()
    assert program.rows == [8]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_an_error_everything_is_answered_with_nothing(num_workers) -> None:
    def refuse_third(x):
        if x[0, 0] == 3:
            raise InputError("three is not allowed")
        return x

    given = [NamedSample(f"in/{i}.npz", {"x": np.full((1, 3), i, np.float32)}) for i in range(5)]
    answers, told, failed = [], [], threading.Event()
    answering = Answering(
        JoinedCalls(FakeProgram(refuse_third), 1), given, answers.extend, num_workers=num_workers,
        on_error=lambda: (told.append(1), failed.set()),
    )  # fmt: skip
    answering.issue(questions(20, of=5))
    failed.wait()
    later = [Question(2000 + i, 0) for i in range(20)]
    answering.issue(later)
    answering.close()
    assert str(answering.error) == "in/3.npz: three is not allowed"
    assert len(answers) == 40
    assert told == [1]
    assert [answer for question, answer in answers if question in later] == [None] * 20


@pytest.mark.parametrize(("is_refused", "error"), [
    (lambda x: (x[:, 0] == 3).any(), "in/3.npz: no"), (lambda x: len(x) > 1, "in/0.npz and 4 more in one call: no"),
], ids=["one alone", "none alone"])  # fmt: skip
def test_the_sample_that_fails_is_named_or_the_call_where_none_fails_alone(is_refused, error) -> None:
    def refuse(x):
        if is_refused(x):
            raise InputError("no")
        return x

    given = [NamedSample(f"in/{i}.npz", {"x": np.full((1, 3), i, np.float32)}) for i in range(5)]
    answering = Answering(JoinedCalls(FakeProgram(refuse), 8), given, lambda answers: None, num_workers=1)
    answering.issue(questions(5, of=5))
    answering.close()
    assert str(answering.error) == error


def test_an_error_of_the_other_side_is_kept_too() -> None:
    def refuse(answers):
        raise TypeError("not like this")

    answering = Answering(JoinedCalls(FakeProgram(), 1), samples(1), refuse, num_workers=1)
    answering.issue(questions(2, of=1))
    answering.close()
    assert isinstance(answering.error, TypeError)


def test_the_first_error_stays() -> None:
    answering = Answering(JoinedCalls(FakeProgram(), 1), samples(1), lambda answers: None, num_workers=0)
    first, second = ValueError("first"), ValueError("second")
    answering.abort(first)
    answering.abort(second)
    assert answering.error is first


@pytest.mark.parametrize("scenario", Scenario)
def test_a_rehearsal_runs_as_often_as_it_is_asked_and_leaves_no_thread(scenario) -> None:
    before = set(threading.enumerate())
    program, request = FakeProgram(), Request(scenario)
    calls = JoinedCalls(program, request.most_rows)
    pace = rehearse(calls, samples(4), request, 5)
    assert 0 < pace.query_s < 1
    assert pace.samples_per_s > 1
    size = {"single-stream": 1, "multi-stream": 8, "offline": 32, "server": 4}[scenario]
    assert sum(program.rows) == 5 * size
    assert set(threading.enumerate()) <= before  # threads of other tests may end meanwhile


def test_a_rehearsal_raises_what_the_program_raises() -> None:
    def refuse(x):
        raise InputError("never")

    with pytest.raises(InputError, match="never"):
        rehearse(JoinedCalls(FakeProgram(refuse), 1), samples(1), Request(Scenario.SERVER), 3)
