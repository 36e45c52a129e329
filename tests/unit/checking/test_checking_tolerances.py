# SPDX-License-Identifier: Apache-2.0
"""The table of tolerances: every type has one, finer classes are never looser, and neighbours stay apart."""

import numpy as np
import pytest

from nndeploy.bundle.manifest import Tolerance
from nndeploy.checking.tolerances import OperatorClass, tolerance_for
from nndeploy.comparison.compare import compare_values
from nndeploy.values.types import DTYPES, numpy_dtype

EXACT = Tolerance(0.0, 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_finer_classes_are_never_looser(dtype: str) -> None:
    order = (OperatorClass.MOVES, OperatorClass.ROUNDED, OperatorClass.SUMS, OperatorClass.NETWORK)
    found = [tolerance_for(dtype, computed) for computed in order]
    assert [t.rtol for t in found] == sorted(t.rtol for t in found)
    assert [t.atol for t in found] == sorted(t.atol for t in found)
    assert tolerance_for(dtype) == found[-1]
    assert found[0] == EXACT


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "string"])
def test_what_is_not_rounded_is_exact(dtype: str) -> None:
    assert all(tolerance_for(dtype, computed) == EXACT for computed in OperatorClass)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4", "uint4", "int2", "uint2"])
def test_quantised_values_may_differ_by_one_step_and_not_by_two(dtype: str) -> None:
    want = np.zeros(3, numpy_dtype(dtype))
    one, two = (np.array([0, n, 0]).astype(numpy_dtype(dtype)) for n in (1, -2 if dtype == "int2" else 2))
    assert compare_values(one, want, tolerance_for(dtype)).ok
    assert not compare_values(two, want, tolerance_for(dtype)).ok


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_one_step_of_the_type_agrees_and_one_per_cent_of_float32_does_not(dtype: str) -> None:
    one = np.ones(1, numpy_dtype(dtype))
    bits = one.view(f"u{one.dtype.itemsize}")
    next_up = (bits + bits.dtype.type(1)).view(one.dtype)
    assert compare_values(next_up, one, tolerance_for(dtype, OperatorClass.ROUNDED)).ok
    tenth = (one.astype(np.float64) * 1.1).astype(one.dtype)
    assert not compare_values(tenth, one, tolerance_for(dtype)).ok


def test_float64_that_was_computed_in_float32_is_found_by_the_finer_classes() -> None:
    want = np.array([1 / 3])
    got = want.astype(np.float32).astype(np.float64)
    assert not compare_values(got, want, tolerance_for("float64", OperatorClass.FUNCTIONS)).ok
