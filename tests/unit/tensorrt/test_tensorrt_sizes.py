# SPDX-License-Identifier: Apache-2.0
"""Declared ranges -> the shapes that an engine must take."""

import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_tensorrt.engine import InputSizes
from nndeploy_tensorrt.sizes import MAX_PROFILES, WIDE, input_sizes, pieces_of, profiles, unknown_size

from nndeploy.values.types import DimRange

N = {"N": DimRange(1, 8, 4)}


def value(*shape: int | str | None) -> ir.Value:
    return ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(shape))


def test_ranges_become_smallest_best_and_largest_shape() -> None:
    assert input_sizes(value("N", 3, "N"), N) == InputSizes("x", (1, 3, 1), (4, 3, 4), (8, 3, 8))


def test_fixed_input_needs_no_shapes() -> None:
    assert input_sizes(value(2, 3), N) is None
    assert input_sizes(value(), N) is None
    assert unknown_size(value(2, 3), {}) == ""


ranges = st.builds(
    lambda low, step, below, above: DimRange(low, low + step * (below + above), low + step * below, step),
    st.integers(0, 50), st.integers(1, 40), st.integers(0, 200), st.integers(0, 200),
)  # fmt: skip


@given(ranges, st.integers(1, MAX_PROFILES))
def test_every_size_of_a_range_lies_in_exactly_one_piece(limits: DimRange, most: int) -> None:
    pieces = pieces_of(limits, most)
    assert 1 <= len(pieces) <= most
    assert all(piece.min <= piece.best <= piece.max and piece.holds(piece.best) for piece in pieces)
    assert [piece.best for piece in pieces if piece.holds(limits.best)] == [limits.best]
    for size in range(limits.min, limits.max + 1):
        assert sum(piece.holds(size) for piece in pieces) == limits.holds(size)


def test_wide_ranges_are_cut_and_narrow_ones_are_not() -> None:
    assert [str(piece) for piece in pieces_of(DimRange(1, 8, 4), 4)] == ["1..8"]
    assert [str(piece) for piece in pieces_of(DimRange(224, 1280, 640, 32), 4)] == ["224..1280:32"]
    assert pieces_of(DimRange(1, 64, 64), 4) == [DimRange(1, 8, 2), DimRange(9, 64, 64)]
    found = pieces_of(DimRange(1, 4096, 100), 4)
    assert len(found) == 4
    assert all(piece.max <= WIDE * piece.min for piece in found)
    assert len(pieces_of(DimRange(1, 10**6, 1), 4)) == 4


def test_the_widest_range_is_cut_for_all_inputs_and_the_others_are_whole_in_every_profile() -> None:
    x, y, fixed = value("T", "N"), value("T"), value(3)
    found = profiles([x, y, fixed], {"N": DimRange(1, 8, 4), "T": DimRange(1, 64, 64)})
    assert found == (
        (InputSizes("x", (1, 1), (2, 4), (8, 8)), InputSizes("x", (1,), (2,), (8,))),
        (InputSizes("x", (9, 1), (64, 4), (64, 8)), InputSizes("x", (9,), (64,), (64,))),
    )
    assert profiles([fixed], {}) == ()
    assert len(profiles([x], {"N": DimRange(1, 8, 4), "T": DimRange(1, 64, 64)}, most=1)) == 1


@pytest.mark.parametrize(("dim", "said"), [("M", "axis 1 (M) of 'x' has no range: declare it with --shape"), (
    None, "axis 1 of 'x' has no range: declare it with --shape",
)])  # fmt: skip
def test_size_without_a_range_is_named_with_what_to_do(dim: str | None, said: str) -> None:
    assert unknown_size(value("N", dim), N) == said


def test_declared_sizes_are_known() -> None:
    assert unknown_size(value("N", 3), N) == ""


def test_unknown_rank_is_said() -> None:
    assert unknown_size(ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT)), N) == "the rank of 'x' is not known"
