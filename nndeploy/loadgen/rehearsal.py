# SPDX-License-Identifier: Apache-2.0
"""Answers some queries before the test: it warms the program up, and tells how fast it is.

Streams are rehearsed one query after the other; offline and server with chunks that keep all workers busy.
"""

import threading
import time
from collections.abc import Sequence

from nndeploy.loadgen.answering import Answering, Answers, Question
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import Pace, Request
from nndeploy.runtime.batching import JoinedCalls

MOST_SECONDS = 1.0
"""A rehearsal that has asked at least once ends after this."""


def rehearse(calls: JoinedCalls, samples: Sequence[NamedSample], request: Request, num_queries: int) -> Pace:
    """Returns the pace over `num_queries` queries, at least one.

    Raises:
        NndeployError: the program cannot run a sample.
    """
    answered = _Countdown()
    answering = Answering(calls, samples, answered.complete, num_workers=request.num_workers)
    size = request.query_size if request.scenario.is_stream else max(1, 2 * request.num_workers * calls.most_rows)
    durations: list[float] = []
    end = time.perf_counter() + MOST_SECONDS
    try:
        for i in range(max(1, num_queries)):
            if durations and time.perf_counter() > end:
                break
            questions = [Question(n, n % len(samples)) for n in range(i * size, (i + 1) * size)]
            began = time.perf_counter()
            answered.expect(len(questions))
            answering.issue(questions)
            answered.wait()
            durations.append(time.perf_counter() - began)
            if answering.error is not None:
                raise answering.error
    finally:
        answering.close()
    return Pace(min(durations), size / min(durations))


class _Countdown:
    """Waits until as many samples were answered as expected."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._missing = 0

    def expect(self, count: int) -> None:
        self._missing = count

    def complete(self, answers: Answers) -> None:
        with self._changed:
            self._missing -= len(answers)
            self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._missing == 0)
