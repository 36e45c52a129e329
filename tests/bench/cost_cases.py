# SPDX-License-Identifier: Apache-2.0
"""The models that the cost table is measured with: one operator of a kind, at a grid of sizes.

A case is a chain of `copies` of the same operator, with weights of their own; what three take beyond one is twice what
one takes, without the call, its inputs and outputs and the layouts at the ends. Kinds that cannot be chained without
being fused or removed have one copy, and the call is subtracted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from nndeploy.partition import kinds

Array = npt.NDArray[np.generic]
OPSET = 23
SHORT, LONG = 1, 3


@dataclass(frozen=True)
class Case:
    """A kind of operator at a size: `build` returns the model with so many copies; `chained` says it may have many."""

    kind: str
    size: str
    build: Callable[[int], tuple[onnx.ModelProto, dict[str, Array]]]
    chained: bool


@dataclass
class Graph:
    """A model while it is written: nodes one behind the other."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)

    def given(self, *shape: int) -> str:
        """Returns the name of a new input of floats."""
        return self.given_array(self.random.standard_normal(shape).astype(np.float32))

    def given_array(self, array: Array) -> str:
        """Returns the name of a new input."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        return name

    def weights(self, *shape: int, fan: int = 1) -> str:
        """Returns the name of constant floats, small enough that a chain of sums over `fan` terms stays finite."""
        return self.constant((self.random.standard_normal(shape) / fan**0.5).astype(np.float32))

    def constant(self, array: "Array | np.generic") -> str:
        """Returns the name of a new constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Returns the name of the first output of a new node."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, f"n{len(self.nodes)}", **attributes))
        return names[0]

    def made(self, output: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """Returns the model that gives `output`, and its inputs."""
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
        ]
        given_back = [onnx.ValueInfoProto(name=output)]
        graph = helper.make_graph(self.nodes, "case", given, given_back, self.constants)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=11)
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        if not typed.graph.output[0].type.tensor_type.elem_type:
            typed.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        return typed, self.inputs


Step = Callable[[Graph, str], str]


