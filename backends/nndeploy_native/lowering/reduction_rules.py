# SPDX-License-Identifier: Apache-2.0
"""Rules along axes: softmax, reductions and running sums.

    ReduceMean over axes 0, 2, 3 of (N, C, H, W)  =>  over (H, W) of (N * C, H * W), then over N of (N, C)

Source: ONNX Softmax, LogSoftmax, Hardmax, CumSum, ReduceMean and the other reductions.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, product
from nndeploy_native.lowering import double_rules
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import DOMAINS
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.pooling import Pooling
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout, Shape, Tensor

REDUCTIONS = {
    "ReduceL1": "reduce_l1", "ReduceL2": "reduce_l2", "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp", "ReduceMax": "reduce_max", "ReduceMean": "reduce_mean",
    "ReduceMin": "reduce_min", "ReduceProd": "reduce_prod", "ReduceSum": "reduce_sum",
    "ReduceSumSquare": "reduce_sum_square",
}  # fmt: skip
STAGES = {
    "reduce_log_sum": ("reduce_sum", "reduce_sum", "reduce_log_sum"),
    "reduce_sum_square": ("reduce_sum_square", "reduce_sum", "reduce_sum"),
}
"""What is done first, between and last of what is reduced run by run; of others it is the same."""
WHOLE = {"reduce_l1", "reduce_mean", "reduce_prod", "reduce_sum", "reduce_sum_square"}
"""The reductions of int32, int64 and float64; the largest and smallest are found of any type."""
POOLS = {"ReduceMean": "mean", "ReduceMax": "max"}
FEW_RESULTS, MANY_VALUES, MOST_PARTS = 16, 1 << 14, 64
"""A run of `MANY_VALUES` or more is reduced to up to `MOST_PARTS` numbers first, which threads share, where it gives
`FEW_RESULTS` or fewer."""


def along_axis(shape: Shape, axis: int, end: int | None = None) -> tuple[Dim, Dim, Dim]:
    """Returns (outer, size, inner) of a shape for an axis, or for all of those up to `end`."""
    behind = axis + 1 if end is None else end
    return product(shape[:axis]), product(shape[axis:behind]), product(shape[behind:])


def softmax(node: ir.Node, context: Context) -> None:
    """Lowers Softmax, LogSoftmax and Hardmax; up to opset 12 over all axes from the given one on."""
    shape = context.sizes_of(operand(node, 0))
    kind = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[node.op_type]
    axis = int_attribute(node, "axis", -1 if context.opset >= 13 else 1) % len(shape)
    sizes = along_axis(shape, axis, None if context.opset >= 13 else len(shape))
    x, output = context.plain(node.inputs[0]), context.output(node.outputs[0], Layout.PLAIN)
    if x.element == "fp64" and kind != "hardmax":
        double_rules.softmax(context, kind, x, output, sizes)
        return
    context.shape_of(node.inputs[0])
    context.emit(AlongAxis(output, x, kind, *sizes))


def cumulative_sum(node: ir.Node, context: Context) -> None:
    """Lowers CumSum along a constant axis."""
    x, axis = context.plain(operand(node, 0)), context.constant(operand(node, 1))
    if axis is None or axis.size != 1:
        raise BuildRefusedError("a CumSum along an axis that is not constant")
    if x.element not in ("fp32", "int32", "int64"):
        raise BuildRefusedError(f"a CumSum of {x.element}")
    sizes = along_axis(x.shape, int(axis.item()) % len(x.shape))
    ways = {f"is_{name}": int_attribute(node, name, 0) != 0 for name in ("exclusive", "reverse")}
    context.emit(AlongAxis(context.output(node.outputs[0], Layout.PLAIN), x, "cumulate", *sizes, ways))


def reduce(node: ir.Node, context: Context) -> None:
    """Lowers a reduction; of a whole image in blocks, where it is there."""
    shape, out_shape = context.sizes_of(operand(node, 0)), context.sizes_of(node.outputs[0])
    axes = _axes(node, context, len(shape))
    value = node.inputs[0]
    assert value is not None
    is_pool = len(shape) == len(out_shape) == 4 and axes == (2, 3) and node.op_type in POOLS
    if is_pool and context.is_blocked(value):
        x = context.blocked(value)
        output, window = context.output(node.outputs[0], Layout.BLOCKED), Window((shape[2], shape[3]))
        context.emit(Pooling(output, x, window, (0, 0), POOLS[node.op_type]))
        return
    plain, kind = context.plain(value), REDUCTIONS[node.op_type]
    is_taken = kind in WHOLE if plain.element != "fp64" else kind in (*WHOLE, "reduce_log_sum_exp")
    is_whole = plain.element in ("int32", "int64", "fp64") and is_taken
    if plain.element != "fp32" and not is_whole and kind not in ("reduce_max", "reduce_min"):
        raise BuildRefusedError(f"a {node.op_type} of {plain.element}")
    _emit(context, kind, plain, context.output(node.outputs[0], Layout.PLAIN), axes)


def _emit(context: Context, kind: str, x: Tensor, output: Tensor, axes: Sequence[int]) -> None:
    """Emits a reduction for each run of neighbouring axes, the last run first."""
    runs = _runs(x.shape, axes)
    if kind == "reduce_mean" and x.element not in DOMAINS and sum(run.is_reduced for run in runs) > 1:
        raise BuildRefusedError("a mean of whole numbers in several parts, each of which would be rounded")
    numbers = [number for number, run in enumerate(runs) if run.is_reduced][::-1]
    if kind == "reduce_log_sum_exp" and x.element == "fp64":
        if len(numbers) > 1:
            raise BuildRefusedError("a ReduceLogSumExp of float64 over axes that are no neighbours")
        outer, inner = (product(size for size, _ in part) for part in (runs[: numbers[0]], runs[numbers[0] + 1 :]))
        double_rules.log_sum_exp(context, x, output, (outer, runs[numbers[0]].size, inner))
        return
    first, between, last = STAGES.get(kind, (kind, kind, kind))
    for stage, number in enumerate(numbers):
        outer, inner = (product(size for size, _ in part) for part in (runs[:number], runs[number + 1 :]))
        is_last = stage == len(numbers) - 1
        target = output if is_last else context.temporary("reduced", (outer, inner), Layout.PLAIN, x.element)
        name = kind if len(numbers) == 1 else last if is_last else between if stage else first
        context.emit(AlongAxis(target, x, name, outer, runs[number].size, inner))
        x, runs[number] = target, _Run(1, is_reduced=False)


class _Run(NamedTuple):
    """Neighbouring axes, all of which are reduced or none."""

    size: Dim
    is_reduced: bool


def _runs(shape: Shape, axes: Sequence[int]) -> list[_Run]:
    """Returns the runs of a shape; one is in two parts where few results are made of many values."""
    marked = [(size, axis in axes) for axis, size in enumerate(shape)]
    grouped = [(key, [size for size, _ in group]) for key, group in groupby(marked, lambda one: one[1])]
    kept = product(size for key, sizes in grouped for size in sizes if not key)
    is_shared = sum(key for key, _ in grouped) == 1 and isinstance(kept, int) and kept <= FEW_RESULTS
    runs = [
        _Run(size, key)
        for key, sizes in grouped
        for size in (_parts(sizes) if key and is_shared else (product(sizes),))
    ]
    return runs if any(run.is_reduced for run in runs) else [*runs, _Run(1, is_reduced=True)]


def _parts(sizes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Returns the sizes of two parts of a run that are reduced one after the other, of one where it is short."""
    size = product(sizes)
    if not isinstance(size, int):
        return (product(sizes[:-1]), sizes[-1]) if len(sizes) > 1 else (size,)
    parts = next((n for n in range(MOST_PARTS, 1, -1) if size % n == 0), 1)
    return (parts, size // parts) if size >= MANY_VALUES else (size,)


def _axes(node: ir.Node, context: Context, rank: int) -> tuple[int, ...]:
    given = ints_attribute(node, "axes")
    if operand(node, 1) is not None:
        array = context.constant(operand(node, 1))
        if array is None:
            raise BuildRefusedError("a reduction over axes that are not constant")
        given = tuple(int(axis) for axis in array.reshape(-1))
    if not given:
        return () if int_attribute(node, "noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in given))
