# SPDX-License-Identifier: Apache-2.0
"""A model behind the service: what answers under a name, opened and checked before it does, and replaced while it does.

path -> opened and checked -> calls go to it; another path -> the same beside it, then calls go to the new one and the
old one ends what it began. Law: a call is answered by one bundle alone.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.serve.call_queue import Call, CallQueue, Numbers
from nndeploy.serve.datatypes import Tensor
from nndeploy.serve.infer_request import Answer
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.text_writer import TextWriter
from nndeploy.serve.watched_record import Watch, WatchedRecord
from nndeploy.stream.records import Record
from nndeploy.values.types import Value


class Served(Protocol):
    """What is open and answers: a bundle or a pipeline."""

    @property
    def platform(self) -> str:
        """What metadata call its kind."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Its inputs, in order."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Its outputs, in order."""

    @property
    def writer(self) -> TextWriter | None:
        """What it takes if it writes texts."""

    @property
    def num_at_once(self) -> int:
        """How many calls it can work on at once."""

    @property
    def num_joined(self) -> int:
        """How many calls it wants together, at most."""

    @property
    def is_sound(self) -> bool:
        """Whether it can go on answering."""

    def run(self, records: Sequence[Record]) -> None:
        """Gives each record its outputs or its error; a UsageError says that it is closed."""

    def close(self) -> None:
        """Waits for calls that run, then closes it."""


Open: TypeAlias = Callable[[Path], Served]
"""Opens and checks what is at a path."""


@dataclass(frozen=True, slots=True)
class _Version:
    """What answers, and what clients see as its version."""

    served: Served
    version: str


class ServedModel:
    """What answers under one name; `open` and `replace` change it, all else may be called by any thread."""

    def __init__(self, name: str, options: ServeOptions, opened: Open, numbers: Numbers) -> None:
        """Takes what opens, and where its queue writes its numbers; nothing is open yet."""
        self.name = name
        self._workers, self._opened = options.workers, opened
        self._current: _Version | None = None
        self._changing = threading.Lock()
        self.queue = CallQueue(
            self._run,
            name,
            most_waiting=options.queue,
            numbers=numbers,
            batch_delay_ns=round(options.batch_delay_ms * 1e6),
        )

    @property
    def is_ready(self) -> bool:
        """Whether something is open and was checked."""
        current = self._current
        return current is not None and current.served.is_sound

    @property
    def version(self) -> str:
        """The version of what answers."""
        return self._now().version

    @property
    def served(self) -> Served:
        """What answers.

        Raises:
            UnavailableError: nothing does yet, or any more.
        """
        return self._now().served

    def submit(self, inputs: dict[str, Value], until_ns: int = 0, watch: Watch | None = None) -> "Future[Answer]":
        """Returns what will be the answer to a call, whose time is over at `until_ns` of the monotonic clock, if ever.

        `watch` sees a text grow, where a loop writes one; the inputs are then fields of the pipeline's source. The
        future's error is what `Program.run` raises, or a DeadlineError.

        Raises:
            UnavailableError: it is not ready, or ends.
            BusyError: too many calls wait.
        """
        self._now()
        record = Record(0, "", "", fields=inputs)
        if watch is not None:
            record = WatchedRecord(0, "", "", fields=inputs, watch=watch)
        call = Call(record, until_ns)
        self.queue.put(call)
        return call.done

    def open(self, path: Path, version: str) -> None:
        """Opens what answers first; raises as what opens it does."""
        served = self._opened(path)
        with self._changing:
            self._current = _Version(served, version)
        self.queue.batch = served.num_joined
        self.queue.start(self._workers * served.num_at_once)

    def replace(self, path: Path, version: str) -> None:
        """Opens another beside the one that answers, lets calls go to it, and closes the old one.

        Raises:
            UsageError: its inputs or outputs are others.
            NndeployError: as `open`; the old one goes on.
        """
        new = self._opened(path)
        with self._changing:
            old = None if self._current is None else self._current.served
            if old is None or (old.inputs, old.outputs) != (new.inputs, new.outputs):
                new.close()
                raise UsageError("the new bundle has other inputs or outputs", hint="restart the service")
            self._current = _Version(new, version)
        old.close()

    def close(self, seconds: float) -> bool:
        """Ends the calls that are there, for so long at most; returns whether all of them ended."""
        is_done = self.queue.close(seconds)
        with self._changing:
            current, self._current = self._current, None
        if current is not None and is_done:
            current.served.close()  # which waits for its calls: where one hangs in a library, it stays open
        return is_done

    def _now(self) -> _Version:
        current = self._current
        if current is None:
            raise UnavailableError("the model is not ready", where=self.name, hint="try again")
        return current

    def _run(self, calls: Sequence[Call]) -> None:
        """Gives each call its outputs or its error; called by the workers of the queue."""
        now = self._now()
        records = [call.record for call in calls]
        while left := [record for record in records if not record.made and record.error is None]:
            now = self._now()
            try:
                now.served.run(left)
            except UsageError:
                if now is self._current:
                    raise
                # it was closed between the two lines above; those that are left go to the new one
        self.queue.batch = now.served.num_joined
        for call in calls:
            if call.record.error is not None:
                call.fail(call.record.error)
            else:
                call.done.set_result(Answer(dict(call.record.made), now.version))