def _chain(kind: str, size: str, shape: tuple[int, ...], step: Step, *, chained: bool = True) -> Case:
    def build(copies: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
        graph = Graph()
        value = graph.given(*shape)
        for _ in range(copies):
            value = step(graph, value)
        return graph.made(value)

    return Case(kind, size, build, chained)


def cases() -> Iterator[Case]:
    """Yields every case of the table."""
    yield from _convolutions()
    yield from _products()
    yield from _of_sequences()
    yield from _of_rows()
    yield from _of_elements()
    yield from _movements()
    yield from _quantised()
    yield from _trees()


def _convolution(kind: str, channels: int, side: int, kernel: int, groups: int = 1) -> Case:
    def step(graph: Graph, x: str) -> str:
        fan = channels // groups * kernel * kernel
        weight = graph.weights(channels, channels // groups, kernel, kernel, fan=fan)
        bias = graph.weights(channels)
        return graph.node("Conv", x, weight, bias, pads=[kernel // 2] * 4, group=groups)

    return _chain(kind, f"{channels}x{side}x{side}, {kernel}x{kernel}", (1, channels, side, side), step)


def _convolutions() -> Iterator[Case]:
    for channels, side in ((16, 4), (32, 7), (64, 14), (128, 28), (256, 14), (512, 7), (64, 56), (256, 56)):
        yield _convolution(kinds.POINTWISE, channels, side, 1)
    for channels, side in ((8, 4), (16, 14), (32, 28), (64, 28), (64, 56), (128, 28), (256, 14)):
        yield _convolution(kinds.CONVOLUTION_3X3, channels, side, 3)
    for channels, side in ((8, 5), (16, 14), (32, 14), (32, 28), (48, 28), (64, 28)):
        yield _convolution(kinds.CONVOLUTION, channels, side, 5)
    for channels, side in ((16, 4), (64, 7), (128, 14), (64, 28), (96, 56), (64, 112)):
        yield _convolution(kinds.DEPTHWISE, channels, side, 3, channels)
    for side in (8, 28, 64, 112, 224):

        def first(graph: Graph, x: str) -> str:
            weight = graph.weights(32, 3, 3, 3, fan=27)
            return graph.node("Conv", x, weight, graph.weights(32), pads=[1] * 4, strides=[2, 2])

        yield _chain(kinds.FIRST_CONVOLUTION, f"3x{side}x{side}", (1, 3, side, side), first, chained=False)
    for channels, side in ((8, 4), (16, 14), (32, 28), (64, 28)):

        def transposed(graph: Graph, x: str, channels: int = channels) -> str:
            weight = graph.weights(channels, channels, 2, 2, fan=channels)
            return graph.node("ConvTranspose", x, weight, graph.weights(channels), strides=[2, 2])

        size = f"{channels}x{side}x{side}"
        yield _chain(kinds.TRANSPOSED_CONVOLUTION, size, (1, channels, side, side), transposed, chained=False)


def _products() -> Iterator[Case]:
    rows_of = {
        kinds.ROW_PRODUCT: ((1, 32), (1, 128), (1, 384), (1, 768), (1, 1536)),
        kinds.SMALL_PRODUCT: ((4, 32), (8, 128), (16, 256), (16, 512), (16, 768)),
        kinds.PRODUCT: ((32, 32), (64, 128), (128, 256), (128, 512), (197, 768)),
    }
    for kind, sizes in rows_of.items():
        for rows, width in sizes:

            def step(graph: Graph, x: str, width: int = width) -> str:
                return graph.node("Gemm", x, graph.weights(width, width, fan=width), graph.weights(width))

            yield _chain(kind, f"{rows}x{width}", (rows, width), step)
    for heads, rows, width in ((1, 8, 8), (4, 32, 32), (8, 64, 64), (12, 128, 64), (12, 197, 197)):

        def by_value(graph: Graph, x: str, shape: tuple[int, ...] = (1, heads, width, width)) -> str:
            other = "x1" if "x1" in graph.inputs else graph.given(*shape)
            return graph.node("MatMul", x, other)

        yield _chain(kinds.VALUES_PRODUCT, f"{heads}x{rows}x{width}", (1, heads, rows, width), by_value)


def _of_sequences() -> Iterator[Case]:
    for steps, width in ((1, 16), (1, 64), (1, 128), (20, 32), (50, 64), (50, 128), (100, 128)):

        def recurrent(graph: Graph, x: str, width: int = width) -> str:
            w, r = (graph.weights(1, 4 * width, width, fan=width) for _ in range(2))
            y = graph.node("LSTM", x, w, r, graph.weights(1, 8 * width, fan=16), hidden_size=width)
            return graph.node("Squeeze", y, graph.constant(np.array([1], np.int64)))

        yield _chain(kinds.RECURRENT, f"{steps}x{width}", (steps, 1, width), recurrent)
    for heads, rows, width in ((1, 8, 8), (4, 32, 32), (8, 64, 64), (12, 128, 64), (12, 197, 64)):

        def attended(graph: Graph, x: str) -> str:
            return graph.node("Attention", x, x, x)

        yield _chain(kinds.ATTENTION, f"{heads}x{rows}x{width}", (1, heads, rows, width), attended)


def _of_rows() -> Iterator[Case]:
    for rows, width in ((1, 16), (8, 64), (64, 256), (128, 768), (1024, 768)):

        def normalised(graph: Graph, x: str, width: int = width) -> str:
            return graph.node("LayerNormalization", x, graph.weights(width), graph.weights(width))

        yield _chain(kinds.NORMALISATION, f"{rows}x{width}", (rows, width), normalised)
    for rows, width in ((1, 10), (12, 32), (128, 128), (1536, 128), (2364, 197)):
        yield _chain(kinds.SOFTMAX, f"{rows}x{width}", (rows, width), lambda graph, x: graph.node("Softmax", x))
    for channels, side in ((8, 4), (64, 7), (256, 14), (256, 28), (256, 56)):

        def mean(graph: Graph, x: str) -> str:
            return graph.node("ReduceMean", x, graph.constant(np.array([2, 3], np.int64)))

        size, shape = f"{channels}x{side}x{side}", (1, channels, side, side)
        yield _chain(kinds.REDUCTION, size, shape, mean, chained=False)

        def pooled(graph: Graph, x: str) -> str:
            return graph.node("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)

        yield _chain(kinds.POOLING, size, shape, pooled)


ELEMENTS = (64, 1 << 12, 1 << 15, 1 << 18, 1 << 20)


def _of_elements() -> Iterator[Case]:
    for count in ELEMENTS:
        shape = (1, count // 16, 16)

        def added(graph: Graph, x: str, shape: tuple[int, ...] = shape) -> str:
            return graph.node("Add", x, graph.weights(*shape))

        yield _chain(kinds.ELEMENTWISE, str(count), shape, added, chained=False)
        yield _chain(kinds.FUNCTION, str(count), shape, lambda graph, x: graph.node("Sigmoid", x), chained=False)


def _movements() -> Iterator[Case]:
    for channels, side in ((4, 4), (16, 16), (32, 32), (128, 28), (128, 64)):
        size, shape = f"{channels}x{side}x{side}", (1, channels, side, side)

        def turned(graph: Graph, x: str) -> str:
            return graph.node("Transpose", x, perm=[0, 2, 3, 1])

        def resized(graph: Graph, x: str) -> str:
            scales = graph.constant(np.array([1, 1, 2, 2], np.float32))
            return graph.node("Resize", x, "", scales, mode="linear")

        def gathered(graph: Graph, x: str, channels: int = channels) -> str:
            indices = graph.given_array(np.arange(channels, dtype=np.int64)[::-1].copy())
            return graph.node("Gather", x, indices, axis=1)

        yield _chain(kinds.MOVEMENT, size, shape, turned, chained=False)
        yield _chain(kinds.RESIZE, size, shape, resized, chained=False)
        yield _chain(kinds.GATHER, size, shape, gathered, chained=False)


def _quantised_value(graph: Graph, x: str, scale: float = 0.05) -> str:
    numbers = (graph.constant(np.float32(scale)), graph.constant(np.uint8(128)))
    return graph.node("DequantizeLinear", graph.node("QuantizeLinear", x, *numbers), *numbers)


def _quantised_weights(graph: Graph, *shape: int) -> str:
    numbers = graph.random.integers(-127, 128, shape).astype(np.int8)
    scale = np.float32(0.01 / max(1, int(np.prod(shape[1:]))) ** 0.5)
    return graph.node("DequantizeLinear", graph.constant(numbers), graph.constant(scale), graph.constant(np.int8(0)))


def _quantised() -> Iterator[Case]:
    for channels, side in ((16, 4), (32, 14), (64, 28), (128, 28), (256, 14)):

        def convolved(graph: Graph, x: str, channels: int = channels) -> str:
            y = graph.node("Conv", _quantised_value(graph, x), _quantised_weights(graph, channels, channels, 3, 3),
                           pads=[1] * 4)  # fmt: skip
            return _quantised_value(graph, y)

        yield _chain(kinds.QUANTISED_CONVOLUTION, f"{channels}x{side}x{side}", (1, channels, side, side), convolved)
    for rows, width in ((1, 64), (16, 128), (64, 256), (128, 512), (128, 768)):

        def multiplied(graph: Graph, x: str, width: int = width) -> str:
            y = graph.node("MatMul", _quantised_value(graph, x), _quantised_weights(graph, width, width))
            return _quantised_value(graph, y)

        yield _chain(kinds.QUANTISED_PRODUCT, f"{rows}x{width}", (rows, width), multiplied)
    for count in ELEMENTS:

        def rounded(graph: Graph, x: str) -> str:
            numbers = (graph.constant(np.float32(0.05)), graph.constant(np.uint8(128)))
            return graph.node("QuantizeLinear", x, *numbers)

        yield _chain(kinds.QUANTISATION, str(count), (1, count // 16, 16), rounded, chained=False)


FEATURES = 16


def _trees() -> Iterator[Case]:
    for rows, count, levels in ((1, 10, 4), (1, 100, 6), (16, 60, 6), (64, 100, 7), (512, 100, 8)):

        def grown(graph: Graph, x: str, count: int = count, levels: int = levels) -> str:
            return graph.node("TreeEnsembleRegressor", x, domain="ai.onnx.ml", **_whole_trees(graph, count, levels))

        yield _chain(kinds.TREES, f"{rows} by {count} of {levels}", (rows, FEATURES), grown, chained=False)


def _whole_trees(graph: Graph, count: int, levels: int) -> dict[str, Any]:
    """Returns trees all of whose leaves lie on the last level; rows of normal numbers take each about as often."""
    inner, nodes = 2**levels - 1, 2 ** (levels + 1) - 1
    numbers = np.arange(nodes)
    branches = numbers < inner
    every = np.tile(branches, count)
    leaves = count * (nodes - inner)
    return {
        "nodes_treeids": np.repeat(np.arange(count), nodes).tolist(),
        "nodes_nodeids": np.tile(numbers, count).tolist(),
        "nodes_featureids": np.where(every, graph.random.integers(0, FEATURES, every.size), 0).tolist(),
        "nodes_values": np.where(every, 0.5 * graph.random.standard_normal(every.size), 0.0).tolist(),
        "nodes_modes": np.where(every, "BRANCH_LEQ", "LEAF").tolist(),
        "nodes_truenodeids": np.where(every, np.tile(2 * numbers + 1, count), 0).tolist(),
        "nodes_falsenodeids": np.where(every, np.tile(2 * numbers + 2, count), 0).tolist(),
        "target_treeids": np.repeat(np.arange(count), nodes - inner).tolist(),
        "target_nodeids": np.tile(numbers[inner:], count).tolist(),
        "target_ids": [0] * leaves,
        "target_weights": graph.random.standard_normal(leaves).tolist(),
        "n_targets": 1,
    }


def chain_of_small(copies: int, *, any_size: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Returns `copies` softmaxes of a few numbers, of any number of rows or of one: what a node costs at least."""
    graph = Graph()
    value = graph.given(1, 8)
    for _ in range(copies):
        value = graph.node("Softmax", value)
    model, inputs = graph.made(value)
    if any_size:
        for one in (*model.graph.input, *model.graph.output):
            one.type.tensor_type.shape.dim[0].dim_param = "N"
        del model.graph.value_info[:]
    return model, inputs


FOLLOWED = {"convolution": (1, 64, 56, 56), "product": (1024, 64), "elementwise": (1024, 128)}
"""The shapes of the values that an elementwise operator follows on, by what it follows."""


def followed(head: str, copies: int, *, with_follower: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Returns `copies` operators of a kind, each followed by an elementwise one or not."""
    graph = Graph()
    value = graph.given(*FOLLOWED[head])
    for _ in range(copies):
        value = _HEADS[head](graph, value)
        if with_follower:
            value = graph.node("Relu", value)
    return graph.made(value)


_HEADS: dict[str, Step] = {
    "convolution": lambda graph, x: graph.node("Conv", x, graph.weights(64, 64, 1, 1, fan=64)),
    "product": lambda graph, x: graph.node("Gemm", x, graph.weights(64, 64, fan=64), graph.weights(64)),
    "elementwise": lambda graph, x: graph.node("Sigmoid", x),
}
