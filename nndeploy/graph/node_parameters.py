# SPDX-License-Identifier: Apache-2.0
"""Parameters that ONNX moved from attributes to inputs over time, read in one way for every opset.

Each function answers None for a parameter that is only known at run time (or is malformed), and the value that ONNX
defines where it is left out. A pass that gets None leaves the node alone.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_floats, constant_ints
from nndeploy.graph.operators import (
    float_attribute,
    int_attribute,
    ints_attribute,
    operand,
    rank_of,
    text_attribute,
)

Ints: TypeAlias = tuple[int, ...]

_ELEMENT_TYPES = frozenset(int(element_type) for element_type in ir.DataType)


class SliceBounds(NamedTuple):
    """What a Slice takes of each of its axes; each of equal length, None where it is not known."""

    starts: Ints | None
    ends: Ints | None
    axes: Ints | None
    steps: Ints | None


def slice_bounds(node: ir.Node) -> SliceBounds:
    """Returns the bounds of a Slice.

    Source: ONNX Slice: attributes up to opset 9, inputs from 10; axes are 0, 1, ... and steps 1 where left out.
    """
    if len(node.inputs) == 1:
        starts, ends, axes, steps = (ints_attribute(node, name) for name in ("starts", "ends", "axes", "steps"))
        has_axes, has_steps = axes is not None, False
    else:
        starts, ends, axes, steps = (constant_ints(operand(node, index)) for index in range(1, 5))
        has_axes, has_steps = operand(node, 3) is not None, operand(node, 4) is not None
    number = len(starts) if starts is not None else 0
    return SliceBounds(starts, ends, axes if has_axes else tuple(range(number)), steps if has_steps else (1,) * number)


def axes_of(node: ir.Node, opset: int) -> Ints | None:
    """Returns the axes that a Squeeze or Unsqueeze names; None where it names none or they are not known.

    Source: ONNX Squeeze and Unsqueeze: attribute up to opset 12, input from 13.
    """
    return ints_attribute(node, "axes") if opset < 13 else constant_ints(operand(node, 1))


def reshape_target(node: ir.Node, opset: int) -> Ints | None:
    """Returns the sizes that a Reshape asks for, 0 (copy) and -1 (what is left) as they are; None if not known.

    Source: ONNX Reshape: attribute up to opset 4, input from 5.
    """
    return ints_attribute(node, "shape") if opset < 5 else constant_ints(operand(node, 1))


def permutation_of(node: ir.Node) -> Ints | None:
    """Returns where a Transpose takes each axis of its output from; None where the rank is not known.

    Source: ONNX Transpose: the axes are reversed where `perm` is left out.
    """
    given, rank = ints_attribute(node, "perm"), rank_of(operand(node, 0))
    if given is not None:
        return given if sorted(given) == list(range(len(given))) else None
    return tuple(reversed(range(rank))) if rank is not None else None


def cast_target(node: ir.Node) -> ir.DataType | None:
    """Returns the element type that a Cast asks for; None where it is written as text or is of a newer ONNX.

    Source: ONNX Cast: `to` is text up to opset 5.
    """
    attribute = node.attributes.get("to")
    if attribute is None or attribute.type != ir.AttributeType.INT or attribute.as_int() not in _ELEMENT_TYPES:
        return None
    return ir.DataType(attribute.as_int())


class Padding(NamedTuple):
    """Elements that a Pad puts before and after each axis, with what value, in which mode."""

    begins: Ints
    ends: Ints
    value: float
    mode: str


def padding_of(node: ir.Node, opset: int) -> Padding | None:
    """Returns what a Pad adds, for every axis of its input; None where that is not known.

    Source: ONNX Pad: attribute `value` up to 10, an input from 11.
    """
    widths, mode = pad_widths(node, opset), text_attribute(node, "mode", "constant")
    value = float_attribute(node, "value", 0.0) if opset < 11 else _pad_value(operand(node, 2))
    return Padding(*widths, value, mode) if widths is not None and value is not None else None


def pad_widths(node: ir.Node, opset: int) -> tuple[Ints, Ints] | None:
    """Returns how many elements a Pad puts before and after each axis of its input; None where that is not known.

    Source: ONNX Pad: `paddings` in opset 1, `pads` up to 10, inputs from 11, input `axes` from 18.
    """
    rank = rank_of(operand(node, 0))
    if rank is None:
        return None
    if opset < 11:
        return _spread(ints_attribute(node, "pads" if opset > 1 else "paddings"), tuple(range(rank)), rank)
    axes = pad_axes(node, rank)
    return _spread(constant_ints(operand(node, 1)), axes, rank) if axes is not None else None


def pad_axes(node: ir.Node, rank: int) -> Ints | None:
    """Returns the axes that a Pad names widths of, of `rank` in all; None where they are not known.

    Source: ONNX Pad: an input from 18.
    """
    return tuple(range(rank)) if operand(node, 3) is None else constant_ints(operand(node, 3))


def _pad_value(value: ir.Value | None) -> float | None:
    if value is None:
        return 0.0
    array = constant_array(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _spread(pads: Ints | None, axes: Ints, rank: int) -> tuple[Ints, Ints] | None:
    if pads is None or len(pads) != 2 * len(axes) or not all(-rank <= axis < rank for axis in axes):
        return None
    begins, ends = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[place], pads[place + len(axes)]
    return tuple(begins), tuple(ends)


def clip_bounds(node: ir.Node, opset: int, dtype: ir.DataType) -> tuple[float, float] | None:
    """Returns the (lowest, highest) number that a Relu or Clip lets through; None where that is not known.

    Source: ONNX Clip: attributes up to opset 10, by default the limits of float; inputs from 11, by default the
    limits of the element type. (An infinity is not within these limits, but is where it is written.)
    """
    if node.op_type == "Relu":
        return 0.0, np.inf
    lowest, highest = clip_defaults(opset, dtype)
    if opset < 11:
        return float_attribute(node, "min", lowest), float_attribute(node, "max", highest)
    low, high = _bound(operand(node, 1), lowest), _bound(operand(node, 2), highest)
    return (low, high) if low is not None and high is not None else None


def clip_defaults(opset: int, dtype: ir.DataType) -> tuple[float, float]:
    """Returns the bounds that a Clip has where none are written."""
    highest = float((ir.DataType.FLOAT if opset < 11 else dtype).max)
    return -highest, highest


def _bound(value: ir.Value | None, default: float) -> float | None:
    if value is None:
        return default
    array = constant_floats(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def spatial_parameter(node: ir.Node, name: str, rank: int, default: int) -> Ints:
    """Returns a per-axis attribute of a convolution or pooling over `rank` spatial axes, `default` where left out."""
    given = ints_attribute(node, name)
    return given if given is not None else (default,) * rank


def pads_of_window(node: ir.Node, rank: int) -> tuple[Ints, Ints] | None:
    """Returns the zeros (before, after) each spatial axis of a convolution or pooling; None for SAME padding.

    Source: ONNX Conv, AveragePool, attributes `pads` and `auto_pad`.
    """
    mode = text_attribute(node, "auto_pad", "NOTSET")
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    pads = spatial_parameter(node, "pads", 2 * rank, 0)
    return (pads[:rank], pads[rank:]) if mode in ("NOTSET", "") and len(pads) == 2 * rank else None


def counts_padding(node: ir.Node) -> bool:
    """Returns whether an AveragePool counts its padding as elements."""
    return int_attribute(node, "count_include_pad", 0) == 1
