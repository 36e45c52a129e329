# SPDX-License-Identifier: Apache-2.0
"""A chain over several places as a pipeline: while a call is on one place, the next one is on the place before it.

    call n      cpu:0 | cpu:1
    call n + 1          cpu:0 | cpu:1

A stage is what neighbouring submodels do on one place; submodels on the CPU between two of one GPU belong to its stage.
Calls come from threads of their own (`Program.run`), and a place takes one of them at a time, so they follow each other
at the pace of the longest stage. Where a submodel does not need the one before it, each is a stage of its own, and two
of one call may be on a place at once, as without stages.

Laws: a call that has a stage waits for no other; one that waits for its next place has its values on the host, so if
each submodel needs the one before it, no place needs more memory than for one call.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import TypeAlias

from nndeploy.runtime.chain import Chain, Runnable, branch_edges
from nndeploy.runtime.gpu_stream import GpuStreams
from nndeploy.target.place_limits import CPU, is_gpu
from nndeploy.values.types import Value

OnStage: TypeAlias = Callable[[str, int], None]
"""Is told of the end of each stage: the name of its place, and when the stage began (`time.perf_counter_ns`)."""

ANY_CORE = nullcontext()

_ON_STAGE: ContextVar[OnStage | None] = ContextVar("on_stage", default=None)


@contextmanager
def stages_told(on_stage: OnStage) -> Iterator[None]:
    """Tells `on_stage` of the stages of all calls that this thread makes meanwhile; any thread may tell it."""
    token = _ON_STAGE.set(on_stage)
    try:
        yield
    finally:
        _ON_STAGE.reset(token)


class Turn:
    """A lock that goes to who has waited longest: calls keep their order, and none is overtaken again and again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[Lock] = deque()
        self._is_taken = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            mine.acquire()  # which who has the turn releases
        except BaseException:  # an interrupt
            with self._lock:
                is_waiting = mine in self._waiting
                if is_waiting:
                    self._waiting.remove(mine)
            if not is_waiting:
                self._hand_on()
            raise

    def __exit__(self, *_: object) -> None:
        self._hand_on()

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


class StageStep:
    """A stage as one step of a chain: its submodels run while no other call has the turn."""

    def __init__(
        self,
        place: str,
        turn: Turn,
        steps: Sequence[Runnable],
        outputs: Sequence[str],
        leaving: Sequence[str],
        gpu_streams: GpuStreams | None,
        cores: AbstractContextManager[object],
    ) -> None:
        """Takes the steps; `outputs` are those of theirs that others read, `leaving` those that go on on the host.

        Calls wait for their turn and run inside of `cores`.
        """
        made = {name for step in steps for name in step.outputs}
        self.inputs = tuple(dict.fromkeys(name for step in steps for name in step.inputs if name not in made))
        self.outputs = tuple(outputs)
        self.place = place
        self._turn, self._cores = turn, cores
        self._run = Chain(steps, outputs, one_by_one=True).run
        self._leaving, self._gpu_streams = tuple(leaving), gpu_streams

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs; `values` holds at least the inputs. Waits for its turn."""
        given = {name: values[name] for name in self.inputs}
        with self._cores, self._turn:
            began_ns, on_stage = time.perf_counter_ns(), _ON_STAGE.get()
            try:
                return self._left(self._run(given))
            finally:
                if on_stage is not None:
                    on_stage(self.place, began_ns)

    def _left(self, made: dict[str, Value]) -> dict[str, Value]:
        """Returns the outputs, with those on the host that go elsewhere; that ends the work of a GPU on them."""
        if self._gpu_streams is None:
            return made
        return made | self._gpu_streams.on_host({name: made[name] for name in self._leaving})


def staged(
    steps: Sequence[Runnable],
    places: Sequence[str],
    kept: Sequence[str],
    gpu_streams: GpuStreams | None,
    cores: AbstractContextManager[object] = ANY_CORE,
) -> list[StageStep]:
    """Returns the stages of a chain, of whose steps each runs on one of `places`; `kept` are its outputs.

    Calls are inside of `cores` while they are in a stage.
    """
    is_line = branch_edges(steps) is None
    owners = _with_islands(places) if is_line else list(places)
    turns = {place: Turn() for place in owners}
    begins = [i for i in range(len(steps)) if not is_line or i == 0 or owners[i] != owners[i - 1]]
    found = []
    for begin, end in zip(begins, [*begins[1:], len(steps)], strict=True):
        others = [(steps[i], owners[i]) for i in range(len(steps)) if not begin <= i < end]
        read = {name for step, _ in others for name in step.inputs}.union(kept)
        read_here = {name for step, place in others if place == owners[begin] for name in step.inputs}
        outputs = [name for step in steps[begin:end] for name in step.outputs if name in read]
        turn = turns[owners[begin]] if is_line else Turn()
        leaving = [name for name in outputs if name not in read_here]
        streams = gpu_streams if is_gpu(owners[begin]) else None
        found.append(StageStep(owners[begin], turn, steps[begin:end], outputs, leaving, streams, cores))
    return found


def _with_islands(places: Sequence[str]) -> list[str]:
    """Returns the places with the CPU between two steps of one GPU counted as that GPU."""
    found, last = list(places), dict[str, int]()
    for i, place in enumerate(places):
        if not is_gpu(place):
            continue
        first = last.get(place, i)
        if set(places[first + 1 : i]) <= {CPU}:
            found[first:i] = [place] * (i - first)
        last[place] = i
    return found
