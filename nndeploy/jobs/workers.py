# SPDX-License-Identifier: Apache-2.0
"""The same calls to a backend's library, made in this process or each in a child process.

`InProcessWorkers` is for the Python call, where thousands of small models compile quickly; `ChildWorkers` is for the
command, where a library that crashes or hangs on a hostile model must cost that one job only.
"""

import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nndeploy.jobs import messages, tasks
from nndeploy.jobs.child import Child
from nndeploy.jobs.messages import Request, Response
from nndeploy.jobs.tasks import Built, MeasureOptions, Sample
from nndeploy.plugin.interface import BuildOptions, BuildRefusedError, Support
from nndeploy.target import Target
from nndeploy.value_types import Value

if TYPE_CHECKING:
    import onnx_ir as ir


class Workers(Protocol):
    """What can be asked of a backend; see `nndeploy.jobs.tasks` for each call."""

    num_parallel: int

    def supports(self, name: str, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]: ...

    def build(
        self, name: str, submodel: "ir.Model", target: Target, options: BuildOptions, samples: Sequence[Sample]
    ) -> Built: ...

    def evaluate(
        self,
        name: str,
        model: bytes,
        samples: Sequence[Sample],
        options: BuildOptions,
        seconds_limit: float | None = None,
    ) -> list[dict[str, Value]]: ...

    def run_bundle(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[dict[str, Value]]: ...

    def measure(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[float]: ...


class InProcessWorkers:
    """Runs every task here and now."""

    num_parallel = 1
    supports = staticmethod(tasks.supports)
    build = staticmethod(tasks.build)
    run_bundle = staticmethod(tasks.run_bundle)
    measure = staticmethod(tasks.measure)

    @staticmethod
    def evaluate(
        name: str,
        model: bytes,
        samples: Sequence[Sample],
        options: BuildOptions,
        seconds_limit: float | None = None,
    ) -> list[dict[str, Value]]:
        """Returns what `tasks.evaluate` does; with a limit in a child, for nothing here could end it."""
        if seconds_limit is None:
            return tasks.evaluate(name, model, samples, options)
        with closing(ChildWorkers(1, seconds_limit)) as workers:
            return workers.evaluate(name, model, samples, options)


class ChildWorkers:
    """Runs every task in a child process, `seconds_limit` long at most.

    Children are kept for further tasks, at most `num_parallel` of them; timing has a fresh one each time, so that no
    other library's threads are about.
    """

    def __init__(self, num_parallel: int, seconds_limit: float) -> None:
        self.num_parallel = num_parallel
        self._seconds_limit = seconds_limit
        self._idle: list[Child] = []
        self._lock = threading.Lock()
        self._starter = ThreadPoolExecutor(1, "nndeploy-starter")

    def supports(self, name: str, model: "ir.Model", target: Target, options: BuildOptions) -> list[Support]:
        request = Request("supports", {"backend": name}, target, options, model=messages.model_bytes(model))
        try:
            return [Support(ok, reason) for ok, reason in self._call(request).result]
        except BuildRefusedError as err:
            return [Support(False, str(err))] * len(model.graph)

    def build(
        self, name: str, submodel: "ir.Model", target: Target, options: BuildOptions, samples: Sequence[Sample]
    ) -> Built:
        model = messages.model_bytes(submodel)
        request = Request("build", {"backend": name}, target, options, model=model, samples=samples)
        return messages.built_from(self._call(request))

    def evaluate(
        self,
        name: str,
        model: bytes,
        samples: Sequence[Sample],
        options: BuildOptions,
        seconds_limit: float | None = None,
    ) -> list[dict[str, Value]]:
        request = Request("evaluate", {"backend": name}, None, options, model=model, samples=samples)
        return list(self._call(request, seconds_limit).outputs)

    def run_bundle(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[dict[str, Value]]:
        request = Request("run_bundle", {"path": str(path.absolute())}, measure=options, samples=samples)
        return list(self._call(request).outputs)

    def measure(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[float]:
        request = Request("measure", {"path": str(path.absolute())}, measure=options, samples=samples)
        with closing(Child()) as child:
            return [float(ms) for ms in child.call(request, self._seconds_limit).result]

    def close(self) -> None:
        """Ends the children that are kept."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.close()
        self._starter.shutdown()

    def _start(self, start: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
        return self._starter.submit(start).result()

    def _call(self, request: Request, seconds_limit: float | None = None) -> Response:
        with self._lock:
            child = self._idle.pop() if self._idle else Child(self._start)
        try:
            return child.call(request, min(self._seconds_limit, seconds_limit or self._seconds_limit))
        finally:
            with self._lock:
                self._idle.append(child)
