# SPDX-License-Identifier: Apache-2.0
"""A chain gives the same values as running its steps by hand, and frees what nobody needs."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.bundle.manifest import Submodel
from nndeploy.errors import BundleError, DataError, InputError, OtherSizesError
from nndeploy.runtime.chain import Chain, ChainStep
from nndeploy.runtime.other_sizes import NextVariant
from nndeploy.values.types import TensorType

I64 = TensorType("int64", ())


class Session:
    def __init__(self, run):
        self.run = run


def step(name, inputs, outputs, run, types=None):
    return ChainStep(Submodel(name, tuple(inputs), tuple(outputs), ()), Session(run), "fake", types or {})


def adder(name, inputs, output):
    """Returns a step: output = 1 + the sum of its inputs."""
    return step(name, inputs, [output], lambda values: {output: np.int64(1) + sum(values.values())})


def test_sizes_that_a_session_was_not_built_for_run_on_the_next_variant() -> None:
    opened = []

    class Next(Session):
        def close(self):
            opened.append("closed")

    def own(values):
        if values["x"] > 1:
            raise OtherSizesError("too large", where="x")
        return {"y": values["x"]}

    def following(values):
        if values["x"] > 3:
            raise OtherSizesError("too large for both", where="x")
        return {"y": -values["x"]}

    other = NextVariant(lambda: (opened.append("opened") or Next(following), "other"))
    submodel = Submodel("s0", ("x",), ("y",), ())
    with_other = ChainStep(submodel, Session(own), "fake", {}, next_variant=other)
    assert [with_other({"x": x})["y"] for x in (1, 2, 1, 3)] == [1, -2, 1, -3]
    with pytest.raises(InputError, match=r"s0 \(other\)"):
        with_other({"x": 4})
    other.close()
    assert opened == ["opened", "closed"]
    with pytest.raises(InputError, match=r"s0.*too large"):
        ChainStep(submodel, Session(own), "fake", {})({"x": 2})


def test_a_line_runs_on_the_callers_thread() -> None:
    seen = []
    steps = [
        step("a", ["x"], ["y"], lambda v: seen.append(threading.current_thread()) or {"y": v["x"] + 1}),
        step("b", ["x", "y"], ["z"], lambda v: seen.append(threading.current_thread()) or {"z": v["x"] * v["y"]}),
    ]
    chain = Chain(steps, ["z", "y"])
    assert chain.is_line
    assert chain.run({"x": 3}) == {"z": 12, "y": 4}
    assert set(seen) == {threading.current_thread()}


def test_independent_submodels_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def meets(output):
        def run(values):
            meeting.wait()
            return {output: values["x"]}

        return run

    chain = Chain(
        [step("a", ["x"], ["l"], meets("l")), step("b", ["x"], ["r"], meets("r")), adder("c", ["l", "r"], "y")], ["y"]
    )
    assert not chain.is_line
    assert chain.run({"x": 2}) == {"y": 5}
    chain.close()


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 8))
    steps = []
    for i in range(count):
        known = ["x", *(f"v{j}" for j in range(i))]
        steps.append((f"v{i}", draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))))
    kept = draw(st.lists(st.sampled_from([name for name, _ in steps]), min_size=1, unique=True))
    return steps, kept


@given(graphs())
def test_any_graph_gives_what_its_steps_give_by_hand(graph) -> None:
    steps, kept = graph
    want = {"x": 1}
    for name, inputs in steps:
        want[name] = 1 + sum(want[i] for i in inputs)
    chain = Chain([adder(name, inputs, name) for name, inputs in steps], kept)
    for _ in range(2):
        assert chain.run({"x": np.int64(1)}) == {name: want[name] for name in kept}
    chain.close()


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_value_is_freed_after_its_last_use(is_wide) -> None:
    class Tracked(np.ndarray):
        pass

    alive = []

    def make(values):
        value = np.zeros(3).view(Tracked)
        alive.append(weakref.ref(value))
        return {"big": value}

    def look(values):
        gc.collect()
        return {"y": alive[0]() is None}

    first = [step("w", ["x"], ["side"], lambda v: {"side": 0})] if is_wide else []
    rest = [
        step("a", ["x"], ["big"], make),
        step("b", ["big"], ["small"], lambda v: {"small": 1}),
        step("c", ["small"], ["y"], look),
    ]
    chain = Chain(first + rest, ["y"])
    assert chain.is_line is not is_wide
    assert chain.run({"x": 1}) == {"y": True}
    chain.close()


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_failure_names_submodel_and_backend(is_wide) -> None:
    def fail(values):
        raise RuntimeError("index 7\nis out of bounds")

    steps = [step("a", ["x"], ["y"], fail), adder("b", ["x"] if is_wide else ["y"], "z")]
    chain = Chain(steps, ["z"])
    assert chain.is_line is not is_wide
    with pytest.raises(DataError, match=r"submodel a \(fake\): failed: RuntimeError: index 7 is out of bounds"):
        chain.run({"x": 1})
    chain.close()


def test_after_a_failure_nothing_new_starts() -> None:
    started = []

    def fail(values):
        raise InputError("no")

    steps = [
        step("a", ["x"], ["l"], fail),
        step("b", ["x"], ["r"], lambda v: {"r": 1}),
        step("c", ["l"], ["y"], lambda v: started.append("c") or {"y": 1}),
        step("d", ["l", "r"], ["z"], lambda v: started.append("d") or {"z": 1}),
    ]
    chain = Chain(steps, ["y", "z"])
    for _ in range(3):
        with pytest.raises(InputError, match=r"submodel a \(fake\): no"):
            chain.run({"x": 1})
    assert started == []
    chain.close()


@pytest.mark.parametrize(("results", "message"), [
    ({}, "does not give the output 'y'"),
    ({"y": np.zeros(3, np.float64)}, r"output 'y' is float64 of rank 1, the manifest says float32\[3\]"),
    ({"y": np.zeros((1, 3), np.float32)}, "output 'y' is float32 of rank 2"),
    ({"y": [1]}, "output 'y' is a list"),
])  # fmt: skip
def test_a_submodel_that_is_not_as_declared_is_found_at_the_first_run(results, message) -> None:
    chain = Chain([step("a", ["x"], ["y"], lambda v: results, {"y": TensorType("float32", (3,))})], ["y"])
    for _ in range(2):
        with pytest.raises(BundleError, match=message):
            chain.run({"x": 1})


def test_strings_may_be_of_any_numpy_kind() -> None:
    types = {"y": TensorType("string", None)}
    chain = Chain([step("a", ["x"], ["y"], lambda v: {"y": np.array(["a"])}, types)], ["y"])
    assert chain.run({"x": 1})["y"].tolist() == ["a"]


def test_many_threads_may_run_a_wide_chain_at_once() -> None:
    chain = Chain([adder("a", ["x"], "l"), adder("b", ["x"], "r"), adder("c", ["l", "r"], "y")], ["y"])
    wrong = []

    def loop(start):
        wrong.extend(x for x in range(start, start + 50) if chain.run({"x": x}) != {"y": 2 * x + 3})

    threads = [threading.Thread(target=loop, args=(100 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain.close()
    assert wrong == []
