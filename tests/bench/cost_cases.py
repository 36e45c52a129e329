# SPDX-License-Identifier: Apache-2.0
"""The models that the cost table is measured with: one operator of a kind, at a grid of sizes.

A case is a chain of `copies` of the same operator, with weights of their own; what three take beyond one is twice what
one takes, without the call, its inputs and outputs and the layouts at the ends. Kinds that cannot be chained without
being fused or removed have one copy, and the call is subtracted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx
from interleaved import Array
from onnx import TensorProto, helper, numpy_helper

from nndeploy.partition import kinds

OPSET, SHORT, LONG = 23, 1, 3
ELEMENTS = (64, 1 << 12, 1 << 15, 1 << 18, 1 << 20)
FEATURES = 16
FOLLOWED = {"convolution": (1, 64, 56, 56), "product": (1024, 64), "elementwise": (1024, 128)}
"""The shapes of the values that an elementwise operator follows on, by what it follows."""

Made = tuple[onnx.ModelProto, dict[str, Array]]


@dataclass
class Graph:
    """A model while it is written: nodes one behind the other."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)

    def given(self, *shape: int) -> str:
        return self.given_array(self.random.standard_normal(shape).astype(np.float32))

    def given_array(self, array: Array) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        return name

    def weights(self, *shape: int, fan: int = 1) -> str:
        """Returns the name of constant floats, small enough that a chain of sums over `fan` terms stays finite."""
        return self.constant((self.random.standard_normal(shape) / fan**0.5).astype(np.float32))

    def constant(self, array: "Array | np.generic") -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], f"n{len(self.nodes)}", **attributes))
        return output

    def quantised(self, x: str) -> str:
        numbers = (self.constant(np.float32(0.05)), self.constant(np.uint8(128)))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *numbers), *numbers)

    def quantised_weights(self, *shape: int) -> str:
        numbers = self.random.integers(-127, 128, shape).astype(np.int8)
        scale = np.float32(0.01 / max(1, int(np.prod(shape[1:]))) ** 0.5)
        return self.node("DequantizeLinear", self.constant(numbers), self.constant(scale), self.constant(np.int8(0)))

    def made(self, output: str) -> Made:
        """Returns the model that gives `output`, and its inputs."""
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
        ]
        graph = helper.make_graph(self.nodes, "case", given, [onnx.ValueInfoProto(name=output)], self.constants)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=11)
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        if not typed.graph.output[0].type.tensor_type.elem_type:
            typed.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        return typed, self.inputs


Step = Callable[[Graph, str], str]


@dataclass(frozen=True)
class Case:
    """A kind of operator at a size: `step` adds one behind a value; `chained` says there may be many."""

    kind: str
    size: str
    shape: tuple[int, ...]
    step: Step
    chained: bool = True

    def build(self, copies: int) -> Made:
        graph = Graph()
        value = graph.given(*self.shape)
        for _ in range(copies):
            value = self.step(graph, value)
        return graph.made(value)


def cases() -> Iterator[Case]:
    for some in (_convolutions, _products, _of_sequences, _of_rows, _of_elements, _quantised, _trees):
        yield from some()


def _image(kind: str, channels: int, side: int, step: Step, *, chained: bool = True) -> Case:
    return Case(kind, f"{channels}x{side}x{side}", (1, channels, side, side), step, chained)


