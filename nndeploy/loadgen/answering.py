# SPDX-License-Identifier: Apache-2.0
"""Answers the samples that LoadGen issues, in the order of their arrival, on threads that call the program.

LoadGen calls `issue` on its own thread and goes on at once; workers take what waits, join as many samples as one call
may have, and hand the outputs to `complete`. Without workers `issue` answers before it returns.

Law: every sample issued is completed once. After the first error all others are completed without outputs, so that
LoadGen comes to its end, and `error` keeps what happened.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from nndeploy.errors import NndeployError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.values.types import Value


@dataclass(frozen=True, slots=True)
class Question:
    """One sample of a query: LoadGen's name for the answer, and which sample of the library it is."""

    id: int
    index: int


Answers = Sequence[tuple[Question, Mapping[str, Value] | None]]
"""Outputs of each question; None after an error."""


class Answering:
    """The system under test; `close` it when no more questions come."""

    def __init__(
        self,
        calls: JoinedCalls,
        samples: Sequence[NamedSample],
        complete: Callable[[Answers], None],
        *,
        num_workers: int,
        on_error: Callable[[], None] = lambda: None,
    ) -> None:
        """Starts the workers; `on_error` is called once, from any thread, when an answer failed."""
        self.error: BaseException | None = None
        self.num_answered = 0
        self._calls = calls
        self._samples = samples
        self._complete = complete
        self._on_error = on_error
        self._waiting: deque[Question] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._workers = [
            threading.Thread(target=self._work, name=f"answer-{i}", daemon=True) for i in range(num_workers)
        ]
        for worker in self._workers:
            worker.start()

    def issue(self, questions: Sequence[Question]) -> None:
        """Takes the samples of a query; never raises, since LoadGen could not stand it."""
        with self._changed:
            if self.error is None and self._workers:
                self._waiting.extend(questions)
                self._changed.notify(len(questions))
                return
        for question in questions:
            self._answer([question])

    def abort(self, error: BaseException) -> None:
        """Makes every answer from now on an empty one; the first error stays."""
        with self._changed:
            is_first = self.error is None
            self.error = self.error or error
        if is_first:
            self._on_error()

    def close(self) -> None:
        """Waits until all that was issued is answered, then ends the workers."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _work(self) -> None:
        while questions := self._next():
            self._answer(questions)

    def _next(self) -> list[Question]:
        """Returns the questions of the next call, none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            first = list(islice(self._waiting, self._calls.most_rows))
            count = self._calls.num_joined([self._samples[question.index].values for question in first])
            return [self._waiting.popleft() for _ in first[:count]]

    def _answer(self, questions: Sequence[Question]) -> None:
        outputs: Sequence[Mapping[str, Value] | None] = [None] * len(questions)
        try:
            if self.error is None:
                outputs = self._outputs(questions)
        except BaseException as err:
            self.abort(err)
        try:
            self._complete(list(zip(questions, outputs, strict=True)))
        except BaseException as err:
            self.abort(err)
        with self._changed:
            self.num_answered += len(questions)

    def _outputs(self, questions: Sequence[Question]) -> Sequence[Mapping[str, Value]]:
        """Returns the outputs of each question, from one call.

        Raises:
            NndeployError: as `Program.run`, of the first sample that fails by itself, if one does.
        """
        samples = [self._samples[question.index] for question in questions]
        try:
            return self._calls.run([sample.values for sample in samples])
        except NndeployError as err:
            for question in questions if len(questions) > 1 else ():
                self._outputs([question])
            others = f" and {len(samples) - 1} more in one call" if len(samples) > 1 else ""
            raise err.about(samples[0].origin + others) from err
