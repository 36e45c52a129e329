# SPDX-License-Identifier: Apache-2.0
"""Operators along an axis refuse what does not fit: sizes, counts, types and numbers out of range."""

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.expressions import operand
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.normalisation import InstanceNorm, Normalise
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.tensors import Layout, Tensor

X, WHOLE = Tensor("x", (3, 4, 5)), Tensor("x", (3, 4, 5), element="int64")
LRN = {"window": 3, "alpha": 0.1, "beta": 0.75, "bias": 1.0}


def _along(kind: str, shape: tuple[int, ...], element: str = "fp32", x: Tensor = X, **numbers: float) -> AlongAxis:
    return AlongAxis(Tensor("y", shape, element=element), x, kind, 3, 4, 5, numbers)


@every_level
@pytest.mark.parametrize(
    "step",
    [
        *(AlongAxis(Tensor("y", (3, 5)), X, "reduce_sum", *sizes) for sizes in ((3, 4, 4), (3, 0, 5), (-3, -4, 5))),
        AlongAxis(Tensor("y", (3, 5)), X, "reduce_max", 2**40, 4, 2**40),
        _along("reduce_mean", (3, 6)),
        _along("reduce_sum", (3, 5), "int64"),
        _along("reduce_l2", (3, 5), "int64", WHOLE),
        _along("softmax", (3, 4, 6)),
        _along("softmax", (3, 4, 5), "int64", WHOLE),
        _along("arg_max", (3, 5), is_last=0),
        _along("arg_max", (3, 5), "int64", is_last=2),
        _along("arg_min", (3, 1, 4), "int64", is_last=0),
        _along("hardmax", (3, 4, 5), "int64"),
        _along("cumulate", (3, 4, 5), is_exclusive=0, is_reverse=3),
        _along("cumulate", (3, 4, 5), "int64", is_exclusive=0, is_reverse=0),
        _along("top_places", (3, 5, 5), "int64", is_smallest=0),
        _along("top_places", (3, 1), "int64", is_smallest=0),
        _along("top_places", (3, 2, 5), is_smallest=0),
        _along("lrn", (3, 4, 5), **{**LRN, "window": 0}),
        _along("lrn", (3, 4, 5), **{**LRN, "window": 257}),
        _along("lrn", (3, 4, 5), **{**LRN, "alpha": 1e300}),
        _along("lrn", (3, 4, 5), x=WHOLE, **LRN),
        Normalise(Tensor("y", X.shape), X, "standard", 12, 5, 1, parts=2),
        Normalise(Tensor("y", X.shape), X, "standard", 12, 5, 1, parts=0),
        Normalise(Tensor("y", X.shape), X, "l2", 12, 5, 1, scale=X, parts=5),
        Normalise(Tensor("y", X.shape), X, "rms", 12, 5, 1, bias=X, groups=2**40, parts=5),
        Normalise(Tensor("y", X.shape), X, "rms", 12, 5, 1, epsilon=1e300),
        Normalise(Tensor("y", X.shape, element="int64"), WHOLE, "rms", 12, 5, 1),
    ],
)
def test_what_does_not_fit_is_refused(level: str, step: NativeStep) -> None:
    x = step.inputs[0]
    array = np.zeros((3, 4, 5), np.float32 if x.element == "fp32" else np.int64)
    with pytest.raises(RefusedError):
        run_plan(level, plan_of([step], [x], [step.output]), [array])


@every_level
@pytest.mark.parametrize(
    ("layout", "out", "scale", "bias", "end"),
    [
        (Layout.PLAIN, (1, 18, 2, 3), (18,), (18,), None),
        (Layout.BLOCKED, (1, 18, 3, 2), (18,), (18,), None),
        (Layout.BLOCKED, (1, 18, 2, 3), (17,), (18,), None),
        (Layout.BLOCKED, (1, 18, 2, 3), (18,), (2, 18), None),
        (Layout.BLOCKED, (1, 18, 2, 3), (18,), (18,), Epilogue(operand(2), channel=np.zeros(16, np.float32))),
    ],
)
def test_channels_that_do_not_fit_are_refused(
    level: str,
    layout: Layout,
    out: tuple[int, ...],
    scale: tuple[int, ...],
    bias: tuple[int, ...],
    end: Epilogue | None,
) -> None:
    x, image = Tensor("x", (1, 18, 2, 3)), Tensor("image", (1, 18, 2, 3), layout)
    made, result = Tensor("made", out, Layout.BLOCKED), Tensor("y", out)
    numbers = [Tensor("s", scale), Tensor("b", bias)]
    norm = InstanceNorm(made, x if layout is Layout.PLAIN else image, *numbers, 1e-5, end or Epilogue())
    steps: list[NativeStep] = [] if layout is Layout.PLAIN else [Convert(image, x)]
    plan = plan_of([*steps, norm, Convert(result, made)], [x, *numbers], [result])
    with pytest.raises(RefusedError):
        run_plan(level, plan, [np.zeros(one.shape, np.float32) for one in (x, *numbers)])
