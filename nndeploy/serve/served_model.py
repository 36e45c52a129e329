# SPDX-License-Identifier: Apache-2.0
"""A model behind the service: the bundle that answers, checked before it does, and replaced while it does.

path of a bundle -> open, goldens run and compared -> calls go to it; another path -> the same beside it, then calls go
to the new one and the old one ends what it began. Laws: a bundle whose goldens are wrong answers nobody; a call is
answered by one bundle alone.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from nndeploy.errors import CheckError, NndeployError, UnavailableError, UsageError
from nndeploy.runtime.batching import Proof
from nndeploy.runtime.program import Program
from nndeploy.runtime.verify_bundle import golden_verdicts
from nndeploy.serve.call_queue import Call, CallQueue
from nndeploy.serve.datatypes import Tensor, tensor_of
from nndeploy.serve.infer_request import Answer, Say
from nndeploy.serve.options import ServeOptions
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.records import Record
from nndeploy.values.types import Value

PLATFORM = "nndeploy_bundle"
Open: TypeAlias = Callable[[Path], Program]
"""Opens a bundle, as `load_bundle` does."""


@dataclass(slots=True)
class _Served:
    """A bundle that is open, and how calls go through it."""

    program: Program
    version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    runner: Runner
    alone: Runner

    def close(self) -> None:
        self.program.close()


class ServedModel:
    """What answers under one name; `open` and `replace` change it, all else may be called by any thread."""

    def __init__(self, name: str, options: ServeOptions, load: Open, say: Say) -> None:
        """Takes what opens bundles; nothing is open yet."""
        self.name = name
        self._options, self._load, self._say = options, load, say
        self._served: _Served | None = None
        self._changing = threading.Lock()
        self.queue = CallQueue(
            self._run, name, most_waiting=options.queue, workers=options.workers, batch=options.batch,
            batch_delay_ns=round(options.batch_delay_ms * 1e6),
        )  # fmt: skip

    @property
    def is_ready(self) -> bool:
        """Whether a bundle is open and was checked."""
        return self._served is not None

    @property
    def version(self) -> str:
        """The version of the bundle that answers."""
        return self._now().version

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the bundle that answers."""
        return self._now().inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the bundle that answers."""
        return self._now().outputs

    def submit(self, inputs: dict[str, Value], until_ns: int = 0) -> "Future[Answer]":
        """Returns what will be the outputs of a call, whose time is over at `until_ns` of the monotonic clock, if ever.

        The future's error is what `Program.run` raises, or a DeadlineError.

        Raises:
            UnavailableError: it is not ready, or ends.
            BusyError: too many calls wait.
        """
        self._now()
        call = Call(Record(0, "", "", fields=inputs), until_ns)
        self.queue.put(call)
        return call.done

    def open(self, path: Path, version: str) -> None:
        """Opens the first bundle.

        Raises:
            CheckError: a golden is wrong on this machine, or there is none.
            NndeployError: as `load_bundle`.
        """
        served = self._opened(path, version)
        with self._changing:
            self._served = served

    def replace(self, path: Path, version: str) -> None:
        """Opens another bundle beside the one that answers, lets calls go to it, and closes the old one.

        Raises:
            UsageError: its inputs or outputs are others.
            NndeployError: as `open`; the old one goes on.
        """
        new = self._opened(path, version)
        with self._changing:
            old = self._served
            if old is None or (old.inputs, old.outputs) != (new.inputs, new.outputs):
                new.close()
                raise UsageError("the new bundle has other inputs or outputs", hint="start the service again")
            self._served = new
        old.close()

    def close(self, seconds: float) -> bool:
        """Ends the calls that are there, for so long at most; returns whether all of them ended."""
        is_done = self.queue.close(seconds)
        with self._changing:
            served, self._served = self._served, None
        if served is not None and is_done:
            served.close()  # which waits for its calls: where one hangs in a library, it stays open
        return is_done

    def _now(self) -> _Served:
        served = self._served
        if served is None:
            raise UnavailableError("the model is not ready", where=self.name, hint="try again")
        return served

    def _opened(self, path: Path, version: str) -> _Served:
        program = self._load(path)
        try:
            manifest = program.manifest
            inputs, outputs = (tuple(map(tensor_of, items)) for items in (manifest.inputs, manifest.outputs))
            if self._options.checks_goldens:
                _check_goldens(program)
            plan = RunnerPlan(None, {item.name: item.name for item in manifest.outputs})
            batched = replace(plan, batch=self._options.batch)
            alone = Runner(program, plan, "pass", "", Proof())
            return _Served(program, version, inputs, outputs, Runner(program, batched, "pass", "", Proof()), alone)
        except BaseException as err:
            program.close()
            if isinstance(err, NndeployError):
                err.about(str(path))
            raise

    def _run(self, calls: Sequence[Call]) -> None:
        """Gives each call its outputs or its error; called by the workers of the queue."""
        served = self._now()
        records = [call.record for call in calls]
        while left := [record for record in records if not record.made and record.error is None]:
            served = self._now()
            try:
                served.runner.run(left)
            except UsageError as err:
                if served is not self._served:
                    continue  # it was closed between the two lines above
                if served.runner is served.alone:
                    raise
                self._say(f"{self.name} runs request by request: {err}")
                served.runner = served.alone
        for call in calls:
            if call.record.error is not None:
                call.fail(call.record.error)
            else:
                call.done.set_result(Answer(dict(call.record.made), served.version))


def _check_goldens(program: Program) -> None:
    """Runs the goldens of a program.

    Raises:
        CheckError: an output is not what it should be, or there are none.
    """
    verdicts = golden_verdicts(program)
    wrong = [verdict for verdict in verdicts if not verdict.comparison.ok]
    if wrong:
        what = f"{len(wrong)} of {len(verdicts)} outputs of its goldens are wrong on this machine"
        raise CheckError(what, hint="nndeploy verify says which")
    if not verdicts:
        what = "it holds no goldens, so nothing says that its results are right on this machine"
        raise CheckError(what, hint="compile --samples keeps some; --no-check serves it all the same")
