# SPDX-License-Identifier: Apache-2.0
"""Quantised operators become the real operator between ONNX's own quantisation steps.

    QLinearOp(x, xs, xz, [more inputs with scale and zero point], ys, yz)
        ->  QuantizeLinear(Op(DequantizeLinear(x, xs, xz), ...), ys, yz)

for ONNX Runtime's Add, Mul, Sigmoid, LeakyRelu, Softmax, AveragePool, GlobalAveragePool, ReduceMean, Concat and Where,
and ONNX's own QLinearMatMul. OpenVINO has no GlobalAveragePool of this kind and computes the others without rounding or
saturation (2026.4.1); our own kernels have none of them. What comes out here both take and get right.

Law: outputs do not change by more than one step. Source: com.microsoft operators of ONNX Runtime, ContribOperators.md;
ONNX QLinearMatMul.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.backend_kit.transforms.operator_versions import version_of
from nndeploy.plugin.interface import MayTouch

DOMAIN = "com.microsoft"
MATMUL = "QLinearMatMul"
QUANTISE_OPSET = 10  # the first with QuantizeLinear
SOFTMAX_OPSET = 13  # the first in which Softmax works on one axis; before, it flattened
REDUCE_OPSET = 18  # the first in which axes are an input

_Values = Sequence[ir.Value | None]


@dataclass(frozen=True, slots=True)
class Quantised:
    """A real operator's inputs, each as (value, scale, zero point), and the output's scale and zero point.

    `plain` are inputs that are not quantised; they come first.
    """

    op_type: str
    inputs: tuple[tuple[ir.Value, ir.Value, ir.Value | None], ...]
    output: tuple[ir.Value, ir.Value | None]
    attributes: tuple[ir.Attr, ...] = ()
    plain: tuple[ir.Value, ...] = ()


class DecomposeQLinear:
    """Puts real operators in place of quantised ones."""

    name = "decompose-qlinear"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many it replaced."""
        opset = version_of(model.graph.opset_imports, "") or 0
        count = 0
        for node in list(model.graph):
            is_known = node.domain == DOMAIN or (node.domain, node.op_type) == ("", MATMUL)
            if opset >= QUANTISE_OPSET and is_known and may_touch(node):
                parts = quantised(node, opset)
                if parts is not None:
                    _replace(model.graph, node, parts)
                    count += 1
        if count:
            ShapeInferencePass()(model)
        return count


def quantised(node: ir.Node, opset: int) -> Quantised | None:
    """Returns the parts of a quantised node that can be decomposed, else None."""
    read = _READERS.get(node.op_type)
    if read is None or node.attributes.get_int("channels_last", 0) != 0:
        return None
    parts = read(node, opset)
    return parts if parts is not None and _is_typed(node, parts) else None


def _is_typed(node: ir.Node, parts: Quantised) -> bool:
    """Returns whether the steps give the declared type: without a zero point the type is unsigned."""
    zero_point = parts.output[1]
    return zero_point is not None or node.outputs[0].dtype == ir.DataType.UINT8


def _replace(graph: ir.Graph, node: ir.Node, parts: Quantised) -> None:
    steps = [ir.Node("", "DequantizeLinear", of) for of in parts.inputs]
    real = [step.outputs[0] for step in steps]
    operator = ir.Node("", parts.op_type, [*parts.plain, *real], parts.attributes)
    quantise = ir.Node("", "QuantizeLinear", [operator.outputs[0], *parts.output])
    ir.convenience.replace_nodes_and_values(
        graph, node, [node], [*steps, operator, quantise], node.outputs, quantise.outputs
    )


def _one(op_type: str, *kept: str) -> "_Reader":
    """Reads X, its scale and zero point, and the output's; `kept` attributes go to the real operator."""

    def read(node: ir.Node, _opset: int) -> Quantised | None:
        x, scale, zero_point, *output = _padded(node.inputs, 5)
        return _with(op_type, node, [(x, scale, zero_point)], output, kept)

    return read


def _two(op_type: str) -> "_Reader":
    def read(node: ir.Node, _opset: int) -> Quantised | None:
        values = _padded(node.inputs, 8)
        return _with(op_type, node, [values[0:3], values[3:6]], values[6:8])

    return read


def _matmul(node: ir.Node, opset: int) -> Quantised | None:
    """One scale a side: those of rows or columns would need an axis that depends on the rank."""
    scales = [node.inputs[index] for index in (1, 4, 6) if index < len(node.inputs)]
    has_one = [value is not None and value.shape is not None and value.shape.is_static() for value in scales]
    if len(scales) < 3 or not all(has_one) or any(math.prod(v.shape.numpy()) != 1 for v in scales if v and v.shape):
        return None
    return _two("MatMul")(node, opset)


def _concat(node: ir.Node, _opset: int) -> Quantised | None:
    values = list(node.inputs)
    if len(values) % 3 != 2:
        return None
    return _with("Concat", node, [values[i : i + 3] for i in range(2, len(values), 3)], values[:2], ("axis",))


def _where(node: ir.Node, _opset: int) -> Quantised | None:
    condition, *values = _padded(node.inputs, 9)
    if condition is None:
        return None
    return _with("Where", node, [values[0:3], values[3:6]], values[6:8], plain=(condition,))


def _softmax(node: ir.Node, opset: int) -> Quantised | None:
    """The node says by which operator set's Softmax it goes."""
    meant = node.attributes.get_int("opset", 0)
    return _one("Softmax", "axis")(node, opset) if min(opset, meant) >= SOFTMAX_OPSET else None


def _reduce_mean(node: ir.Node, opset: int) -> Quantised | None:
    return _one("ReduceMean", "axes", "keepdims")(node, opset) if opset < REDUCE_OPSET else None


_Reader = Callable[[ir.Node, int], Quantised | None]

_READERS: dict[str, _Reader] = {
    MATMUL: _matmul,
    "QLinearAdd": _two("Add"),
    "QLinearMul": _two("Mul"),
    "QLinearSigmoid": _one("Sigmoid"),
    "QLinearLeakyRelu": _one("LeakyRelu", "alpha"),
    "QLinearSoftmax": _softmax,
    "QLinearGlobalAveragePool": _one("GlobalAveragePool"),
    "QLinearAveragePool": _one(
        "AveragePool", "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"
    ),
    "QLinearReduceMean": _reduce_mean,
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
}


def _padded(values: _Values, size: int) -> list[ir.Value | None]:
    return [*values, *[None] * (size - len(values))]


def _with(
    op_type: str,
    node: ir.Node,
    inputs: Sequence[_Values],
    output: _Values,
    kept: Sequence[str] = (),
    plain: tuple[ir.Value, ...] = (),
) -> Quantised | None:
    """Returns the parts, or None where a value or a scale is missing."""
    triples = [
        (value, scale, zero_point) for value, scale, zero_point in inputs if value is not None and scale is not None
    ]
    scale, zero_point = output
    if len(triples) != len(inputs) or scale is None:
        return None
    attributes = tuple(node.attributes[name] for name in kept if name in node.attributes)
    return Quantised(op_type, tuple(triples), (scale, zero_point), attributes, plain)
