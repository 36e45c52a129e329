# SPDX-License-Identifier: Apache-2.0
"""Batches, parts of records and state from part to part give what one by one gives."""

import threading
import time
from collections import deque

import numpy as np
import pytest
from streaming import Make, Program, Sink, pipeline, plan_of, stream, x_to_y

from nndeploy.errors import InputError, UsageError
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.model_fit import first_state
from nndeploy.values.types import DimRange, SequenceType, TensorType

ROWS = TensorType("float32", ("N", 2))


def rows(*values):
    return np.array([[value, 1] for value in values], np.float32)


def doubling(**options) -> Program:
    def run(x):
        if (x[:, 0] == 13).any():
            raise InputError("unlucky")
        return {"y": x * 2}

    return Program(run, **({"inputs": {"x": ROWS}, "outputs": {"y": ROWS}} | options))


def batched(program, values, batch, delay_ns=50_000_000, **options):
    plan = plan_of(pipeline(runner=x_to_y(batch=batch, batch_delay_ns=delay_ns)), in_flight=32)
    sink, _ = stream(plan, {"p": program}, values, **options)
    return [None if one.outputs is None else one.outputs["y"][:, 0].tolist() for one in sink.outcomes], sink


def test_records_that_wait_are_run_together() -> None:
    program = doubling()
    found, _ = batched(program, [rows(i) for i in range(10)], 4)
    assert found == [[2 * i] for i in range(10)]
    assert [len(call["x"]) for call in program.calls] == [4, 1, 1, 4, 2], "the first two are run alone too, once"


def test_a_batch_waits_no_longer_than_it_may() -> None:
    def slowly():
        for i, one in enumerate(items):
            yield one
            if i == 0:
                time.sleep(0.3)

    from streaming import items_of

    items = list(items_of([rows(0), rows(1)]))
    program = doubling()
    batched(program, slowly(), 8, delay_ns=1_000_000)
    assert [len(call["x"]) for call in program.calls] == [1, 1]


def test_one_bad_record_costs_nobody_else_its_result() -> None:
    found, sink = batched(doubling(), [rows(1), rows(13), rows(3)], 3)
    assert found == [[2], None, [6]]
    assert str(sink.outcomes[1].error) == "item 1: unlucky"
    assert sink.outcomes[1].stage == "p: runner"


def test_records_of_different_shapes_are_not_joined() -> None:
    wide = TensorType("float32", ("N", None))
    program = Program(lambda x: {"y": x * 2}, {"x": wide}, {"y": wide})
    values = [rows(1), np.ones((1, 3), np.float32), rows(2)]
    found, _ = batched(program, values, 3)
    assert found == [[2], [2], [4]]
    assert sorted(call["x"].shape for call in program.calls) == [(1, 2), (1, 2), (1, 3), (2, 2)]


def test_a_batch_that_is_always_the_same_is_filled_up() -> None:
    fixed = TensorType("float32", (4, 2))
    program = doubling(inputs={"x": fixed}, outputs={"y": fixed})
    found, _ = batched(program, [rows(i) for i in range(6)], 4)
    assert found == [[2 * i] for i in range(6)]
    assert [call["x"].shape for call in program.calls] == [(4, 2)] * 4
    found, _ = batched(program, [rows(1, 2, 3), rows(4, 5), rows(13), rows(6)], 4)
    assert found == [[2, 4, 6], [8, 10], None, [12]]


@pytest.mark.parametrize(("inputs", "outputs", "ranges", "message"), [
    ({"x": TensorType("float32", ())}, {"y": ROWS}, {}, r"'x' \(float32\[\]\) has no batch axis"),
    ({"x": SequenceType(ROWS)}, {"y": ROWS}, {}, "has no batch axis"),
    ({"x": ROWS}, {"y": TensorType("float32", (1,))}, {}, "'y' .* has no batch axis"),
    ({"x": ROWS, "z": TensorType("float32", ("M",))}, {"y": ROWS}, {}, "differ in their first size"),
    ({"x": TensorType("float32", (2, 2))}, {"y": TensorType("float32", (2, 2))}, {}, "always 2"),
    ({"x": ROWS}, {"y": ROWS}, {"N": DimRange(1, 3, 1)}, "batch is 4, the model's batch is 1..3"),
])  # fmt: skip
def test_a_model_that_takes_no_batches_says_why(inputs, outputs, ranges, message) -> None:
    program = Program(lambda **inputs: inputs, inputs, outputs, ranges)
    plan = plan_of(pipeline(runner=RunnerPlan({name: name for name in inputs}, {"y": "y"}, batch=4)))
    with pytest.raises(UsageError, match=message):
        stream(plan, {"p": program}, [])


