# SPDX-License-Identifier: Apache-2.0
"""A model -> the same one whose every operator rounds a little otherwise: what engines that are right may differ by.

    y = Conv(x, w)   ->   y = Conv(x, w) + u * 4 ulp * max |y|       u drawn from -1..1 for each element
    y = Exp(x)       ->   y = Exp(x) * (1 + u * 4 ulp)
    y = Sigmoid(x)   ->   y = max(0, Sigmoid(x) + u * 4 ulp)        of 1, as engines round that take a tanh for it
    QLinearConv(..)  ->   QuantizeLinear(Conv(DequantizeLinear(..)))   first, so that its rounding is shifted too

Sums lose about that much of the largest element in another order, all else of the element itself. What the outputs do
then is the model's own doing: nothing where it is calm, steps where it quantises, another order where it sorts. This
is Monte Carlo arithmetic on a whole graph. Operators that only move or choose values are exact everywhere and stay.

Source: Parker, "Monte Carlo Arithmetic", 1997. Law: what is only taken apart gives what the model gives, but for
rounding.
"""

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.backend_kit.transforms.decompose_qlinear import DecomposeQLinear
from nndeploy.backend_kit.transforms.operator_versions import version_of
from nndeploy.checking.saturation import SATURATING

ULP = {ir.DataType.FLOAT: 2.0**-23, ir.DataType.FLOAT16: 2.0**-10, ir.DataType.BFLOAT16: 2.0**-7}
NUM_ULP = 4.0
NUM_ULP_16 = 0.5
"""Types of 16 bits are rounded once, from a sum that was kept in 32 bits."""

_SUMS = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "ReduceMean", "ReduceSum", "GlobalAveragePool", "AveragePool",
    "LSTM", "GRU", "RNN", "MatMulNBits", "LayerNormalization", "GroupNormalization", "InstanceNormalization",
    "BatchNormalization", "FusedMatMul", "FusedConv", "Resize", "DFT",
})  # fmt: skip
_EXACT = frozenset({
    "Reshape", "Transpose", "Relu", "MaxPool", "Gather", "GatherND", "GatherElements", "Concat", "Slice", "Identity",
    "Constant", "Squeeze", "Unsqueeze", "Flatten", "Split", "Clip", "Pad", "Expand", "Tile", "Where", "Max", "Min",
    "DequantizeLinear", "Neg", "Abs", "ConstantOfShape", "TopK", "DepthToSpace", "SpaceToDepth", "ScatterND",
    "ReduceMax", "ReduceMin", "GlobalMaxPool", "Trilu", "Range", "OneHot", "Ceil", "Floor", "Round", "Sign", "Dropout",
    "If", "Loop", "Scan", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli",
    "ScatterElements", "Compress", "EyeLike", "Shape", "Size", "ReverseSequence",
})  # fmt: skip
FIRST_WITH_AXIS = 13  # the opset of DequantizeLinear with a scale for each channel


def taken_apart(model: ir.Model) -> ir.Model:
    """Returns a copy of a model with quantised operators taken apart; the types of its values are known."""
    copy = model.clone()
    DecomposeQLinear()(copy, lambda _node: True)
    _decompose_convolutions(copy)
    _infer(copy)
    return copy


def shifted(model: ir.Model, seed: int) -> ir.Model:
    """Returns a copy of a model that was taken apart, with its rounding shifted."""
    copy = model.clone()
    for index, node in enumerate(list(copy.graph)):
        for value in node.outputs:
            if value.name and value.dtype in ULP and node.op_type not in _EXACT:
                _shift(copy.graph, node, value, float(seed * 100_003 + index + 1))
    return copy


def _infer(model: ir.Model) -> None:
    if any(value.dtype is None for node in model.graph for value in node.outputs if value.name):
        ShapeInferencePass()(model)


def _shift(graph: ir.Graph, node: ir.Node, value: ir.Value, seed: float) -> None:
    assert value.dtype is not None
    is_short = value.dtype != ir.DataType.FLOAT
    size = ULP[value.dtype] * (NUM_ULP_16 if is_short else NUM_ULP)
    name = value.name or ""
    moved = ir.Value(name=name, shape=value.shape, type=value.type)
    value.name = f"{name}__exact"
    ir.convenience.replace_all_uses_with(value, moved, replace_graph_outputs=True)
    noise = ir.node("RandomUniformLike", [value], {"low": -size, "high": size, "seed": seed})
    if node.op_type in SATURATING:
        total = ir.node("Add", [value, noise.outputs[0]])
        graph.insert_after(node, [noise, total, ir.node("Relu", [total.outputs[0]], outputs=[moved])])
        return
    weight = ir.node("Abs", [value])
    nodes = [noise, weight]
    if node.op_type in _SUMS and not is_short:
        nodes.append(ir.node("ReduceMax", [weight.outputs[0]], {"keepdims": 0}))
    product = ir.node("Mul", [noise.outputs[0], nodes[-1].outputs[0]])
    total = ir.node("Add", [value, product.outputs[0]], outputs=[moved])
    graph.insert_after(node, [*nodes, product, total])


def _decompose_convolutions(model: ir.Model) -> None:
    opset = version_of(model.graph.opset_imports, "") or 0
    for node in list(model.graph):
        if node.op_type == "QLinearConv" and node.domain in ("", "ai.onnx"):
            _decompose_convolution(model.graph, node, opset)


def _decompose_convolution(graph: ir.Graph, node: ir.Node, opset: int) -> None:
    inputs = [*node.inputs, *[None] * (9 - len(node.inputs))]
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = inputs
    by_channel = w_scale is None or w_scale.shape is None or w_scale.shape.rank() != 0
    if by_channel and w_scale is not None and w_scale.shape is not None and list(w_scale.shape.dims) == [1]:
        by_channel = False
    if by_channel and opset < FIRST_WITH_AXIS:
        return
    axis = {"axis": 0} if by_channel else {}
    nodes = [
        ir.node("DequantizeLinear", [x, x_scale, x_zero]),
        ir.node("DequantizeLinear", [w, w_scale, w_zero], axis),
    ]
    real = [step.outputs[0] for step in nodes]
    if bias is not None:
        as_float = ir.node("Cast", [bias], {"to": int(ir.DataType.FLOAT)})
        scale = ir.node("Mul", [x_scale, w_scale])
        scaled = ir.node("Mul", [as_float.outputs[0], scale.outputs[0]])
        nodes += [as_float, scale, scaled]
        real.append(scaled.outputs[0])
    convolution = ir.Node("", "Conv", real, list(node.attributes.values()))
    convolution.outputs[0].dtype = ir.DataType.FLOAT
    quantise = ir.node("QuantizeLinear", [convolution.outputs[0], y_scale, y_zero])
    ir.convenience.replace_nodes_and_values(
        graph, node, [node], [*nodes, convolution, quantise], node.outputs, quantise.outputs
    )
