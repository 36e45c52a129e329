# SPDX-License-Identifier: Apache-2.0
"""A matrix product with a constant becomes a convolution whose kernel is one element.

    y = MatMul(x, w)        x: (..., K), w: (K, N)
        ->  y = Reshape(Conv(Reshape(x, (-1, K, 1, 1)), v), (..., N))        v: (N, K, 1, 1), v[n, k] = w[k, n]
    y = Gemm(x, w, c)       the same, with alpha in v and beta c as the convolution's bias
    y = Einsum("..k,kn->..n", x, w)        the same as MatMul

For Turing GPUs (compute capability 7.5), for which TensorRT-RTX has float32 convolutions but no float32 matrix
product ("FP32 GEMM is not supported"). Law: outputs do not change beyond the order of a sum.
"""

import re
from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.backend_kit.transforms.operator_versions import version_of
from nndeploy.plugin.interface import MayTouch
from nndeploy_tensorrt.transforms.node_maker import MADE_HERE, Floats, NodeMaker, array_of
from nndeploy_tensorrt.transforms.quantised import on_axis

OLDEST_OPSET = 10
"""Slice takes its numbers as inputs since operator set 10."""

_PRODUCT_WITH_MATRIX = re.compile(r"(?P<lead>[a-zA-Z]+)(?P<k>[a-zA-Z]),(?P=k)(?P<n>[a-zA-Z])->(?P=lead)(?P=n)")


class MatmulAsConvolution:
    """Replaces float32 matrix products with a constant by convolutions."""

    name = "matmul-as-convolution"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows or a transform before made; returns how many."""
        if (version_of(model.graph.opset_imports, "") or 0) < OLDEST_OPSET:
            return 0
        made = NodeMaker(model.graph)
        touched = [node for node in model.graph if may_touch(node) or MADE_HERE in node.metadata_props]
        count = sum(_replace(made, node) for node in touched)
        if count:
            made.remove_unread()
            ShapeInferencePass()(model)
        return count


def _replace(made: NodeMaker, node: ir.Node) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type not in _FACTORS or len(node.inputs) < 2:
        return False
    x, factors = node.inputs[0], _FACTORS[node.op_type](node)
    if x is None or x.dtype != ir.DataType.FLOAT or x.shape is None or len(x.shape) < 2 or factors is None:
        return False
    weights, bias = factors
    made.at = node
    made.replace_by([_convolved(made, x, weights, bias)])
    return True


def _convolved(made: NodeMaker, x: ir.Value, weights: Floats, bias: Floats | None) -> ir.Value:
    """Returns x times the transposed `weights`, of shape (N, K), plus `bias`."""
    num_out, num_in = weights.shape
    rows = made.op("Reshape", [x, made.sizes(-1, num_in, 1, 1)])
    inputs = [rows, made.floats(weights.reshape(num_out, num_in, 1, 1))]
    if bias is not None:
        inputs.append(made.floats(bias))
    product = made.op("Conv", inputs, [ir.AttrInt64s("kernel_shape", [1, 1])])
    return made.op("Reshape", [product, _shape_of_product(made, x, num_out)])


def _shape_of_product(made: NodeMaker, x: ir.Value, num_out: int) -> ir.Value:
    """Returns the sizes of x with the last one replaced: a constant where at most one of them is not known."""
    assert x.shape is not None, "the caller has looked"
    lead = [dim if isinstance(dim, int) else -1 for dim in x.shape[:-1]]
    if lead.count(-1) <= 1 and 0 not in lead:
        return made.sizes(*lead, num_out)
    sizes = made.op("Slice", [made.op("Shape", [x]), made.sizes(0), made.sizes(len(lead))])
    return made.op("Concat", [sizes, made.sizes(num_out)], [ir.AttrInt64("axis", 0)])


Factors = tuple[Floats, Floats | None]
"""Weights of shape (N, K), and a bias of N numbers or None."""


def _of_matmul(node: ir.Node) -> Factors | None:
    weights = _matrix(node.inputs[1])
    return None if weights is None else (weights.T.copy(), None)


def _of_einsum(node: ir.Node) -> Factors | None:
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    match = _PRODUCT_WITH_MATRIX.fullmatch(equation)
    if match is None or len(node.inputs) != 2 or len(set(equation) - set(",->")) != len(match["lead"]) + 2:
        return None
    return _of_matmul(node)


def _of_gemm(node: ir.Node) -> Factors | None:
    weights = _matrix(node.inputs[1])
    transposed: dict[str, int] = {name: node.attributes.get_int(name, 0) for name in ("transA", "transB")}
    if weights is None or transposed["transA"]:
        return None
    weights = weights if transposed["transB"] else weights.T.copy()
    weights = weights * np.float32(node.attributes.get_float("alpha", 1.0))
    third = node.inputs[2] if len(node.inputs) > 2 else None
    if third is None:
        return weights, None
    bias = array_of(third)
    if bias is None or bias.size not in (1, weights.shape[0]) or (bias.ndim == 2 and bias.shape[0] != 1):
        return None
    beta = np.float32(node.attributes.get_float("beta", 1.0))
    return weights, np.broadcast_to(bias.ravel().astype(np.float32) * beta, weights.shape[:1]).copy()


def _matrix(value: ir.Value | None) -> Floats | None:
    """Returns a constant matrix, also one that is kept quantised and dequantised where it is used."""
    found = array_of(value)
    if found is None:
        found = _dequantised(value)
    if found is None or found.ndim != 2 or found.dtype != np.float32 or 0 in found.shape:
        return None
    return found.astype(np.float32)


def _dequantised(value: ir.Value | None) -> Floats | None:
    node = None if value is None else value.producer()
    if node is None or node.op_type != "DequantizeLinear" or node.domain not in ("", "ai.onnx"):
        return None
    q, scale, zero = (array_of(v) for v in (*node.inputs, None)[:3])
    blocks: dict[str, int] = {name: node.attributes.get_int(name, 0) for name in ("block_size",)}
    if q is None or scale is None or q.ndim != 2 or scale.ndim > 1 or scale.dtype != np.float32 or blocks["block_size"]:
        return None
    along = on_axis(node.attributes.get_int("axis", 1) % q.ndim, q.ndim)
    shift = np.zeros((), np.float32) if zero is None else zero.astype(np.float32)
    return (q.astype(np.float32) - along(shift)) * along(scale.astype(np.float32))


_FACTORS: dict[str, Callable[[ir.Node], Factors | None]] = {
    "MatMul": _of_matmul,
    "Gemm": _of_gemm,
    "Einsum": _of_einsum,
}