def test_a_call_never_has_more_rows_than_the_bundle_allows() -> None:
    program = doubling(ranges={"N": DimRange(1, 4, 1)})
    found, _ = batched(program, [rows(1, 2, 3), rows(4, 5), rows(6)], 3)
    assert found == [[2, 4, 6], [8, 10], [12]]
    assert max(len(call["x"]) for call in program.calls) <= 4


def test_outputs_without_rows_end_the_stream_and_are_not_given_to_the_wrong_record() -> None:
    program = doubling(outputs={"y": TensorType("float32", None)})
    program.function = lambda x: {"y": x.sum(axis=0)[:1]}
    with pytest.raises(UsageError, match=r"the output 'y' of a batch of 2 is \(1,\): this model takes no batches"):
        batched(program, [rows(1), rows(2)], 2)


@pytest.mark.parametrize("sizes", [("N", 2), (3, 2)])
@pytest.mark.parametrize("equal_ones", [0, 6])
def test_a_model_whose_rows_touch_ends_the_stream_before_a_wrong_result(sizes, equal_ones) -> None:
    """Equal records are right by chance: their results may be written, and the next ones are looked at."""
    kind = TensorType("float32", sizes)
    program = Program(lambda x: {"y": x - x.mean(axis=0) + x[:1]}, {"x": kind}, {"y": kind})
    values = [rows(1)] * equal_ones + [rows(2), rows(5), rows(7)]
    sink = Sink()
    plan = plan_of(pipeline(runner=x_to_y(batch=3, batch_delay_ns=50_000_000)), in_flight=32)
    message = "p: runner: the model's output 'y' of one record depends on the others in its batch: by up to"
    with pytest.raises(UsageError, match=message) as caught:
        stream(plan, {"p": program}, values, sink)
    assert caught.value.hint == "leave out batch"
    assert len(sink.outcomes) <= equal_ones
    assert all(one.outputs["y"][0, 0] == 1 for one in sink.outcomes)
    assert sink.ending == "discarded"


def test_a_program_is_seen_once_to_leave_the_rows_of_a_batch_alone() -> None:
    program = doubling()
    for num_alone in (2, 0):
        program.calls.clear()
        found, _ = batched(program, [rows(1), rows(2), rows(3)], 3)
        assert found == [[2], [4], [6]]
        assert [len(call["x"]) for call in program.calls] == [3, *[1] * num_alone]


def parts_plan(steps=(), workers=1, **runner):
    post = ([([Make(("y",), ("z",), lambda y: y + 1)], workers)]) if steps else ()
    loaders = [([Make(("part",), ("x",), lambda part: part * 10)], workers)]
    return pipeline(loaders=loaders, runner=x_to_y(**runner), posts=post, each="list", part="part")


@pytest.mark.parametrize("workers", [1, 3])
def test_parts_come_back_as_lists_in_their_order(workers) -> None:
    plan = plan_of(parts_plan(steps=True, workers=workers, devices=("cpu",) * workers), fields=("list", "y", "z"))
    program = Program(lambda x: {"y": x + 1})
    values = [{"list": list(range(count))} for count in (3, 0, 1, 50)]
    sink, _ = stream(plan, {"p": [program] * workers}, values)
    for outcome, value in zip(sink.outcomes, values, strict=True):
        assert outcome.outputs["y"] == [part * 10 + 1 for part in value["list"]]
        assert outcome.outputs["z"] == [part * 10 + 2 for part in value["list"]]


