# SPDX-License-Identifier: Apache-2.0
"""Small networks of every kind, and errors that a backend might make with them, planted one at a time.

The networks are float; ONNX Runtime's own quantiser makes the others of them, from a seed.
"""

import logging
import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

CHANNELS, SIZE, CLASSES = 16, 16, 12
BLOCKS = 4
SHAPE = (1, 3, SIZE, SIZE)


def sample(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Returns an input with structure, as a picture has it: smooth, and not centred on zero."""
    random = np.random.default_rng(seed)
    small = random.standard_normal((1, 3, 4, 4)).astype(np.float32)
    return {"x": np.kron(small, np.ones((4, 4), np.float32)) + 0.3 * random.random(SHAPE, dtype=np.float32)}


def _weight(name: str, random: np.random.Generator, *shape: int) -> TensorProto:
    fan_in = int(np.prod(shape[1:])) or 1
    return numpy_helper.from_array((random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32), name)


def network(seed: int = 0, *, ends_with: str = "classes") -> ModelProto:
    """Returns convolutions with residuals and batch normalisation, ending in class scores, or in a detector's list."""
    random = np.random.default_rng(seed)
    inits = [_weight("w0", random, CHANNELS, 3, 3, 3), _bias("b0", random, CHANNELS)]
    nodes = [helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], "conv0", pads=[1] * 4, kernel_shape=[3, 3])]
    nodes.append(helper.make_node("Relu", ["c0"], ["h0"], "relu0"))
    for i in range(1, BLOCKS + 1):
        inits += [_weight(f"w{i}", random, CHANNELS, CHANNELS, 3, 3), _bias(f"b{i}", random, CHANNELS)]
        normal = random.random((4, CHANNELS)).astype(np.float32) * 0.5 + 0.5
        inits += [numpy_helper.from_array(normal[j] * (0.02 if j == 3 else 1), f"n{i}_{j}") for j in range(4)]
        nodes += [
            helper.make_node(
                "Conv", [f"h{i - 1}", f"w{i}", f"b{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4, kernel_shape=[3, 3]
            ),
            helper.make_node(
                "BatchNormalization", [f"c{i}", *(f"n{i}_{j}" for j in range(4))], [f"n{i}"], f"norm{i}", epsilon=1e-4
            ),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"], f"relu{i}"),
            helper.make_node("Mul", [f"r{i}", "less"], [f"m{i}"], f"mul{i}"),
            helper.make_node("Add", [f"m{i}", f"h{i - 1}"], [f"h{i}"], f"add{i}"),
        ]
    inits.append(numpy_helper.from_array(np.float32(0.2), "less"))
    last = f"h{BLOCKS}"
    more_nodes, more_inits, outputs = _DETECTOR(last, random) if ends_with == "list" else _CLASSES(last, random)
    graph = helper.make_graph(
        [*nodes, *more_nodes], "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)], outputs,
        [*inits, *more_inits],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _bias(name: str, random: np.random.Generator, size: int) -> TensorProto:
    return numpy_helper.from_array((random.standard_normal(size) * 0.5).astype(np.float32), name)


def _classes(last: str, random: np.random.Generator) -> tuple[Any, Any, Any]:
    inits = [_weight("wc", random, CLASSES, CHANNELS), _bias("bc", random, CLASSES)]
    nodes = [
        helper.make_node("GlobalAveragePool", [last], ["g"], "pool"),
        helper.make_node("Flatten", ["g"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "wc", "bc"], ["y"], "gemm", transB=1),
    ]
    return nodes, inits, [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, CLASSES))]


def _list(last: str, random: np.random.Generator) -> tuple[Any, Any, Any]:
    inits = [
        _weight("wc", random, 5, CHANNELS, 1, 1), _bias("bc", random, 5),
        numpy_helper.from_array(np.array([1, 5, -1]), "rows"), numpy_helper.from_array(np.array([40]), "k"),
        numpy_helper.from_array(np.array([4]), "from"), numpy_helper.from_array(np.array([5]), "to"),
        numpy_helper.from_array(np.array([1]), "axis"), numpy_helper.from_array(np.array([1, -1]), "flat"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("Conv", [last, "wc", "bc"], ["head"], "head", kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["head", "rows"], ["table"], "table"),
        helper.make_node("Slice", ["table", "from", "to", "axis"], ["s"], "scores"),
        helper.make_node("Reshape", ["s", "flat"], ["flat_s"], "flatten"),
        helper.make_node("TopK", ["flat_s", "k"], ["best", "places"], "top"),
        helper.make_node("Transpose", ["table"], ["by_place"], "turn", perm=[0, 2, 1]),
        helper.make_node("Squeeze", ["by_place"], ["one"], "one"),
        helper.make_node("Squeeze", ["places"], ["index"], "index"),
        helper.make_node("Gather", ["one", "index"], ["y"], "gather", axis=0),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (40, 5)),
        helper.make_tensor_value_info("best", TensorProto.FLOAT, (1, 40)),
    ]
    return nodes, inits, outputs


