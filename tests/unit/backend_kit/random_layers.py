# SPDX-License-Identifier: Apache-2.0
"""Random graphs of dense layers: products of few inputs, sums behind them, weights and results that are shared."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

OPSETS = (11, 12, 13, 17, 18, 21)


@dataclass(frozen=True)
class Layers:
    """A model, and inputs for its open sizes; `what` names each layer, for who reads a failure."""

    model: onnx.ModelProto
    inputs: dict[str, Any]
    what: tuple[str, ...]


class _Drawn:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - no secret
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.outputs: dict[str, int] = {}
        self.what: list[str] = []

    def constant(self, *shape: int) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(self.numbers.standard_normal(shape).astype(np.float32), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def maybe(self, chance: float) -> bool:
        return self.dice.random() < chance


def drawn_layers(seed: int) -> Layers:
    """Returns a graph whose matrices are of (n, inner), n being open; that of some seeds has three axes."""
    drawn = _Drawn(seed)
    is_flat, inner = drawn.maybe(0.7), drawn.dice.choice((3, 8))
    sources = dict.fromkeys(("x", "y")[: drawn.dice.randint(1, 2)], inner)
    inputs = dict(sources)
    shared = {inner: drawn.constant(inner, 5)}
    for _ in range(drawn.dice.randint(2, 8)):
        source = drawn.dice.choice(list(sources))
        result, columns = _layer(drawn, source, sources[source], shared, is_flat=is_flat)
        if drawn.maybe(0.7):
            drawn.outputs[result] = columns
        elif drawn.maybe(0.5):
            drawn.outputs[drawn.node("Relu", result)] = columns
        if drawn.maybe(0.3):
            sources[result] = columns
    if not drawn.outputs:
        drawn.outputs[result] = columns
    before = [] if is_flat else ["b"]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [*before, "n", size]) for name, size in sizes.items()]
        for sizes in (inputs, drawn.outputs)
    ]
    graph = helper.make_graph(drawn.nodes, "layers", *ends, drawn.constants)
    opset = drawn.dice.choice(OPSETS)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    sizes = (drawn.dice.randint(1, 5),) if is_flat else (2, drawn.dice.randint(1, 5))
    values = {name: drawn.numbers.standard_normal((*sizes, size)).astype(np.float32) for name, size in inputs.items()}
    return Layers(model, values, tuple(drawn.what))


def _layer(drawn: _Drawn, source: str, inner: int, shared: dict[int, str], *, is_flat: bool) -> tuple[str, int]:
    columns = drawn.dice.choice((1, 4, 7))
    drawn.what.append(f"of {source}")
    if is_flat and drawn.maybe(0.5):
        return _gemm(drawn, source, inner, columns), columns
    if inner in shared and drawn.maybe(0.2):
        product, columns = drawn.node("MatMul", source, shared[inner]), 5
    else:
        product = drawn.node("MatMul", source, drawn.constant(inner, columns))
    if drawn.maybe(0.3):
        drawn.outputs[drawn.node("Neg", product)] = columns  # so that a sum cannot go into the product
    if not drawn.maybe(0.6):
        return product, columns
    shape = drawn.dice.choice(((columns,), (columns,), (1,), (1, columns)))
    operands = [product, drawn.constant(*shape)]
    drawn.dice.shuffle(operands)
    return drawn.node("Add", *operands), columns


def _gemm(drawn: _Drawn, source: str, inner: int, columns: int) -> str:
    is_turned = drawn.maybe(0.5)
    weights = drawn.constant(columns, inner) if is_turned else drawn.constant(inner, columns)
    bias = [drawn.constant(*drawn.dice.choice(((columns,), (1,), (1, columns))))] if drawn.maybe(0.7) else []
    how: dict[str, Any] = {"transB": int(is_turned)} if is_turned or drawn.maybe(0.3) else {}
    if drawn.maybe(0.2):
        how |= {"alpha": 0.5}
    if drawn.maybe(0.2):
        how |= {"beta": -2.0}
    if not drawn.maybe(0.15):
        return drawn.node("Gemm", source, weights, *bias, **how)
    turned = drawn.node("Transpose", source, perm=[1, 0])
    return drawn.node("Gemm", turned, weights, *bias, **how, transA=1)
