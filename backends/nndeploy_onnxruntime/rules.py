# SPDX-License-Identifier: Apache-2.0
"""Nodes that ONNX Runtime would take and get wrong, or that end the process: refused before the library is asked.

Each rule was seen with onnxruntime 1.31.1, on a case of ONNX's own backend test suite or of tests/oracle. What ends the
process on few numbers alone is replaced: `safe_operators.py`.
"""

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy_onnxruntime.safe_operators import is_unsafe_division

_SELECTED = frozenset({ir.DataType.INT8, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8})
"""Integers that Where takes."""
_FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.BFLOAT16})


def rule(node: ir.Node) -> str:
    """Returns why `node`, with all in its bodies, is refused, or ""."""
    return next((reason for inner in _with_bodies(node) if (reason := _wrong(inner))), "")


def _wrong(node: ir.Node) -> str:
    domain = "" if node.domain == "ai.onnx" else node.domain
    found = _RULES_OF_DOMAINS.get(domain, {}).get(node.op_type)
    reason = found(node) if found is not None else ""
    return f"ONNX Runtime {reason}" if reason else ""


def _dropout(node: ir.Node) -> str:
    mode = operand(node, 2)
    is_training = mode is not None and not ((given := constant_of(mode)) is not None and not given.numpy().any())
    return "draws other numbers than ONNX's own" if is_training and "seed" in node.attributes else ""


def _unpool(node: ir.Node) -> str:
    return "counts the indices of MaxUnpool in another shape where the output's is given" if operand(node, 2) else ""


def _reduction(node: ir.Node) -> str:
    value = operand(node, 0)
    if value is None or value.dtype != ir.DataType.BOOL:
        return ""
    is_open = value.shape is None or any(not isinstance(size, int) or size == 0 for size in value.shape)
    return f"has no {node.op_type} of no truth values" if is_open else ""


def _dft(node: ir.Node) -> str:
    return "is 1e-5 off in an inverse DFT where the result is 0" if int_attribute(node, "inverse", 0) else ""


def _pool(node: ir.Node) -> str:
    if not text_attribute(node, "auto_pad", "NOTSET").startswith("SAME"):
        return ""
    kernel = ints_attribute(node, "kernel_shape") or ()
    strides = ints_attribute(node, "strides") or (1,) * len(kernel)
    is_dilated = any(one > 1 for one in ints_attribute(node, "dilations") or ())
    is_sparse = node.op_type != "Conv" and any(stride > size for stride, size in zip(strides, kernel, strict=False))
    return f"pads {node.op_type} otherwise where windows are dilated or lie apart" if is_dilated or is_sparse else ""


def _recurrent(node: ir.Node) -> str:
    value, activations = operand(node, 0), node.attributes.get("activations")
    if value is not None and value.dtype == ir.DataType.DOUBLE:
        return f"has no {node.op_type} of float64"
    names = [] if activations is None else [name.lower() for name in activations.as_strings()]
    return "has another ThresholdedRelu as an activation" if "thresholdedrelu" in names else ""


def _shrink(node: ir.Node) -> str:
    value = operand(node, 0)
    return "computes Shrink of integers by integers" if value is not None and value.dtype not in _FLOATS else ""


def _sign(node: ir.Node) -> str:
    value = operand(node, 0)
    return (
        "gives 0 for the sign of a NaN of float16" if value is not None and value.dtype == ir.DataType.FLOAT16 else ""
    )


def _stft(node: ir.Node) -> str:
    frame, window = operand(node, 3), operand(node, 2)
    if frame is not None:
        return "" if _is_positive(frame) else "divides by the length of a frame, which may be 0"
    size = None if window is None or window.shape is None or len(window.shape) != 1 else window.shape[0]
    return "" if isinstance(size, int) and size > 0 else "divides by the size of a window, which may be 0"


def _split(node: ir.Node) -> str:
    split = operand(node, 1)
    if split is not None and not int_attribute(node, "keepdims", 1):
        return "takes an axis from parts of SplitToSequence whose sizes are given"
    return "" if split is None or _is_positive(split) else "divides by the size of a part, which may be 0"


def _summed(node: ir.Node) -> str:
    value = operand(node, 0)
    is_whole = value is not None and value.dtype == ir.DataType.INT32
    return f"makes the largest number of a {node.op_type} of int32 that wraps" if is_whole else ""


