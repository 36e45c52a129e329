# SPDX-License-Identifier: Apache-2.0
"""Inputs that must have elements: without, ONNX Runtime (1.31.1) ends the process, hangs, or gives other results.

    y = GRU(x, ...)   ->   x' = Reshape(x, [0, 0, -1]);  y = GRU(x', ...)

The Reshape gives x as it is, and fails where it has no elements: the size that is -1 follows from their number. It
stands only where sizes are open, and takes about a microsecond. Where not even the rank is known, x is reshaped to its
own shape, less 9 if it has no elements. The name of the Reshape tells the session what happened (`node_errors.py`).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.nodes_before import NodesBefore
from nndeploy.graph.operators import int_attribute, ints_attribute
from nndeploy_onnxruntime.node_errors import NO_ELEMENTS

REDUCED = "reduced"
MAX_VECTORS = 64
"""Inputs of a FeatureVectorizer that are looked at."""


class Needs(NamedTuple):
    """An input whose `axes` must not be 0; None: all of them, `REDUCED`: those that the node reduces.

    Only where the node has the attribute `where`, and the input as many axes as `rank`, unless these say nothing; not
    where it has the sizes of the input `unlike`.
    """

    number: int
    axes: tuple[int, ...] | str | None = None
    where: str = ""
    rank: int = 0
    unlike: int | None = None


_MICROSOFT = "com.microsoft"
NEEDING_ELEMENTS: Mapping[tuple[str, str], tuple[Needs, ...]] = {
    **dict.fromkeys((("", "GRU"), ("", "LSTM"), ("", "RNN")), (Needs(0, (0, 1)),)),
    ("", "InstanceNormalization"): (Needs(0),),
    ("", "Conv"): (Needs(1),),
    ("", "ConvTranspose"): (Needs(0), Needs(1)),
    ("", "Attention"): tuple(Needs(number, (1,), rank=4) for number in range(3)),
    ("", "ReduceMean"): (Needs(0, REDUCED),),
    ("", "Unique"): (Needs(0, where="axis"),),
    ("ai.onnx.ml", "FeatureVectorizer"): tuple(Needs(number) for number in range(MAX_VECTORS)),
    ("", "QuantizeLinear"): (Needs(0, where="block_size"),),
    ("", "DequantizeLinear"): (Needs(0, where="block_size"),),
    (_MICROSOFT, "AttnLSTM"): (Needs(0, (0, 1)), Needs(11)),
    (_MICROSOFT, "DynamicQuantizeLSTM"): (Needs(0, (0, 1)),),
    (_MICROSOFT, "FusedMatMul"): (Needs(0, where="transBatchA"), Needs(1, where="transBatchB")),
    (_MICROSOFT, "GroupQueryAttention"): (Needs(0, (0,)),),
    (_MICROSOFT, "LinearAttention"): (Needs(0, (2,)), Needs(1, (2,)), Needs(2, (2,))),
    (_MICROSOFT, "MoE"): (Needs(0, (1,)),),
    (_MICROSOFT, "MultiHeadAttention"): (Needs(2, (-1,)),),
    (_MICROSOFT, "QAttention"): (Needs(0, (0,)),),
    (_MICROSOFT, "RotaryEmbedding"): (Needs(0, (-1,)),),
    **dict.fromkeys(
        ((_MICROSOFT, "SkipLayerNormalization"), (_MICROSOFT, "SkipSimplifiedLayerNormalization")),
        (Needs(1, unlike=0),),
    ),
}
"""Operator -> what must have elements."""


def inputs_in_need(node: ir.Node) -> Iterator[int]:
    """Yields the inputs of a node that must have elements, and may have none."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    for needs in NEEDING_ELEMENTS.get((domain, node.op_type), ()):
        value = node.inputs[needs.number] if needs.number < len(node.inputs) else None
        if value is not None and constant_of(value) is None and _may_be_empty(node, value, needs):
            yield needs.number


def need_elements(node: ir.Node, number: int) -> None:
    """Leads an input by way of nodes that fail where it has no elements."""
    before, value = NodesBefore(node, f"elements{number}."), node.inputs[number]
    assert value is not None
    fails = f"{NO_ELEMENTS}{node.name}"
    if value.shape is None:
        value = before.add("Reshape", value, _sizes_or_negative(before, value), name=fails)
    shape = value.shape or ()
    known = [axis for axis, size in enumerate(shape) if isinstance(size, int) and size > 0]
    for axis in known[-1:] or range(min(len(shape), 2)):
        target = np.zeros(len(shape), np.int64)
        target[axis] = -1
        value = before.add("Reshape", value, before.constant(target), name=fails)
    node.replace_input_with(number, value)


def _sizes_or_negative(before: NodesBefore, value: ir.Value) -> ir.Value:
    """Returns the shape of a value of unknown rank, with sizes that no Reshape takes where it has no elements."""
    is_empty = before.add("Equal", before.add("Size", value), before.constant(np.array(0)))
    less = before.add(
        "Mul", before.add("Cast", is_empty, attributes={"to": ir.DataType.INT64}), before.constant(np.array(9))
    )
    return before.add("Sub", before.add("Shape", value), less)


def _may_be_empty(node: ir.Node, value: ir.Value, needs: Needs) -> bool:
    if needs.where and needs.where not in node.attributes:
        return False
    if value.shape is None:
        return True
    shape = list(value.shape)
    if needs.rank and needs.rank != len(shape):
        return False
    if needs.unlike is not None and (same := _sizes(value)) and _sizes(node.inputs[needs.unlike]) == same:
        return False
    axes = _reduced_axes(node) if isinstance(needs.axes, str) else needs.axes
    sizes = shape if axes is None else [shape[axis] for axis in axes]
    return any(not isinstance(size, int) or size == 0 for size in sizes)


def _sizes(value: ir.Value | None) -> list[int | str | None] | None:
    if value is None or value.shape is None:
        return None
    sizes = [size if isinstance(size, int) else size.value for size in value.shape]
    return None if None in sizes else sizes


def _reduced_axes(node: ir.Node) -> tuple[int, ...] | None:
    """Returns the axes that a node reduces; None: all, or not known."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None:
        return () if int_attribute(node, "noop_with_empty_axes", 0) else ints_attribute(node, "axes")
    axes = constant_of(given)
    return None if axes is None else tuple(int(axis) for axis in axes.numpy().reshape(-1)) or None
