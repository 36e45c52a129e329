# SPDX-License-Identifier: Apache-2.0
"""Samples share a call only where the bundle has a batch axis and its rows do not touch each other."""

import dataclasses

import numpy as np
import pytest
from loadgen_programs import FakeProgram, manifest, samples

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import BundleError
from nndeploy.loadgen.batching import JoinedCalls, batch_sizes
from nndeploy.value_types import DimRange, TensorType


@pytest.mark.parametrize(
    ("first", "last", "has_batch"),
    [
        (("N", 3), ("N", 5), True),
        (("unk_1", 3), ("unk_2", 3), True),
        ((None, 3), (None, 3), True),
        ((1, 3), (1, 3), False),
        (("N", 3), (3,), False),
        (("N", 3), (), False),
        (("N", 3), None, False),
    ],
)
def test_the_batch_axis_is_the_first_of_inputs_and_outputs(first, last, has_batch) -> None:
    assert (batch_sizes(manifest(first, last)) is not None) == has_batch


@pytest.mark.parametrize(
    ("one", "other", "has_batch"), [("N", "N", True), ("N", "M", False), (None, None, False), ("N", 1, False)]
)
def test_inputs_must_share_the_batch_axis(one, other, has_batch) -> None:
    made = manifest((one, 3), ("N", 3))
    second = NamedType("z", TensorType("float32", (other, 3)))
    assert (batch_sizes(dataclasses.replace(made, inputs=(*made.inputs, second))) is not None) == has_batch


def test_joined_samples_get_what_they_get_alone() -> None:
    program = FakeProgram()
    calls = JoinedCalls(program, 8)
    given = [*samples(2), *samples(1, rows=3), *samples(2, rows=2)]
    assert calls.check(given) == ""
    program.rows.clear()
    assert calls.num_joined(given) == 4
    joined = calls.run(given[:4])
    assert program.rows == [7]
    for sample, outputs in zip(given[:4], joined, strict=True):
        np.testing.assert_array_equal(outputs["y"], 2 * sample["x"])


def test_a_call_stays_inside_the_bundle_s_range() -> None:
    calls = JoinedCalls(FakeProgram(ranges={"N": DimRange(1, 3, 2)}), 8)
    assert calls.most_rows == 3
    assert calls.num_joined(samples(5)) == 3


def test_without_a_batch_axis_every_sample_is_a_call() -> None:
    calls = JoinedCalls(FakeProgram(first=(1, 3), last=(1, 3)), 8)
    assert calls.most_rows == 1
    assert calls.num_joined(samples(5)) == 1


def test_samples_of_other_shapes_do_not_join() -> None:
    calls = JoinedCalls(FakeProgram(first=("N", "K"), last=("N", "K")), 8)
    wide = {"x": np.ones((1, 4), np.float32)}
    assert calls.num_joined([*samples(2), wide]) == 2
    assert calls.num_joined([wide, *samples(2)]) == 1
    assert calls.num_joined([{"x": [[1.0, 2.0, 3.0]]}] * 2) == 1


def test_an_axis_along_which_rows_touch_is_no_batch_axis() -> None:
    calls = JoinedCalls(FakeProgram(lambda x: np.cumsum(x, axis=0)), 8)
    assert calls.check(samples(2)) == "output 'y' of a sample differs when another one is in the same call"
    assert calls.most_rows == 1


def test_outputs_without_the_rows_of_the_inputs_cannot_be_taken_apart() -> None:
    calls = JoinedCalls(FakeProgram(lambda x: x[:1]), 8)
    with pytest.raises(BundleError, match=r"'y' has shape \(1, 3\) for 2 rows"):
        calls.run(samples(2))
    assert "for 2 rows of input" in calls.check(samples(2))
    assert calls.most_rows == 1