def _loop(node: ir.Node) -> str:
    body = node.attributes["body"].as_graph()
    if any(value.dtype == ir.DataType.STRING for value in body.outputs[len(node.inputs) - 1 :]):
        return "leaves empty text behind where a Loop stacks it"
    if operand(node, 1) is not None or len(body.inputs) < 2:
        return ""
    going = body.outputs[0]
    while (producer := going.producer()) is not None and producer.op_type == "Identity" and producer.inputs[0]:
        going = producer.inputs[0]
    return "" if going is body.inputs[1] or _is_positive(going) else "ends a counted Loop where its body says so"


def _non_zero(node: ir.Node) -> str:
    value = operand(node, 0)
    return "" if value is None or value.shape is None or len(value.shape) else "takes a scalar of NonZero for a vector"


def _scatter(node: ir.Node) -> str:
    return "passes over NaN in ScatterND" if text_attribute(node, "reduction", "none") in ("max", "min") else ""


def _grouped(node: ir.Node) -> str:
    return "has no ConvInteger of groups" if int_attribute(node, "group", 1) > 1 else ""


def _transposed(node: ir.Node) -> str:
    more = ints_attribute(node, "output_padding") or ()
    strides = ints_attribute(node, "strides") or (1,) * len(more)
    is_more = any(one >= stride for one, stride in zip(more, strides, strict=False))
    return "has no ConvTranspose with more output padding than its strides" if is_more else ""


def _einsum(node: ir.Node) -> str:
    equation = text_attribute(node, "equation", "")
    return "" if equation == equation.lower() else "has no Einsum of upper case"


def _zero_points(node: ir.Node) -> str:
    zero = operand(node, 2)
    is_one = zero is None or (zero.shape is not None and all(size == 1 for size in zero.shape))
    return "" if is_one else "has no MatMulInteger with a zero point for each row"


def _cast(node: ir.Node) -> str:
    is_float8 = node.outputs[0].dtype in (ir.DataType.FLOAT8E5M2, ir.DataType.FLOAT8E5M2FNUZ)
    return "gives NaN for infinity" if is_float8 and not int_attribute(node, "saturate", 1) else ""


def _division(node: ir.Node) -> str:
    kind = node.outputs[0].dtype
    if kind is None or kind in _SELECTED or not is_unsafe_division(node):
        return ""
    return f"divides {kind.numpy().name} by what may be 0 or -1, and has no Where of it"


def _inverse(node: ir.Node) -> str:
    value = operand(node, 0)
    sides = [] if value is None or value.shape is None else [size for size in value.shape[-2:] if isinstance(size, int)]
    is_square = len(sides) == 2 and sides[0] == sides[1] > 0
    return "" if is_square else "reads beyond a matrix that is not square, or empty"


def _is_positive(value: ir.Value) -> bool:
    constant = constant_of(value)
    return constant is not None and bool(np.all(constant.numpy() > 0))


_RULES: dict[str, Callable[[ir.Node], str]] = {
    **dict.fromkeys(("Div", "Mod"), _division),
    **dict.fromkeys(("AveragePool", "Conv", "LpPool", "MaxPool"), _pool),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _reduction),
    **dict.fromkeys(("ReduceL1", "ReduceSumSquare"), _summed),
    "Cast": _cast,
    "ConvInteger": _grouped,
    "ConvTranspose": _transposed,
    "DFT": _dft,
    "Dropout": _dropout,
    "Einsum": _einsum,
    "Loop": _loop,
    "MatMulInteger": _zero_points,
    "MaxUnpool": _unpool,
    "NonZero": _non_zero,
    "STFT": _stft,
    "ScatterND": _scatter,
    "Shrink": _shrink,
    "Sign": _sign,
    "SplitToSequence": _split,
}


def _label_encoder(node: ir.Node) -> str:
    keys = [np.asarray(node.attributes["keys_floats"].as_floats())] if "keys_floats" in node.attributes else []
    if "keys_tensor" in node.attributes and (tensor := node.attributes["keys_tensor"].as_tensor()).dtype in _FLOATS:
        keys.append(tensor.numpy())
    return "finds no NaN among the keys of a LabelEncoder" if any(np.isnan(some).any() for some in keys) else ""


_RULES_OF_DOMAINS: dict[str, dict[str, Callable[[ir.Node], str]]] = {
    "": _RULES,
    "com.microsoft": {"Inverse": _inverse},
    "ai.onnx.ml": {"LabelEncoder": _label_encoder},
}


def _with_bodies(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for body in bodies(node):
        yield from body.all_nodes()
