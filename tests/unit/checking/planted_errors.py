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
    random, pads = np.random.default_rng(seed), "pads=[1,1,1,1]"
    held = [_weight("w0", random, CHANNELS, 3, 3, 3), _bias("b0", random, CHANNELS)]
    body = f"c0 = Conv<{pads}>(x, w0, b0) h0 = Relu(c0)"
    for i in range(1, BLOCKS + 1):
        held += [_weight(f"w{i}", random, CHANNELS, CHANNELS, 3, 3), _bias(f"b{i}", random, CHANNELS)]
        normal = random.random((4, CHANNELS)).astype(np.float32) * 0.5 + 0.5
        held += [numpy_helper.from_array(normal[j] * (0.02 if j == 3 else 1), f"n{i}_{j}") for j in range(4)]
        body += f""" c{i} = Conv<{pads}>(h{i - 1}, w{i}, b{i})
            n{i} = BatchNormalization<epsilon=1e-4>(c{i}, n{i}_0, n{i}_1, n{i}_2, n{i}_3)
            r{i} = Relu(n{i}) m{i} = Mul(r{i}, less) h{i} = Add(m{i}, h{i - 1})"""
    outputs, head, rows, window = HEADS[ends_with]
    held += [_weight("wc", random, rows, CHANNELS, *window), _bias("bc", random, rows)]
    return _of_text(f"{outputs} <float less = {{0.2}}, {WHOLE}> {{ {body} {head.format(last=f'h{BLOCKS}')} }}", held)


WHOLE = """int64[3] rows = {1, 5, -1}, int64[1] k = {40}, int64[1] first = {4}, int64[1] behind = {5},
    int64[1] axis = {1}, int64[2] flat = {1, -1}"""
HEADS = {
    "classes": (f"(float[1,{CLASSES}] y)", "g = GlobalAveragePool({last}) f = Flatten(g) y = Gemm<transB=1>(f, wc, bc)",
                CLASSES, ()),
    "list": ("(float[40,5] y, float[1,40] best)", """head = Conv({last}, wc, bc) table = Reshape(head, rows)
        s = Slice(table, first, behind, axis) flat_s = Reshape(s, flat) best, places = TopK(flat_s, k)
        by_place = Transpose<perm=[0,2,1]>(table) one = Squeeze(by_place) index = Squeeze(places)
        y = Gather<axis=0>(one, index)""", 5, (1, 1)),
}  # fmt: skip
"""Outputs, nodes behind the last block, and how many rows and which window their weights have."""


def _of_text(text: str, held: list[TensorProto]) -> ModelProto:
    shape, opsets = ",".join(map(str, SHAPE)), '["": 17, "com.microsoft": 1]'
    model = onnx.parser.parse_model(f"<ir_version: 8, opset_import: {opsets}> network (float[{shape}] x) => {text}")
    model.graph.initializer.extend(held)
    for number, node in enumerate(model.graph.node):
        node.name = f"node{number}"  # ONNX Runtime's quantiser tells nodes by their names
    return model


def _bias(name: str, random: np.random.Generator, size: int) -> TensorProto:
    return numpy_helper.from_array((random.standard_normal(size) * 0.5).astype(np.float32), name)


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
    """Returns three matrix products with Tanh between them; with `bits` 4 their weights are MatMulNBits's."""
    random, held, body = np.random.default_rng(seed), [], "h0 = Reshape(x, flat)"
    for i, (rows, columns) in enumerate(pairwise((3 * SIZE * SIZE, 64, 64, CLASSES)), start=1):
        weight = (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        product = f"MatMul(h{i - 1}, w{i})"
        if bits:
            sizes = f"K={rows}, N={columns}, bits=4, block_size=32"
            product, (weight, scale) = f"com.microsoft.MatMulNBits<{sizes}>(h{i - 1}, w{i}, s{i})", _four_bit(weight)
            held.append(numpy_helper.from_array(scale, f"s{i}"))
        held += [numpy_helper.from_array(weight, f"w{i}"), _bias(f"b{i}", random, columns)]
        body += f" p{i} = {product} " + (f"a{i} = Add(p{i}, b{i}) h{i} = Tanh(a{i})" if i < 3 else "y = Add(p3, b3)")
    return _of_text(f"(float[1,{CLASSES}] y) <int64[2] flat = {{1, -1}}> {{ {body} }}", held)


def _four_bit(weight: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns weights of (rows, columns) packed for MatMulNBits, and their scales."""
    rows, columns = weight.shape
    blocks = weight.T.reshape(columns, rows // 32, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / 7
    four = np.clip(np.round(blocks / scale) + 8, 0, 15).astype(np.uint8)
    return four[..., 0::2] | (four[..., 1::2] << 4), scale.reshape(-1).astype(np.float32)


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
