# SPDX-License-Identifier: Apache-2.0
"""Two casts become one, or none, where the first loses nothing."""

import itertools

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from nndeploy.passes.merge_casts import keeps_every_number

TYPES = {
    np.dtype(name): getattr(ir.DataType, name.upper())
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16")
} | {
    np.dtype(np.float32): ir.DataType.FLOAT,
    np.dtype(np.float64): ir.DataType.DOUBLE,
    np.dtype(ml_dtypes.bfloat16): ir.DataType.BFLOAT16,
}


LIMITS = [0, 1, 2, 127, 128, 255, 256, 257, 2048, 2049, 32767, 65504, 65535, 2**24 + 1, 2**31 - 1, 2**53 + 1, 2**63 - 1]


def _numbers_at_the_limits(dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iub":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.array([n for n in (*LIMITS, *(-n for n in LIMITS), low, high) if low <= n <= high], dtype=dtype)
    info = ml_dtypes.finfo(dtype)
    numbers = [0, 1, -1, 1 + float(info.eps), info.max, info.tiny, info.smallest_subnormal]
    return np.array([float(number) for number in numbers]).astype(dtype)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(TYPES, 2)), ids=str)
def test_lossless_means_that_every_number_comes_back(source: np.dtype, target: np.dtype) -> None:
    """The table against brute force on the numbers at the limits of each type."""
    array = _numbers_at_the_limits(source)
    with np.errstate(all="ignore"):
        there = array.astype(target)
        comes_back = bool((there.astype(source) == array).all())
        stays_finite = target.kind in "iub" or bool(np.isfinite(there.astype(np.float64)).all())
    if keeps_every_number(TYPES[source], TYPES[target]):
        assert comes_back
        assert stays_finite
    elif source.kind not in "iu" or target.kind not in "iu":
        assert not (comes_back and stays_finite), "the table is stricter than it has to be"
