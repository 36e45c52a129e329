# SPDX-License-Identifier: Apache-2.0
"""A chain over several places: calls follow each other over these, one at a time on each, and none waits for ever."""

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nndeploy.runtime.chain import Chain
from nndeploy.runtime.chain_stages import Turn, staged, stages_told

SECONDS = 20.0
"""Who waits longer for another call has waited in vain."""


class Step:
    """Makes `output` of `inputs` with a function."""

    def __init__(self, inputs: str, output: str, function: Callable[..., Any] = lambda x: x + 1) -> None:
        self.inputs, self.outputs = tuple(inputs.split()), (output,)
        self._function = function

    def __call__(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.outputs[0]: self._function(*(values[name] for name in self.inputs))}


class Watched:
    """A function that adds 1, and knows how many calls are in it and where they were."""

    def __init__(self) -> None:
        self.num_inside, self.most_inside, self.seen = 0, 0, list[int]()
        self._lock = threading.Lock()

    def __call__(self, x: int) -> int:
        with self._lock:
            self.num_inside += 1
            self.most_inside = max(self.most_inside, self.num_inside)
            self.seen.append(x)
        time.sleep(x % 7 / 2000)
        with self._lock:
            self.num_inside -= 1
        return x + 1


def chain_of(steps: Sequence[Step], places: Sequence[str], kept: str) -> Callable[[Any], Any]:
    """Returns what runs a chain over places on a value `a`, and gives the value `kept`."""
    chain = Chain(staged(steps, places, [kept], None), [kept])
    return lambda a: chain.run({"a": a})[kept]


def test_the_next_call_enters_a_place_while_the_one_before_it_is_on_the_next_place() -> None:
    is_second_in = threading.Event()

    def first(x: int) -> int:
        if x == 1:
            is_second_in.set()
        return x

    def second(x: int) -> int:
        assert is_second_in.wait(SECONDS), "the second call never came to the first place"
        return x

    run = chain_of([Step("a", "b", first), Step("b", "c", second)], ["cpu:0", "cpu:1"], "c")
    with ThreadPoolExecutor(1) as other:
        one = other.submit(run, 0)
        assert run(1) == 1
        assert one.result(SECONDS) == 0


def test_a_place_takes_one_call_at_a_time_and_each_call_gets_its_own_values() -> None:
    watched = [Watched() for _ in range(3)]
    steps = [Step("a", "b", watched[0]), Step("b", "c", watched[1]), Step("c", "d", watched[2])]
    run = chain_of(steps, ["cuda:0", "cuda:1", "cpu"], "d")
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(0, 400, 10))) == [x + 3 for x in range(0, 400, 10)]
    assert [one.most_inside for one in watched] == [1, 1, 1]
    assert [sorted(one.seen) for one in watched] == [[x + i for x in range(0, 400, 10)] for i in range(3)]


def test_neighbours_on_one_place_are_one_stage_and_the_cpu_between_two_steps_of_a_gpu_is_of_it() -> None:
    is_on_gpu = list[bool]()
    turn = threading.Lock()

    def begin(x: int) -> int:
        is_on_gpu.append(turn.acquire(blocking=False))
        time.sleep(0.001)
        return x

    def end(x: int) -> int:
        turn.release()
        return x

    steps = [Step("a", "b", begin), Step("b", "c"), Step("c", "d", end), Step("d", "e")]
    stages = staged(steps, ["cuda:0", "cpu", "cuda:0", "cpu"], ["e"], None)
    assert [(one.place, one.inputs, one.outputs) for one in stages] == [
        ("cuda:0", ("a",), ("d",)), ("cpu", ("d",), ("e",)),
    ]  # fmt: skip
    chain = Chain(stages, ["e"])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda x: chain.run({"a": x}), range(20)))
    assert all(is_on_gpu), "no other call came between two steps of a stage"


def test_an_error_frees_the_place_for_others() -> None:
    def fails(x: int) -> int:
        if x % 3 == 0:
            raise ValueError(x)
        return x

    run = chain_of([Step("a", "b"), Step("b", "c", fails)], ["cpu:0", "cpu:1"], "c")

    def result(x: int) -> int | str:
        try:
            return run(x)
        except ValueError as err:
            return f"failed on {err}"

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(result, range(12), timeout=SECONDS))
    assert found == [f"failed on {x + 1}" if (x + 1) % 3 == 0 else x + 1 for x in range(12)]


def test_independent_steps_of_one_call_on_one_place_still_run_at_once() -> None:
    both = threading.Barrier(2)

    def meets(x: int) -> int:
        both.wait(SECONDS)
        return x

    steps = [Step("a", "b", meets), Step("a", "c", meets), Step("b c", "d", lambda b, c: b + c)]
    chain = Chain(staged(steps, ["cpu:0", "cpu:0", "cpu:1"], ["d"], None), ["d"])
    try:
        assert chain.run({"a": 2}) == {"d": 4}
    finally:
        chain.close()


@pytest.mark.parametrize("fails", [False, True])
def test_who_asks_is_told_of_the_stages_of_its_own_calls(fails: bool) -> None:
    told = list[str]()
    before = time.perf_counter_ns()

    def on_stage(place: str, began_ns: int) -> None:
        assert before <= began_ns <= time.perf_counter_ns()
        told.append(place)

    run = chain_of([Step("a", "b"), Step("b", "c", lambda x: 1 // x)], ["cpu:0", "cpu:1"], "c")
    run(1)
    with stages_told(on_stage):
        if fails:
            with pytest.raises(ZeroDivisionError):
                run(-1)
        else:
            run(1)
    run(1)
    assert told == ["cpu:0", "cpu:1"]


def waiting(turn: Turn, name: str, had: list[str]) -> threading.Thread:
    """Returns a thread that waits for its turn, and writes down that it had it."""

    def wait() -> None:
        with turn:
            had.append(name)

    before = len(turn._waiting)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    until = time.monotonic() + SECONDS
    while len(turn._waiting) == before and time.monotonic() < until:
        time.sleep(0.001)
    return thread


def test_the_turn_goes_to_who_has_waited_longest_and_not_to_who_had_it_last() -> None:
    turn, had = Turn(), list[str]()
    with turn:
        threads = [waiting(turn, name, had) for name in "abcd"]
    with turn:
        had.append("again")
    for thread in threads:
        thread.join(SECONDS)
    assert had == ["a", "b", "c", "d", "again"]


def test_who_is_interrupted_while_waiting_holds_up_nobody() -> None:
    turn, had = Turn(), list[str]()

    def interrupts(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupts)
    is_over = threading.Event()

    def holds() -> None:
        with turn:
            is_held.set()
            assert is_over.wait(SECONDS)

    is_held = threading.Event()
    holder = threading.Thread(target=holds, daemon=True)
    holder.start()
    assert is_held.wait(SECONDS)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(InterruptedError), turn:
            pass
    finally:
        signal.signal(signal.SIGALRM, before)
    behind = waiting(turn, "behind", had)
    is_over.set()
    behind.join(SECONDS)
    assert had == ["behind"]
