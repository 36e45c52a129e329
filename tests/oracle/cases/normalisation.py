# SPDX-License-Identifier: Apache-2.0
"""Cases of normalisations and losses."""

from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np

from oracle.cases.case import Case, Fixed, floats, integers, one

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
IN_FLOAT32 = 1e9  # float64 values that are computed in float32, as stash_type says: 1e-5 of them


def cases() -> Iterator[Case]:
    for opset, attributes in (
        (1, {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}), (6, {"is_test": 1}), (7, {}), (9, {}), (14, {}),
        (15, {}),
    ):  # fmt: skip
        yield one("BatchNormalization", opset, floats(2, 3, 2, 2), *_statistics(3), epsilon=0.01, **attributes)
    yield one("BatchNormalization", 7, floats(2, 3, 2), *_statistics(3, 2), spatial=0)
    yield one("BatchNormalization", 15, floats(2, 3), *_statistics(3))
    yield one("BatchNormalization", 15, floats(4), *_statistics(1), note="rank 1")
    for opset in (14, 15):
        yield one(
            "BatchNormalization", opset, floats(3, 2, 2), *_statistics(2), training_mode=1, momentum=0.75, outputs=3
        )
    yield one(
        "BatchNormalization", 15, floats(2, 3, 2, dtype=F16), *(Fixed(v.value.astype(F16)) for v in _statistics(3))
    )
    yield one("BatchNormalization", 15, floats(2, 3, 2, dtype=F16), *_statistics(3), note="statistics of another type")
    yield one(
        "BatchNormalization", 9, floats(2, 3, 2, dtype=F64), *(Fixed(v.value.astype(F64)) for v in _statistics(3))
    )
    yield one(
        "BatchNormalization", 15, floats(2, 3, 2), *(v.value for v in _statistics(3)), note="statistics are inputs"
    )
    for opset, shape in ((1, (2, 3, 4, 2)), (6, (2, 3, 4)), (22, (1, 2, 3, 2, 2))):
        yield one("InstanceNormalization", opset, floats(*shape), Fixed(floats(shape[1])), Fixed(floats(shape[1])))
    yield one(
        "InstanceNormalization", 6, floats(2, 3, 5, dtype=F64), Fixed(floats(3, dtype=F64)),
        Fixed(floats(3, dtype=F64)), epsilon=0.5,
    )  # fmt: skip
    yield one("GroupNormalization", 18, floats(2, 4, 3), Fixed(floats(2)), Fixed(floats(2)), num_groups=2)
    yield one("GroupNormalization", 21, floats(2, 4, 3), Fixed(floats(4)), Fixed(floats(4)), num_groups=2)
    yield one(
        "GroupNormalization", 21, floats(2, 4, 3, 2, dtype=F16), Fixed(floats(4, dtype=F16)),
        Fixed(floats(4, dtype=F16)), num_groups=4,
    )  # fmt: skip
    for axis, bias in product((-1, 1, 0), (True, False)):
        shape = (2, 3, 4)[axis:]
        yield one(
            "LayerNormalization", 17, floats(2, 3, 4), Fixed(floats(*shape)),
            *([Fixed(floats(*shape))] if bias else []), axis=axis, epsilon=0.01, outputs=3,
        )  # fmt: skip
    yield one("LayerNormalization", 17, floats(2, 3, 4), floats(1), floats(3, 1), note="broadcast scale and bias")
    yield one(
        "LayerNormalization", 17, floats(2, 3, 4), Fixed(floats(4)), Fixed(floats(4)), stash_type=1, outputs=["y"]
    )
    for dtype in (F64, F16, BF16):
        steps = IN_FLOAT32 if dtype is F64 else 1.0
        scale, bias = Fixed(floats(4, dtype=dtype)), Fixed(floats(4, dtype=dtype))
        yield one("LayerNormalization", 17, floats(2, 3, 4, dtype=dtype), scale, bias, outputs=3, steps=steps)
        yield one("RMSNormalization", 23, floats(2, 3, 4, dtype=dtype), scale, steps=steps)
    for axis in (-1, 1, 0):
        yield one("RMSNormalization", 23, floats(2, 3, 4), Fixed(floats(*(2, 3, 4)[axis:])), axis=axis, epsilon=0.01)
    for p, axis, opset in product((1, 2), (0, -1), (1, 22)):
        yield one("LpNormalization", opset, floats(3, 4), p=p, axis=axis)
    yield one("LpNormalization", 22, np.zeros((2, 3), F32), note="zeros")
    yield one("MeanVarianceNormalization", 13, floats(2, 3, 2, 2))
    yield one("MeanVarianceNormalization", 9, floats(2, 3, 4), axes=[-1, 0])
    yield from _losses()


def _statistics(*shape: int) -> list[Fixed]:
    return [Fixed(floats(*shape)), Fixed(floats(*shape)), Fixed(floats(*shape)), Fixed(floats(*shape, low=1))]


def _losses() -> Iterator[Case]:
    labels = np.array([[0, 2], [1, 2]])
    for name, opset in (
        ("NegativeLogLikelihoodLoss", 13), ("SoftmaxCrossEntropyLoss", 13), ("NegativeLogLikelihoodLoss", 22),
        ("SoftmaxCrossEntropyLoss", 12),
    ):  # fmt: skip
        for reduction, weighted in product(("none", "mean", "sum"), (False, True)):
            weights = [Fixed(floats(3, low=1))] if weighted else []
            yield one(name, opset, floats(2, 3, 2), labels, *weights, reduction=reduction)
            yield one(name, opset, floats(2, 3, 2), labels, *weights, reduction=reduction, ignore_index=2)
    yield one("SoftmaxCrossEntropyLoss", 13, floats(3, 4), integers(3, low=0, high=4, dtype=np.int32), outputs=2)
    yield one("SoftmaxCrossEntropyLoss", 13, floats(3, 4), np.array([0, -1, 2]), ignore_index=-1, outputs=2)