_CLASSES, _DETECTOR = _classes, _list


def in_float16(model: ModelProto) -> ModelProto:
    """Returns the network in 16-bit floats."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: ModelProto = convert_float_to_float16(
            onnx.ModelProto.FromString(model.SerializeToString()), keep_io_types=True
        )
    return found


class _Reader:
    def __init__(self) -> None:
        self._samples = iter([sample(seed) for seed in range(4)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._samples, None)


def quantised(model: ModelProto, *, operators: bool = False, per_channel: bool = False) -> ModelProto:
    """Returns the network quantised statically by ONNX Runtime's tool; 7-bit weights, so that no sum saturates."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)
    try:
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = Path(folder) / "q.onnx"
            quantize_static(
                model, out, _Reader(), quant_format=QuantFormat.QOperator if operators else QuantFormat.QDQ,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, per_channel=per_channel,
                reduce_range=True,
            )  # fmt: skip
            return onnx.load(out)
    finally:
        logging.disable(logging.NOTSET)


def quantised_dynamically(model: ModelProto) -> ModelProto:
    """Returns the network with weights in 8 bits and activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)
    try:
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = Path(folder) / "q.onnx"
            quantize_dynamic(model, out, weight_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"])
            return onnx.load(out)
    finally:
        logging.disable(logging.NOTSET)


def perceptron(seed: int = 0, *, bits: int = 0) -> ModelProto:
    """Returns three matrix products with GELU between them; with `bits` 4 their weights are MatMulNBits's."""
    random = np.random.default_rng(seed)
    widths = (3 * SIZE * SIZE, 64, 64, CLASSES)
    inits = [numpy_helper.from_array(np.array([1, -1]), "flat")]
    nodes = [helper.make_node("Reshape", ["x", "flat"], ["h0"], "flatten")]
    for i, (rows, columns) in enumerate(pairwise(widths), start=1):
        weight = (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        if bits:
            nodes.append(_four_bit(i, weight, inits))
        else:
            inits.append(numpy_helper.from_array(weight, f"w{i}"))
            nodes.append(helper.make_node("MatMul", [f"h{i - 1}", f"w{i}"], [f"p{i}"], f"matmul{i}"))
        inits.append(_bias(f"b{i}", random, columns))
        nodes.append(helper.make_node("Add", [f"p{i}", f"b{i}"], ["y" if i == 3 else f"a{i}"], f"bias{i}"))
        if i < 3:
            nodes.append(helper.make_node("Tanh", [f"a{i}"], [f"h{i}"], f"tanh{i}"))
    graph = helper.make_graph(
        nodes, "perceptron", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, CLASSES))], inits,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _four_bit(i: int, weight: np.ndarray[Any, Any], inits: list[TensorProto]) -> onnx.NodeProto:
    rows, columns = weight.shape
    blocks = weight.T.reshape(columns, rows // 32, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / 7
    four = np.clip(np.round(blocks / scale) + 8, 0, 15).astype(np.uint8)
    inits.append(numpy_helper.from_array(four[..., 0::2] | (four[..., 1::2] << 4), f"w{i}"))
    inits.append(numpy_helper.from_array(scale.reshape(-1).astype(np.float32), f"s{i}"))
    return helper.make_node(
        "MatMulNBits", [f"h{i - 1}", f"w{i}", f"s{i}"], [f"p{i}"], f"matmul{i}", domain="com.microsoft",
        K=rows, N=columns, bits=4, block_size=32,
    )  # fmt: skip


@cache
def model_of(kind: str) -> ModelProto:
    """Returns the network of a kind."""
    return KINDS[kind]()


KINDS: dict[str, Callable[[], ModelProto]] = {
    "float": network, "float16": lambda: in_float16(network()), "qdq": lambda: quantised(network()),
    "qdq per channel": lambda: quantised(network(), per_channel=True),
    "qlinear": lambda: quantised(network(), operators=True), "dynamic": lambda: quantised_dynamically(perceptron()),
    "4 bits": lambda: perceptron(bits=4), "detector": lambda: network(ends_with="list"),
    "detector qdq": lambda: quantised(network(ends_with="list")),
}  # fmt: skip


def with_error(model: ModelProto, error: str) -> ModelProto | None:
    """Returns a copy of a model with an error in it, None where it has no place for it."""
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    return changed if ERRORS[error](changed) else None


def _initializer(model: ModelProto, fits: Callable[[str, np.ndarray[Any, Any]], bool]) -> TensorProto | None:
    found = [t for t in model.graph.initializer if fits(t.name, numpy_helper.to_array(t))]
    return found[len(found) // 2] if found else None


def _edit(model: ModelProto, fits: Callable[[str, np.ndarray[Any, Any]], bool], change: Callable[
    [np.ndarray[Any, Any]], np.ndarray[Any, Any],
]) -> bool:  # fmt: skip
    tensor = _initializer(model, fits)
    if tensor is None:
        return False
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(change(array.copy()).astype(array.dtype), tensor.name))
    return True


def _is_weight(name: str, array: np.ndarray[Any, Any]) -> bool:
    return name.startswith("w") and "scale" not in name and "zero" not in name and array.ndim >= 2


def _one_scale(model: ModelProto) -> bool:
    """Changes the scale of the first weight, or of one channel or block of it."""
    return _edit(
        model,
        lambda name, a: name == "s1" or (name.startswith(("w0", "w1")) and "scale" in name),
        lambda a: a * np.where(a == a.max(), 2.0, 1.0) if a.size > 1 else a * 1.25,
    )


def _swapped(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    a[[0, 1]] = a[[1, 0]]
    return a


def _dropped_bias(model: ModelProto) -> bool:
    return _edit(
        model, lambda n, a: n.startswith("b") and "scale" not in n and "zero" not in n and a.size > 1, np.zeros_like
    )


def _zero_point(model: ModelProto) -> bool:
    """Reads one activation with another zero point than it was written with."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    readers = [
        node
        for node in model.graph.node
        if (node.op_type == "QLinearConv" or (node.op_type == "DequantizeLinear" and node.input[0] not in constants))
        and constants[node.input[2]].dtype == np.uint8
    ]
    if not readers:
        return False
    node = readers[len(readers) // 2]
    zero = constants[node.input[2]]
    model.graph.initializer.append(
        numpy_helper.from_array((zero + 1 if zero < 255 else zero - 1).astype(np.uint8), "another_zero")
    )
    node.input[2] = "another_zero"
    return True


def _attribute(model: ModelProto, operators: tuple[str, ...], name: str, value: Any) -> bool:
    nodes = [n for n in model.graph.node if n.op_type in operators and any(a.name == name for a in n.attribute)]
    nodes = [n for n in nodes if name != "pads" or any(helper.get_attribute_value(a) == [1] * 4 for a in n.attribute)]
    if not nodes:
        return False
    for attribute in nodes[len(nodes) // 2].attribute:
        if attribute.name == name:
            attribute.CopyFrom(helper.make_attribute(name, value(helper.get_attribute_value(attribute))))
    return True


ERRORS: dict[str, Callable[[ModelProto], bool]] = {
    "a scale": _one_scale, "swapped channels": lambda m: _edit(m, _is_weight, _swapped),
    "a dropped bias": _dropped_bias,
    "a transposed weight": lambda m: _edit(
        m, lambda n, a: _is_weight(n, a) and a.shape[0] == a.shape[1],
        lambda a: np.ascontiguousarray(np.swapaxes(a, 0, 1)),
    ),
    "a zero point off by one": _zero_point,
    "padding on the other side": lambda m: _attribute(m, ("Conv", "QLinearConv"), "pads", lambda _: [2, 2, 0, 0]),
    "another epsilon": lambda m: _attribute(m, ("BatchNormalization",), "epsilon", lambda e: e * 100),
}  # fmt: skip
