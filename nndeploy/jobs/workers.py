# SPDX-License-Identifier: Apache-2.0
"""The same calls to a backend's library, made in this process or each in a child process.

A library that crashes or hangs on a model must cost that one job only: so it is `ChildWorkers`, one for a command, one
that all Python calls of a process share (`shared_workers.py`). `InProcessWorkers` is for who asks for it.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nndeploy.errors import BuildRefusedError
from nndeploy.files.file_content import let_go_of_all_pages
from nndeploy.files.held_folder import HeldFolder
from nndeploy.jobs import messages, tasks
from nndeploy.jobs.child import Child
from nndeploy.jobs.kept_calls import KeptCalls
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.messages import Request, Response
from nndeploy.jobs.tasks import Built, MeasureOptions, Sample
from nndeploy.plugin.interface import BuildOptions, QuantiseRecipe, Ranges, Support
from nndeploy.sandbox.child_process import ChildProcess, StartsChildren, start_child
from nndeploy.sandbox.enter import missing
from nndeploy.target.target import Target
from nndeploy.values.types import Value

if TYPE_CHECKING:
    import onnx_ir as ir


class Workers(Protocol):
    """What can be asked of a backend; see `nndeploy.jobs.tasks` for each call."""

    num_parallel: int

    @property
    def shared_folder(self) -> str | None:
        """A folder for what tasks read beside their arguments: weights, bundles. None: it may lie anywhere."""

    @property
    def unprotected(self) -> str:
        """What is missing on this machine of the sandbox that tasks are to run in, "" where nothing is."""

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

    def calibrate(self, name: str, model: bytes, samples: Sequence[Sample], method: str) -> Ranges: ...

    def quantise(self, name: str, model: bytes, recipe: QuantiseRecipe) -> bytes: ...

    def run_bundle(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[dict[str, Value]]: ...

    def measure(self, paths: Sequence[Path], samples: Sequence[Sample], options: MeasureOptions) -> Measured: ...


class InProcessWorkers:
    """Runs every task here and now."""

    num_parallel = 1
    shared_folder = None
    unprotected = ""
    supports = staticmethod(tasks.supports)
    build = staticmethod(tasks.build)
    calibrate = staticmethod(tasks.calibrate)
    quantise = staticmethod(tasks.quantise)
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

    Children are kept for further tasks, as many as were ever busy at once (one compile asks `num_parallel` things at
    once), until nobody wanted them for `idle_seconds` (None: until `close`). One that crashed is started again by the
    next task. Children import from `import_paths` what their own Python has not. What they may do is what a sandbox
    leaves them, unless `has_sandbox` is False. What `kept` knows is not asked again. `start` starts
    them.
    """

    def __init__(
        self,
        num_parallel: int,
        seconds_limit: float,
        idle_seconds: float | None = None,
        import_paths: Sequence[str] = (),
        *,
        has_sandbox: bool = True,
        kept: KeptCalls | None = None,
        start: StartsChildren = start_child,
    ) -> None:
        self.num_parallel = num_parallel
        self._kept = kept
        self._start_child = start
        self.unprotected = missing() if has_sandbox else ""
        self._has_sandbox = has_sandbox
        self._shared: HeldFolder | None = None
        self._seconds_limit = seconds_limit
        self._idle_seconds = idle_seconds
        self._import_paths = import_paths
        self._idle: list[tuple[float, Child]] = []  # when it was left, the longest ago first
        self._sweeper: threading.Timer | None = None
        self._lock = threading.Lock()
        self._starter = ThreadPoolExecutor(1, "nndeploy-starter")

    @property
    def shared_folder(self) -> str:
        """Returns the folder that all children may read, made when it is first asked for."""
        with self._lock:
            return self._shared_path()

    def _shared_path(self) -> str:
        if self._shared is None:
            self._shared = HeldFolder("shared")
        return str(self._shared.path)

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

    def calibrate(self, name: str, model: bytes, samples: Sequence[Sample], method: str) -> Ranges:
        request = Request("calibrate", {"backend": name, "method": method}, model=model, samples=samples)
        return {tensor: (float(least), float(most)) for tensor, (least, most) in self._call(request).result.items()}

    def quantise(self, name: str, model: bytes, recipe: QuantiseRecipe) -> bytes:
        arguments = {"backend": name, "recipe": dataclasses.asdict(recipe)}
        return bytes(self._call(Request("quantise", arguments, model=model)).files["model.onnx"])

    def run_bundle(self, path: Path, samples: Sequence[Sample], options: MeasureOptions) -> list[dict[str, Value]]:
        request = Request("run_bundle", {"path": str(path.absolute())}, measure=options, samples=samples)
        return list(self._call(request).outputs)

    def measure(self, paths: Sequence[Path], samples: Sequence[Sample], options: MeasureOptions) -> Measured:
        arguments = {"paths": [str(path.absolute()) for path in paths]}
        request = Request("measure", arguments, measure=options, samples=samples)
        result = self._call(request).result
        return Measured([[float(ms) for ms in times] for times in result["ms"]], float(result["waited"]))

    def close(self) -> None:
        """Ends the children that are kept; a second call does nothing."""
        with self._lock:
            children, self._idle = self._idle, []
            if self._sweeper is not None:
                self._sweeper.cancel()
        for _, child in children:
            child.close()
        if self._shared is not None:
            self._shared.close()
        self._starter.shutdown()

    def _start(self, *arguments: Any, **more: Any) -> ChildProcess:
        """Starts a child in a thread that outlives it: for Linux the parent with which it dies is that thread.

        One of a pool that ends with a stage of the compile would take its children along, between two tasks.
        """
        return self._starter.submit(self._start_child, *arguments, **more).result()

    def _new_child(self) -> Child:
        return Child(self._start, self._import_paths, self._shared_path(), has_sandbox=self._has_sandbox)

    def _call(self, request: Request, seconds_limit: float | None = None) -> Response:
        seconds = min(self._seconds_limit, seconds_limit or self._seconds_limit)
        if self._kept is None or not (key := self._kept.key(request)):
            return self._asked(request, seconds)
        known = self._kept.response(key)
        return known if known is not None else self._asked(request, seconds, partial(self._kept.keep, key))

    def _asked(self, request: Request, seconds: float, keep: Callable[[Path], None] = lambda _folder: None) -> Response:
        with self._lock:
            child = self._idle.pop()[1] if self._idle else self._new_child()
        let_go_of_all_pages()  # outputs of earlier calls, which would take memory beside the child's
        try:
            return child.call(request, seconds, keep)
        finally:
            with self._lock:
                self._idle.append((time.monotonic(), child))
                self._sweep_later()

    def _sweep_later(self) -> None:
        """Lets those that nobody wants be closed when their time is over; the lock is held."""
        if self._idle_seconds is None or self._sweeper is not None:
            return
        left = self._idle[0][0] + self._idle_seconds - time.monotonic()
        self._sweeper = threading.Timer(max(0.0, left), self._sweep)
        self._sweeper.daemon = True
        self._sweeper.start()

    def _sweep(self) -> None:
        assert self._idle_seconds is not None
        with self._lock:
            self._sweeper = None
            until = time.monotonic() - self._idle_seconds
            unwanted = [child for left, child in self._idle if left <= until]
            self._idle = [(left, child) for left, child in self._idle if left > until]
            if self._idle:
                self._sweep_later()
        for child in unwanted:
            child.close()