def test_one_part_that_fails_makes_the_record_fail_once() -> None:
    def run(x):
        if x == 20:
            raise InputError("unlucky")
        return {"y": x}

    sink, summary = stream(
        plan_of(parts_plan(workers=2)), {"p": Program(run)}, [{"list": [1, 2, 3]}, {"list": [4]}, {"list": 5}]
    )
    assert summary.num_failed == 2
    assert str(sink.outcomes[0].error) == "item 0, part 1: unlucky"
    assert sink.outcomes[1].outputs == {"y": [40]}
    assert "is no list but int" in str(sink.outcomes[2].error)


def test_a_record_of_very_many_parts_does_not_hold_them_all_at_once() -> None:
    alive, most, lock = [0], [0], threading.Lock()

    class Counted:
        def __init__(self):
            with lock:
                alive[0] += 1
                most[0] = max(most[0], alive[0])

        def __del__(self):
            with lock:
                alive[0] -= 1

    loaders = [([Make(("part",), ("x",), lambda part: Counted())], 2)]
    plan = plan_of(pipeline(loaders=loaders, runner=x_to_y(), each="list", part="part", keep=("y",)))
    program = Program(lambda x: {"y": 1}, calls=deque(maxlen=1))
    sink, _ = stream(plan, {"p": program}, [{"list": list(range(3000))}])
    assert sink.outcomes[0].outputs["y"] == [1] * 3000
    assert most[0] < 100


@pytest.mark.parametrize("workers", [1, 3])
def test_state_goes_from_part_to_part_of_the_same_record(workers) -> None:
    inputs = {"x": TensorType("int64", ()), "state": TensorType("int64", (1, "N"))}
    program = Program(
        lambda x, state: {"y": x + state[0, 0], "next": state + x}, inputs, {"y": inputs["x"], "next": inputs["state"]}
    )
    plan = plan_of(parts_plan(workers=workers, devices=("cpu",) * workers, carry={"next": "state"}))
    values = [{"list": list(range(count))} for count in (40, 3, 0, 25)]
    sink, _ = stream(plan, {"p": [program] * workers}, values)
    for outcome, value in zip(sink.outcomes, values, strict=True):
        assert outcome.outputs["y"] == [int(y) for y in np.cumsum(value["list"]) * 10]


def test_a_part_that_fails_ends_what_would_follow_from_it() -> None:
    def run(x, state):
        if x == 20:
            raise InputError("unlucky")
        return {"y": x, "next": state}

    scalar = TensorType("int64", ())
    program = Program(run, {"x": scalar, "state": scalar}, {"y": scalar, "next": scalar})
    sink, _ = stream(plan_of(parts_plan(carry={"next": "state"})), {"p": program}, [{"list": [1, 2, 3]}, {"list": [3]}])
    assert str(sink.outcomes[0].error) == "item 0, part 1: unlucky"
    assert [call["x"] for call in program.calls] == [10, 20, 30]
    assert sink.outcomes[1].outputs == {"y": [30]}


def test_state_begins_with_zeros_of_its_type() -> None:
    def state(value_type, after=None):
        program = Program(None, {"x": value_type}, {"y": after or value_type})
        return first_state(RunnerPlan(None, {}, carry={"y": "x"}), program.manifest, "x")

    found = state(TensorType("float32", (2, "N", None, 128)))
    assert found.shape == (2, 1, 1, 128)
    assert found.dtype == np.float32
    assert not found.any()
    for other in (SequenceType(ROWS), TensorType("float32", None), TensorType("string", ())):
        with pytest.raises(UsageError, match="cannot be carried"):
            state(other)
    assert state(TensorType("float32", ("N", "past", 3)), TensorType("float32", ("N", "past + t", 3))).shape == (
        1, 0, 3,
    )  # fmt: skip
    for after in ("all", None):  # a cache by its name, whatever the output's size is called
        assert state(TensorType("float32", ("N", "past", 3)), TensorType("float32", ("N", after, 3))).shape == (1, 0, 3)
    assert state(TensorType("float32", ("N", "t", 3)), TensorType("float32", ("N", "all", 3))).shape == (1, 1, 3)
    assert state(TensorType("float32", ("N", "past", 3))).shape == (1, 1, 3)
