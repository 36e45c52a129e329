# SPDX-License-Identifier: Apache-2.0
"""Declared ranges -> the shapes that an engine must take."""

import onnx_ir as ir
import pytest
from nndeploy_tensorrt.engine import InputSizes
from nndeploy_tensorrt.sizes import input_sizes, unknown_size

from nndeploy.value_types import DimRange

N = {"N": DimRange(1, 8, 4)}


def value(*shape: int | str | None) -> ir.Value:
    return ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(shape))


def test_ranges_become_smallest_best_and_largest_shape() -> None:
    assert input_sizes(value("N", 3, "N"), N) == InputSizes("x", (1, 3, 1), (4, 3, 4), (8, 3, 8))


def test_fixed_input_needs_no_shapes() -> None:
    assert input_sizes(value(2, 3), N) is None
    assert input_sizes(value(), N) is None
    assert unknown_size(value(2, 3), {}) == ""


@pytest.mark.parametrize(
    ("dim", "said"),
    [
        ("M", "axis 1 (M) of 'x' has no range: declare it with --shape"),
        (None, "axis 1 of 'x' has no range: declare it with --shape"),
    ],
)
def test_size_without_a_range_is_named_with_what_to_do(dim: str | None, said: str) -> None:
    assert unknown_size(value("N", dim), N) == said


def test_declared_sizes_are_known() -> None:
    assert unknown_size(value("N", 3), N) == ""


def test_unknown_rank_is_said() -> None:
    assert unknown_size(ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT)), N) == "the rank of 'x' is not known"
