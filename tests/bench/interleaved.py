# SPDX-License-Identifier: Apache-2.0
"""Engines raced fairly: one process each, all but one stopped, in interleaved rounds.

Threads that an engine leaves spinning slow down whoever runs beside them, so no two engines share a process, and while
one is timed the others are stopped (SIGSTOP). Slow drifts of a shared machine fall on all engines of a round, so ratios
are taken within a round; the result is the median over rounds.

An engine is a function of a module in this folder, "module:function", called in the child as
`function(inputs, **arguments)`; it returns a `Ready`. This file is also what the child runs: it answers each line of
JSON on its standard input with one line; what libraries print goes to standard error. Inputs and outputs cross in .npz
files. Law: no child outlives `race`, not even where the parent is killed.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]

LOAD_SECONDS, TURN_SECONDS = 900.0, 600.0
ITERATIONS_AT_LEAST = 3
FEWEST_ROUNDS = 7
_PR_SET_PDEATHSIG = 1


class EngineRefusedError(Exception):
    """An engine cannot run the model; `str(error)` says why, in one line."""


class EngineDiedError(SystemExit):
    """A child ended, or gave no answer in time; ends the command unless somebody can do without the engine."""

    def __init__(self, engine: str, message: str) -> None:
        super().__init__(f"{engine} {message}")
        self.engine = engine


@dataclass(frozen=True)
class Ready:
    """What a function in the child returns: the call that is timed, and its result as arrays in the model's order."""

    call: Callable[[], Any]
    arrays_of: Callable[[Any], Sequence[Array]]
    note: str = ""


@dataclass(frozen=True)
class Engine:
    """An engine by its name in tables, and what makes it: "module:function" and its arguments, plain data.

    `python` is the interpreter of another environment.
    """

    name: str
    maker: str
    arguments: Mapping[str, Any]
    python: str = ""


@dataclass(frozen=True)
class Pace:
    """How long: `seconds` an engine and round, `rounds`, and `warm_seconds` before the first.

    After `enough_seconds` no round is begun beyond `FEWEST_ROUNDS`. With `by_processor` the seconds of an iteration are
    those that the processor spends on the engine: on one thread, what other work does not change.
    """

    seconds: float = 0.3
    rounds: int = 7
    warm_seconds: float = 0.5
    enough_seconds: float = float("inf")
    by_processor: bool = False