def _conv(graph: Graph, x: str, inputs: int, outputs: int, kernel: int, groups: int = 1, stride: int = 1) -> str:
    weight = graph.weights(outputs, inputs // groups, kernel, kernel, fan=inputs // groups * kernel * kernel)
    pads = [kernel // 2] * 4
    return graph.node("Conv", x, weight, graph.weights(outputs), pads=pads, group=groups, strides=[stride] * 2)


def _convolutions() -> Iterator[Case]:
    grids = {
        (kinds.POINTWISE, 1): ((16, 4), (32, 7), (64, 14), (128, 28), (256, 14), (512, 7), (64, 56), (256, 56)),
        (kinds.CONVOLUTION_3X3, 3): ((8, 4), (16, 14), (32, 28), (64, 28), (64, 56), (128, 28), (256, 14)),
        (kinds.CONVOLUTION, 5): ((8, 5), (16, 14), (32, 14), (32, 28), (48, 28), (64, 28)),
        (kinds.DEPTHWISE, 3): ((16, 4), (64, 7), (128, 14), (64, 28), (96, 56), (64, 112)),
    }
    for (kind, kernel), grid in grids.items():
        for c, side in grid:
            groups = c if kind == kinds.DEPTHWISE else 1
            yield _image(kind, c, side, partial(_conv, inputs=c, outputs=c, kernel=kernel, groups=groups))
    for side in (8, 28, 64, 112, 224):
        first = partial(_conv, inputs=3, outputs=32, kernel=3, stride=2)
        yield _image(kinds.FIRST_CONVOLUTION, 3, side, first, chained=False)
    for c, side in ((8, 4), (16, 14), (32, 28), (64, 28)):

        def transposed(graph: Graph, x: str, c: int = c) -> str:
            return graph.node("ConvTranspose", x, graph.weights(c, c, 2, 2, fan=c), graph.weights(c), strides=[2, 2])

        yield _image(kinds.TRANSPOSED_CONVOLUTION, c, side, transposed, chained=False)


def _gemm(graph: Graph, x: str, width: int) -> str:
    return graph.node("Gemm", x, graph.weights(width, width, fan=width), graph.weights(width))


def _products() -> Iterator[Case]:
    grids = {
        kinds.ROW_PRODUCT: ((1, 32), (1, 128), (1, 384), (1, 768), (1, 1536)),
        kinds.SMALL_PRODUCT: ((4, 32), (8, 128), (16, 256), (16, 512), (16, 768)),
        kinds.PRODUCT: ((32, 32), (64, 128), (128, 256), (128, 512), (197, 768)),
    }
    for kind, grid in grids.items():
        for rows, width in grid:
            yield Case(kind, f"{rows}x{width}", (rows, width), partial(_gemm, width=width))
    for heads, rows, width in ((1, 8, 8), (4, 32, 32), (8, 64, 64), (12, 128, 64), (12, 197, 197)):

        def by_value(graph: Graph, x: str, shape: tuple[int, ...] = (1, heads, width, width)) -> str:
            return graph.node("MatMul", x, "x1" if "x1" in graph.inputs else graph.given(*shape))

        yield Case(kinds.VALUES_PRODUCT, f"{heads}x{rows}x{width}", (1, heads, rows, width), by_value)


def _of_sequences() -> Iterator[Case]:
    for steps, width in ((1, 16), (1, 64), (1, 128), (20, 32), (50, 64), (50, 128), (100, 128)):

        def recurrent(graph: Graph, x: str, width: int = width) -> str:
            w, r = (graph.weights(1, 4 * width, width, fan=width) for _ in range(2))
            y = graph.node("LSTM", x, w, r, graph.weights(1, 8 * width, fan=16), hidden_size=width)
            return graph.node("Squeeze", y, graph.integers(1))

        yield Case(kinds.RECURRENT, f"{steps}x{width}", (steps, 1, width), recurrent)
    for heads, rows, width in ((1, 8, 8), (4, 32, 32), (8, 64, 64), (12, 128, 64), (12, 197, 64)):
        size, shape = f"{heads}x{rows}x{width}", (1, heads, rows, width)
        yield Case(kinds.ATTENTION, size, shape, lambda graph, x: graph.node("Attention", x, x, x))


def _of_rows() -> Iterator[Case]:
    for rows, width in ((1, 16), (8, 64), (64, 256), (128, 768), (1024, 768)):

        def normalised(graph: Graph, x: str, width: int = width) -> str:
            return graph.node("LayerNormalization", x, graph.weights(width), graph.weights(width))

        yield Case(kinds.NORMALISATION, f"{rows}x{width}", (rows, width), normalised)
    for rows, width in ((1, 10), (12, 32), (128, 128), (1536, 128), (2364, 197)):
        yield Case(kinds.SOFTMAX, f"{rows}x{width}", (rows, width), lambda graph, x: graph.node("Softmax", x))
    for c, side in ((8, 4), (64, 7), (256, 14), (256, 28), (256, 56)):
        mean: Step = lambda graph, x: graph.node("ReduceMean", x, graph.integers(2, 3))  # noqa: E731
        pooled: Step = lambda graph, x: graph.node("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)  # noqa: E731
        yield _image(kinds.REDUCTION, c, side, mean, chained=False)
        yield _image(kinds.POOLING, c, side, pooled)


def _resized(graph: Graph, x: str) -> str:
    return graph.node("Resize", x, "", graph.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")


def _rounded(graph: Graph, x: str) -> str:
    return graph.node("QuantizeLinear", x, graph.constant(np.float32(0.05)), graph.constant(np.uint8(128)))


def _of_elements() -> Iterator[Case]:
    for count in ELEMENTS:
        shape = (1, count // 16, 16)

        def added(graph: Graph, x: str, shape: tuple[int, ...] = shape) -> str:
            return graph.node("Add", x, graph.weights(*shape))

        steps: dict[str, Step] = {
            kinds.ELEMENTWISE: added, kinds.FUNCTION: lambda graph, x: graph.node("Sigmoid", x),
            kinds.QUANTISATION: _rounded,
        }  # fmt: skip
        yield from (Case(kind, str(count), shape, step, chained=False) for kind, step in steps.items())
    for c, side in ((4, 4), (16, 16), (32, 32), (128, 28), (128, 64)):

        def gathered(graph: Graph, x: str, c: int = c) -> str:
            return graph.node("Gather", x, graph.given_array(np.arange(c, dtype=np.int64)[::-1].copy()), axis=1)

        moves: dict[str, Step] = {
            kinds.MOVEMENT: lambda graph, x: graph.node("Transpose", x, perm=[0, 2, 3, 1]), kinds.RESIZE: _resized,
            kinds.GATHER: gathered,
        }  # fmt: skip
        yield from (_image(kind, c, side, step, chained=False) for kind, step in moves.items())


def _quantised() -> Iterator[Case]:
    for c, side in ((16, 4), (32, 14), (64, 28), (128, 28), (256, 14)):

        def convolved(graph: Graph, x: str, c: int = c) -> str:
            given = (graph.quantised(x), graph.quantised_weights(c, c, 3, 3))
            return graph.quantised(graph.node("Conv", *given, pads=[1] * 4))

        yield _image(kinds.QUANTISED_CONVOLUTION, c, side, convolved)
    for rows, width in ((1, 64), (16, 128), (64, 256), (128, 512), (128, 768)):

        def multiplied(graph: Graph, x: str, width: int = width) -> str:
            return graph.quantised(graph.node("MatMul", graph.quantised(x), graph.quantised_weights(width, width)))

        yield Case(kinds.QUANTISED_PRODUCT, f"{rows}x{width}", (rows, width), multiplied)


def _trees() -> Iterator[Case]:
    for rows, count, levels in ((1, 10, 4), (1, 100, 6), (16, 60, 6), (64, 100, 7), (512, 100, 8)):

        def grown(graph: Graph, x: str, count: int = count, levels: int = levels) -> str:
            trees = _whole_trees(graph.random, count, levels)
            return graph.node("TreeEnsembleRegressor", x, domain="ai.onnx.ml", **trees)

        yield Case(kinds.TREES, f"{rows} by {count} of {levels}", (rows, FEATURES), grown, chained=False)


def _whole_trees(random: np.random.Generator, count: int, levels: int) -> dict[str, Any]:
    """Returns trees all of whose leaves lie on the last level; rows of normal numbers take each about as often."""
    inner, nodes = 2**levels - 1, 2 ** (levels + 1) - 1
    numbers, trees = np.tile(np.arange(nodes), count), np.repeat(np.arange(count), nodes)
    is_branch = numbers < inner
    arrays = {
        "nodes_treeids": trees, "nodes_nodeids": numbers,
        "nodes_featureids": np.where(is_branch, random.integers(0, FEATURES, numbers.size), 0),
        "nodes_values": np.where(is_branch, 0.5 * random.standard_normal(numbers.size), 0.0),
        "nodes_modes": np.where(is_branch, "BRANCH_LEQ", "LEAF"),
        "nodes_truenodeids": np.where(is_branch, 2 * numbers + 1, 0),
        "nodes_falsenodeids": np.where(is_branch, 2 * numbers + 2, 0),
        "target_treeids": trees[~is_branch], "target_nodeids": numbers[~is_branch],
        "target_ids": np.zeros(count * (nodes - inner), np.int64),
        "target_weights": random.standard_normal(count * (nodes - inner)),
    }  # fmt: skip
    return {"n_targets": 1, **{name: array.tolist() for name, array in arrays.items()}}


def chain_of_small(copies: int, *, any_size: bool) -> Made:
    """Returns `copies` softmaxes of a few numbers, of any number of rows or of one: what a node costs at least."""
    model, inputs = Case("", "", (1, 8), lambda graph, x: graph.node("Softmax", x)).build(copies)
    if any_size:
        for one in (*model.graph.input, *model.graph.output):
            one.type.tensor_type.shape.dim[0].dim_param = "N"
        del model.graph.value_info[:]
    return model, inputs


def followed(head: str, copies: int, *, with_follower: bool) -> Made:
    """Returns `copies` operators of a kind, each followed by an elementwise one or not."""
    heads: dict[str, Step] = {
        "convolution": lambda graph, x: graph.node("Conv", x, graph.weights(64, 64, 1, 1, fan=64)),
        "product": partial(_gemm, width=64),
        "elementwise": lambda graph, x: graph.node("Sigmoid", x),
    }

    def step(graph: Graph, x: str) -> str:
        value = heads[head](graph, x)
        return graph.node("Relu", value) if with_follower else value

    return Case("", "", FOLLOWED[head], step).build(copies)
