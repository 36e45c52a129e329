# SPDX-License-Identifier: Apache-2.0
"""Samples share a call only where the bundle has a batch axis and its rows do not touch each other."""

import re

import numpy as np
import pytest

from nndeploy.bundle.manifest import Manifest, NamedType, Tolerance
from nndeploy.errors import InputError, UsageError
from nndeploy.runtime.batching import JoinedCalls, Proof, batch_sizes
from nndeploy.values.types import DimRange, SequenceType, TensorType


def floats(*sizes):
    return TensorType("float32", sizes)


ROWS, WIDE = floats("N", 3), floats("N", "K")


def manifest(inputs, outputs, ranges=None):
    return Manifest(
        "m", "0" * 64, tuple(NamedType(f"x{i}", kind) for i, kind in enumerate(inputs)),
        tuple(NamedType(f"y{i}", kind) for i, kind in enumerate(outputs)), (), {}, ranges=ranges or {},
        tolerances={"float32": Tolerance(1e-5, 1e-6)},
    )  # fmt: skip


class FakeProgram:
    """y0 = function(x0); keeps what it was called with. A fixed batch refuses other ones, as `Program` does."""

    rows_at_once = 1 << 31

    def __init__(self, function=lambda x: 2 * x, first=ROWS, last=ROWS, ranges=None):
        self.manifest = manifest([first], [last], ranges)
        self.calls = []
        self._function = function

    def run(self, inputs):
        x, size = inputs["x0"], self.manifest.inputs[0].type.shape[0]
        if isinstance(size, int) and len(x) != size:
            raise InputError(f"the first size is {len(x)}, not {size}")
        self.calls.append(x.tolist())
        return {"y0": self._function(x)}

    @property
    def rows(self):
        return [len(call) for call in self.calls]


def samples(count, rows=1):
    dice = np.random.default_rng(0)
    return [{"x0": dice.random((rows, 3), dtype=np.float32)} for _ in range(count)]


FIXED = {"first": floats(4, 3), "last": floats(4, 3)}


@pytest.mark.parametrize(("inputs", "outputs", "sizes"), [
    ([floats("N", 3)], [floats("N", 5)], "1..7"),
    ([floats("a", 3)], [floats("b", 3)], "1..2147483648"),
    ([floats(None, 3)], [floats(None)], "1..2147483648"),
    ([TensorType("float32", None)], [TensorType("float32", None)], "1..2147483648"),
    ([floats("N", 3), floats("N")], [floats("N")], "1..7"),
    ([floats(None), floats(None)], [floats(None)], "1..2147483648"),
    ([floats(4, 3)], [floats(4), floats(None)], "4..4"),
    ([floats(4, 3)], [floats("N")], ".*'y0' .* has no batch axis"),
    ([floats("N", 3)], [floats(3)], ".*'y0' .* has no batch axis"),
    ([floats("N", 3)], [floats()], ".*'y0' .* has no batch axis"),
    ([floats()], [floats("N")], "'x0' .* has no batch axis"),
    ([SequenceType(floats("N"))], [floats("N")], "'x0' .* has no batch axis"),
    ([floats("N"), floats("M")], [floats("N")], "the inputs differ in their first size"),
    ([floats("N"), floats(1)], [floats("N")], "the inputs differ in their first size"),
    ([], [floats("N")], "the inputs differ in their first size"),
])  # fmt: skip
def test_the_batch_axis_is_the_first_of_inputs_and_outputs(inputs, outputs, sizes) -> None:
    found = batch_sizes(manifest(inputs, outputs, {"N": DimRange(1, 7, 1)}))
    assert re.fullmatch(sizes + "(: this model takes no batches)?", str(found))
    assert isinstance(found, str) == ("batch" in str(found))


def test_joined_samples_get_what_they_get_alone() -> None:
    program = FakeProgram()
    calls = JoinedCalls(program, 8)
    given = [*samples(2), *samples(1, rows=3), *samples(2, rows=2)]
    assert calls.check(given) == ""
    program.calls.clear()
    assert calls.num_joined(given) == 4
    joined = calls.run(given[:4])
    assert program.rows == [7]
    for sample, outputs in zip(given[:4], joined, strict=True):
        np.testing.assert_array_equal(outputs["y0"], 2 * sample["x0"])


def test_a_call_stays_inside_the_bundle_s_range() -> None:
    calls = JoinedCalls(FakeProgram(ranges={"N": DimRange(1, 3, 2)}), 8)
    assert calls.most_rows == 3
    assert calls.num_joined(samples(5)) == 3


def test_without_a_batch_axis_every_sample_is_a_call() -> None:
    calls = JoinedCalls(FakeProgram(last=floats(3)), 8)
    assert calls.most_rows == 1
    assert calls.num_joined(samples(5)) == 1
    assert calls.check(samples(5)) == calls.refusal != ""


