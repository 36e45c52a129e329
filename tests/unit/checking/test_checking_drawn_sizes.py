# SPDX-License-Identifier: Apache-2.0
"""Sizes drawn from declared ranges: the ends, a prime, only what the ranges hold, nothing that takes for ever."""

import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.checking.drawn_sizes import MAX_SECONDS, Costs, affordable_sizes, drawn_sizes, within
from nndeploy.checking.open_sizes import open_sizes
from nndeploy.values.types import DimRange

ranges = st.dictionaries(
    st.sampled_from("NHW"),
    st.builds(
        lambda low, step, below, above: DimRange(low, low + step * (below + above), low + step * below, step),
        st.integers(0, 300), st.integers(1, 40), st.integers(0, 60), st.integers(0, 60),
    ),
    max_size=3,
)  # fmt: skip

PRODUCT = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,K] x) => (float[N,N] y) { [one] t = Transpose(x) [two] y = MatMul(x, t) }"""


def product() -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(PRODUCT))


@given(ranges, st.integers(1, 8))
def test_sizes_lie_in_their_ranges_no_choice_comes_twice_and_they_are_the_same_again(declared, count: int) -> None:
    drawn = drawn_sizes(declared, count)
    assert drawn == drawn_sizes(declared, count)
    assert 1 <= len(drawn) <= count
    for i, sizes in enumerate(drawn):
        assert sizes not in drawn[:i]
        assert sizes.keys() == declared.keys()
        assert all(declared[symbol].holds(size) for symbol, size in sizes.items())


def test_the_size_to_tune_for_comes_first_then_both_ends_and_a_prime() -> None:
    best, low, high, prime, *others = drawn_sizes({"N": DimRange(1, 4096, 64), "H": DimRange(224, 1280, 640, 32)}, 10)
    assert (best, low, high) == ({"N": 64, "H": 640}, {"N": 1, "H": 224}, {"N": 4096, "H": 1280})
    assert all(prime["N"] % factor for factor in range(2, prime["N"]))
    assert len(others) == 6


def test_a_range_of_few_sizes_gives_them_all_and_none_gives_one_choice() -> None:
    assert sorted(sizes["N"] for sizes in drawn_sizes({"N": DimRange(2, 6, 4, 2)}, 10)) == [2, 4, 6]
    assert drawn_sizes({}, 10) == [{}]


def test_sizes_that_cost_too_much_are_made_smaller_and_stay_in_their_ranges() -> None:
    limits = {"N": DimRange(1, 1001, 1), "M": DimRange(8, 8008, 8, 8)}
    found = within({"N": 1001, "M": 8008}, limits, lambda sizes: sizes["N"] * sizes["M"] <= 250_000)
    assert 200_000 < found["N"] * found["M"] <= 250_000
    assert limits["M"].holds(found["M"])
    assert within({"N": 5, "M": 8}, limits, lambda _: True) == {"N": 5, "M": 8}
    assert within({"N": 5, "M": 80}, limits, lambda _: False) == {"N": 1, "M": 8}


def test_a_model_is_checked_at_its_largest_sizes_where_that_does_not_take_too_long() -> None:
    costs = Costs(product(), open_sizes(product()))
    small = affordable_sizes(product(), {"N": DimRange(1, 100, 10), "K": DimRange(1, 100, 10)})
    assert {"N": 100, "K": 100} in small.sizes
    assert small.warnings == ()
    assert small.seconds == pytest.approx(max(costs(sizes) for sizes in small.sizes))
    large = affordable_sizes(product(), {"N": DimRange(1, 10**5, 10), "K": DimRange(1, 10**5, 10)})
    assert all(costs(sizes) <= MAX_SECONDS for sizes in large.sizes)
    assert max(sizes["N"] for sizes in large.sizes) > 1000
    (warning,) = large.warnings
    assert "the largest sizes (N = 100000, K = 100000) take too long to compare" in warning
