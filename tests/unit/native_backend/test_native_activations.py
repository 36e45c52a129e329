# SPDX-License-Identifier: Apache-2.0
"""Epilogues that the templates know, however they are written; others are left to the plain kernels."""

import numpy as np
import pytest
from nndeploy_native.activations import Activation, activation_of
from nndeploy_native.expressions import Expression, const, operand
from nndeploy_native.isa import ISAS
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.step import Epilogue, Machine
from nndeploy_native.tensors import Layout, Tensor

X, R, S = operand(0), operand(1), operand(2)
RESIDUAL = Tensor("r", (1, 4, 2, 2), Layout.BLOCKED)


def _clip(x: Expression, low: float, high: float) -> Expression:
    return ("min", ("max", x, const(low)), const(high))


KNOWN: dict[Expression, Activation] = {
    X: Activation(),
    ("relu", X): Activation("RELU"),
    _clip(X, 0, 6): Activation("CLIP", 0, 6),
    _clip(X, 0, 1): Activation("CLIP", 0, 1),
    ("mul", ("sigmoid", X), X): Activation("SILU"),
    _clip(("add", ("mul", X, const(0.2)), const(0.5)), 0, 1): Activation("HARD_SIGMOID", 0.2, 0.5),
    ("mul", X, _clip(("add", ("mul", X, const(0.25)), const(0.5)), 0, 1)): Activation("HARD_SWISH", 0.25, 0.5),
    ("div", ("mul", X, _clip(("add", X, const(3)), 0, 6)), const(6)): Activation("HARD_SWISH", 1 / 6, 0.5),
    ("where", ("less", X, const(0)), ("mul", X, const(0.1)), X): Activation("LEAKY_RELU", 0.1),
    ("where", ("less", X, const(0)), ("mul", X, S), X): Activation("PRELU"),
}
UNKNOWN: list[Expression] = [
    ("exp", X),
    ("mul", X, const(2)),
    ("min", X, const(6)),
    _clip(("add", ("mul", X, const(0.2)), const(0.5)), 0, 2),
    ("div", ("mul", X, _clip(("add", X, const(3)), 0, 6)), const(5)),
    ("where", ("less", X, const(1)), ("mul", X, const(0.1)), X),
]


@pytest.mark.parametrize("expression", KNOWN, ids=str)
def test_activation_is_found(expression: Expression) -> None:
    assert activation_of(Epilogue(expression)) == KNOWN[expression]


@pytest.mark.parametrize("expression", UNKNOWN, ids=str)
def test_other_expression_is_none(expression: Expression) -> None:
    assert activation_of(Epilogue(expression)) is None


def test_residual_is_added_before_the_activation_or_it_is_none() -> None:
    assert activation_of(Epilogue(("relu", ("add", R, X)), RESIDUAL)) == Activation("RELU")
    assert activation_of(Epilogue(("add", X, R), RESIDUAL)) == Activation()
    assert activation_of(Epilogue(("add", ("relu", X), R), RESIDUAL)) is None
    assert activation_of(Epilogue(("mul", X, R), RESIDUAL)) is None


@pytest.mark.parametrize(
    ("expression", "kernel"), [(("relu", X), "fast_pointwise"), (("exp", X), "dense")], ids=["known", "unknown"]
)
def test_kernel_follows_from_the_epilogue(expression: Expression, kernel: str) -> None:
    x, output = (Tensor(name, (1, 4, 2, 2), Layout.BLOCKED) for name in "xy")
    weights = np.ones((4, 4, 1, 1), np.float32)
    step = Convolution(output, x, weights, None, Window((1, 1)), epilogue=Epilogue(expression))
    assert step.call(Machine(ISAS[0])).kernel == kernel