def test_samples_of_other_shapes_do_not_join() -> None:
    calls = JoinedCalls(FakeProgram(first=WIDE, last=WIDE), 8)
    wide = {"x0": np.ones((1, 4), np.float32)}
    assert calls.num_joined([*samples(2), wide]) == 2
    assert calls.num_joined([wide, *samples(2)]) == 1
    assert calls.num_joined([{"x0": [[1.0, 2.0, 3.0]]}] * 2) == 1
    assert calls.num_joined([{"x0": np.ones((0, 3), np.float32)}] * 2) == 1


@pytest.mark.parametrize("touching", [lambda x: np.cumsum(x, axis=0), lambda x: np.cumsum(x[::-1], axis=0)[::-1]])
def test_an_axis_along_which_rows_touch_is_no_batch_axis(touching) -> None:
    calls = JoinedCalls(FakeProgram(touching), 8)
    reason = calls.check(samples(2))
    assert reason.startswith("the model's output 'y0' of one record depends on the others in its batch: by up to 0.")
    assert calls.most_rows == 1


def test_the_proof_is_made_with_samples_that_differ_and_can_be_joined() -> None:
    one, other = samples(2)
    wide = {"x0": np.ones((1, 4), np.float32)}
    mean = FakeProgram(lambda x: x - x.mean(axis=0), WIDE, WIDE)
    assert "depends on the others" in JoinedCalls(mean, 8).check([one, one, wide, other])
    assert JoinedCalls(mean, 8).check([one, wide, one]) == "", "equal ones do not touch each other here"


def test_outputs_without_the_rows_of_the_inputs_cannot_be_taken_apart() -> None:
    calls = JoinedCalls(FakeProgram(lambda x: x[:1]), 8)
    with pytest.raises(UsageError, match=r"the output 'y0' of a batch of 2 is \(1, 3\): this model takes no batches"):
        calls.run(samples(2))
    assert "of a batch of 2" in calls.check(samples(2))
    assert calls.most_rows == 1


def test_a_batch_that_is_always_the_same_is_filled_with_the_last_row() -> None:
    program = FakeProgram(**FIXED)
    calls = JoinedCalls(program, 8)
    given = samples(3)
    assert calls.num_joined([*given, *given]) == 4
    for sample, outputs in zip(given, calls.run(given), strict=True):
        np.testing.assert_array_equal(outputs["y0"], 2 * sample["x0"])
    assert program.calls[0][2] == program.calls[0][3] == given[2]["x0"][0].tolist()
    (alone,) = calls.run(given[:1])
    np.testing.assert_array_equal(alone["y0"], 2 * given[0]["x0"])
    assert calls.check(given) == ""


def test_a_batch_that_is_always_the_same_may_not_mix_its_rows_either() -> None:
    calls = JoinedCalls(FakeProgram(lambda x: x - x.mean(axis=0), **FIXED), 8)
    assert "depends on the others" in calls.check(samples(2))
    assert calls.num_joined(samples(2)) == 1


def test_a_range_in_steps_is_filled_up_to_the_next_step() -> None:
    program = FakeProgram(ranges={"N": DimRange(2, 8, 2, step=3)})
    calls = JoinedCalls(program)
    assert (calls.most_rows, calls.num_joined(samples(9))) == (8, 8)
    for count in range(1, 9):
        given = samples(count)
        for sample, outputs in zip(given, calls.run(given), strict=True):
            np.testing.assert_array_equal(outputs["y0"], 2 * sample["x0"])
    assert program.rows == [2, 2, 5, 5, 5, 8, 8, 8]
    np.testing.assert_array_equal(calls.run(samples(1, rows=4))[0]["y0"], 2 * samples(1, rows=4)[0]["x0"])
    assert program.rows[-1] == 5


def test_a_range_that_begins_above_one_is_filled_up_to_its_begin() -> None:
    program = FakeProgram(ranges={"N": DimRange(2, 3, 2)})
    JoinedCalls(program).run(samples(1))
    assert program.rows == [2]


def test_who_shares_a_proof_does_not_make_it_again() -> None:
    proof, given = Proof(), samples(3)
    programs = [FakeProgram(), FakeProgram()]
    for program in programs:
        calls = JoinedCalls(program, proof=proof)
        for _ in range(2):
            calls.prove(given, calls.run(given))
    assert [program.rows for program in programs] == [[3, 1, 1, 3], [3, 3]]


def test_equal_samples_prove_nothing() -> None:
    one, other = samples(2)
    program = FakeProgram(lambda x: x - x.mean(axis=0) + x[:1])
    calls = JoinedCalls(program)
    calls.prove([one, one], calls.run([one, one]))
    assert program.rows == [2, 1]
    with pytest.raises(UsageError, match="depends on the others"):
        calls.prove([one, one, other], calls.run([one, one, other]))


def test_no_more_rows_are_joined_than_the_chain_was_built_for():
    program = FakeProgram()
    program.rows_at_once = 3
    calls = JoinedCalls(program, 8)
    assert (calls.most_rows, calls.num_joined(samples(5))) == (3, 3)