@dataclass
class Race:
    """Outputs by engine, seconds of an iteration by engine for each round, refusals and notes.

    `resident` has the bytes of each engine's process that are in memory once it is warm.
    """

    outputs: dict[str, list[Array]] = field(default_factory=dict)
    rounds: list[dict[str, float]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    resident: dict[str, int] = field(default_factory=dict)

    def ms(self, name: str) -> float:
        return 1e3 * statistics.median(one[name] for one in self.rounds)

    def ms_text(self, name: str) -> str:
        """Returns the same for a table; "-" of an engine that has no time."""
        return f"{self.ms(name):.3f}" if name in self.outputs else "-"

    def ratio(self, ours: str, peers: Sequence[str]) -> float:
        """Returns the median over rounds of the seconds of the fastest peer over ours; NaN without either."""
        present = [peer for peer in peers if peer in self.outputs]
        if not present or ours not in self.outputs:
            return float("nan")
        return statistics.median(min(one[peer] for peer in present) / one[ours] for one in self.rounds)

    def drop_others(self, truth: Sequence[Array], bound: float, must: Collection[str]) -> dict[str, float]:
        """Returns the errors against `truth`; engines beyond the bound have no time."""
        errors = {name: largest_error(found, truth) for name, found in self.outputs.items()}
        for name in [name for name, error in errors.items() if not error <= bound]:
            del self.outputs[name]
            self.refused[name] = f"other numbers: error {errors.pop(name):.1e} of the largest value"
        if missing := [f"{name}: {self.refused[name]}" for name in must if name in self.refused]:
            raise SystemExit("; ".join(missing))
        return errors


def race(engines: Sequence[Engine], inputs: Inputs, pace: Pace, spared: Collection[str] = ()) -> Race:
    """Returns the outputs and the times of all engines on the same inputs.

    An engine of `spared` that dies is refused, and the others race again without it.
    """
    try:
        return _raced(engines, inputs, pace)
    except EngineDiedError as err:
        if err.engine not in spared:
            raise
        found = race([one for one in engines if one.name != err.engine], inputs, pace, spared)
        found.refused[err.engine] = str(err)
        return found


def _raced(engines: Sequence[Engine], inputs: Inputs, pace: Pace) -> Race:
    found = Race()
    with tempfile.TemporaryDirectory(prefix="nndeploy-race-") as name, _terminable(), contextlib.ExitStack() as stack:
        folder = Path(name)
        named: dict[str, Any] = dict(inputs)
        np.savez(folder / "inputs.npz", **named)
        children: dict[str, _Child] = {}
        iterations: dict[str, int] = {}
        for engine in engines:
            child = stack.enter_context(contextlib.closing(_Child(engine, folder)))
            answer = child.load(pace)
            if "refused" in answer:
                found.refused[engine.name] = answer["refused"]
                continue
            children[engine.name] = child
            iterations[engine.name] = max(ITERATIONS_AT_LEAST, round(pace.seconds / answer["seconds"]))
            found.notes[engine.name] = answer["note"]
            found.resident[engine.name] = answer["resident"]
            with np.load(answer["outputs"]) as arrays:
                found.outputs[engine.name] = [arrays[key] for key in arrays.files]
        end = time.monotonic() + pace.enough_seconds
        for number in range(pace.rounds):
            if number >= FEWEST_ROUNDS and time.monotonic() > end:
                break
            found.rounds.append({one: children[one].turn(iterations[one]) for one in rotated(list(children), number)})
    return found


def largest_error(got: Sequence[Array], want: Sequence[Array]) -> float:
    """Returns the largest absolute difference over the largest absolute value, the worst of all outputs.

    Infinite where shapes differ or something is not finite.
    """
    if [array.shape for array in got] != [array.shape for array in want]:
        return float("inf")
    return max((_error(a, b) for a, b in zip(got, want, strict=True)), default=0.0)


def _error(got: Array, want: Array) -> float:
    if want.dtype.kind == "U":
        return 0.0 if np.array_equal(got, want) else float("inf")
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not (np.isfinite(got).all() and np.isfinite(want).all()):
        return float("inf")
    difference = float(np.abs(got - want).max(initial=0.0))
    return difference / (float(np.abs(want).max(initial=0.0)) or 1.0)


def rotated(names: Sequence[Any], by: int) -> list[Any]:
    by %= max(1, len(names))
    return [*names[by:], *names[:by]]


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM an exception, so that children are killed on the way out."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Child:
    """One engine's process; stopped but while it loads or has its turn."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder / f"engine{len(list(folder.iterdir()))}"
        self._folder.mkdir()
        self._errors = self._folder / "stderr"
        environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1", "TMPDIR": str(self._folder)}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [engine.python or sys.executable, "-u", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, env=environment, start_new_session=True,
            )  # fmt: skip

    def load(self, pace: Pace) -> dict[str, Any]:
        inputs, outputs = str(self._folder.parent / "inputs.npz"), str(self._folder / "outputs.npz")
        told = {"maker": self._engine.maker, "arguments": dict(self._engine.arguments), "inputs": inputs}
        how = {"warm_seconds": pace.warm_seconds, "by_processor": pace.by_processor}
        answer = self._ask({**told, **how, "outputs": outputs}, LOAD_SECONDS, "loading")
        self._stop()
        return answer

    def turn(self, iterations: int) -> float:
        """Lets the child run alone; returns its median seconds an iteration."""
        self._signal(signal.SIGCONT)
        answer = self._ask({"iterations": iterations}, TURN_SECONDS, "running")
        self._stop()
        return float(answer["seconds"])

    def close(self) -> None:
        self._signal(signal.SIGKILL)
        self._signal(signal.SIGCONT)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()

    def _stop(self) -> None:
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _ask(self, request: Mapping[str, Any], seconds: float, doing: str) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        if not select.select([stdout], [], [], seconds)[0]:
            raise EngineDiedError(self._engine.name, f"did not respond within {seconds:g} s while {doing}")
        line = stdout.readline()
        if not line:
            raise EngineDiedError(self._engine.name, f"{self._end()} while {doing}: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        code = self._process.returncode
        if code is None:
            return "closed its output"
        return f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended with status {code}"

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


def child_main() -> None:
    """Serves the requests of one parent, until it closes the pipe or dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(content: Mapping[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    request = json.loads(sys.stdin.readline())
    try:
        ready = _made(request)
    except EngineRefusedError as err:
        answer({"refused": str(err)})
        return
    np.savez(request["outputs"], *ready.arrays_of(ready.call()))
    seconds, clock = _warmed(ready.call, request["warm_seconds"]), _CLOCKS[request["by_processor"]]
    answer({"outputs": request["outputs"], "note": ready.note, "seconds": seconds, "resident": _resident()})
    for line in sys.stdin:
        ready.call()  # what the others left in the caches is not this engine's business
        answer({"seconds": statistics.median(_timed(ready.call, clock) for _ in range(json.loads(line)["iterations"]))})


def _made(request: Mapping[str, Any]) -> Ready:
    module, _, function = request["maker"].partition(":")
    with np.load(request["inputs"]) as arrays:
        inputs = {key: arrays[key] for key in arrays.files}
    maker: Callable[..., Ready] = getattr(importlib.import_module(module), function)
    return maker(inputs, **request["arguments"])


def _warmed(call: Callable[[], Any], seconds: float) -> float:
    """Runs for `seconds`, three times at least; returns the median seconds of the later half."""
    end, times = time.perf_counter() + seconds, list[float]()
    while time.perf_counter() < end or len(times) < ITERATIONS_AT_LEAST:
        times.append(_timed(call))
    return statistics.median(times[len(times) // 2 :])


def cpu_seconds(call: Callable[[], Any], times: int) -> float:
    """Returns the seconds of processor time that a call takes in this process, the mean of so many."""
    start = time.process_time_ns()
    for _ in range(times):
        call()
    return (time.process_time_ns() - start) / times / 1e9


def _timed(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call()
    return clock() - start


_CLOCKS = {False: time.perf_counter, True: time.process_time}


def _resident() -> int:
    """Returns the bytes of this process that are in memory, Python and its libraries among them."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    from interleaved import child_main as serve  # under its own name, so that its exceptions are those of the engines

    serve()
