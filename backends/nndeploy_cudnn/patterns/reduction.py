# SPDX-License-Identifier: Apache-2.0
"""Sums and maxima over axes, and what is made of them.

    ReduceMean -> sum / n     ReduceL2 -> sqrt(sum(x * x))     ReduceMin -> -max(-x)     ReduceLogSum -> log(sum)

Source: ONNX Reduce operators, opset 18 (axes as an input) and before (axes as an attribute).
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from nndeploy_cudnn.operations import Pointwise, Reduction, Reshaped, Value
from nndeploy_cudnn.patterns.translation import (
    NotTakenError,
    Translation,
    attribute,
    attribute_ints,
    axis_within,
    integers_of,
    num_elements,
)


def reduce_sum(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceSum."""
    _reduce(node, translation, "sum")


def reduce_mean(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceMean."""
    _reduce(node, translation, "mean")


def reduce_max(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceMax."""
    _reduce(node, translation, "max")


def reduce_min(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceMin."""
    _reduce(node, translation, "max", before=("neg",), after=("neg",))


def reduce_sum_square(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceSumSquare."""
    _reduce(node, translation, "sum", before=("square",))


def reduce_l1(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceL1."""
    _reduce(node, translation, "sum", before=("abs",))


def reduce_l2(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceL2."""
    _reduce(node, translation, "sum", before=("square",), after=("sqrt",))


def reduce_log_sum(node: ir.Node, translation: Translation) -> None:
    """Writes a ReduceLogSum."""
    _reduce(node, translation, "sum", after=("log",))


def _reduce(
    node: ir.Node, translation: Translation, mode: str, before: Sequence[str] = (), after: Sequence[str] = ()
) -> None:
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    axes = _axes(node, len(x.dims))
    if not axes:
        raise NotTakenError("a reduction over no axis")
    for function in before:
        x = pointwise(translation, function, x)
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.dims))
    alpha = 1.0 / num_elements([x.dims[axis] for axis in axes]) if mode == "mean" else 1.0
    made = translation.made(kept, y.dtype)
    translation.add(Reduction("max" if mode == "max" else "sum", x, made, axes, alpha))
    for function in after:
        made = pointwise(translation, function, made)
    translation.add(Reshaped(made, y))


def pointwise(translation: Translation, function: str, x: Value) -> Value:
    """Writes y = function(x) and returns y."""
    y = translation.made(x.dims, x.dtype)
    inputs = (x, x) if function == "square" else (x,)
    translation.add(Pointwise("mul" if function == "square" else function, inputs, y))
    return y


def _axes(node: ir.Node, rank: int) -> tuple[int, ...]:
    axes: Sequence[int] = attribute_ints(node, "axes", ()) or integers_of(node, 1, default=())
    if not axes and not attribute(node, "noop_with_empty_axes", 0):
        axes = range(rank)
    return tuple(sorted({axis_within(axis, rank) for axis in axes}))


PATTERNS: dict[str, Callable[[ir.Node, Translation], None]] = {
    "ReduceSum": reduce_sum,
    "ReduceMean": reduce_mean,
    "ReduceMax": reduce_max,
    "ReduceMin": reduce_min,
    "ReduceSumSquare": reduce_sum_square,
    "ReduceL1": reduce_l1,
    "ReduceL2": reduce_l2,
    "ReduceLogSum": reduce_log_sum,
}
