# SPDX-License-Identifier: Apache-2.0
"""The whole list on random networks put together from everything that passes look for."""

import itertools
import sys
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_close, examples, from_proto, nodes, random_feeds, run_onnxruntime

from nndeploy.graph.invariants import check_graph, signature_of
from nndeploy.passes import OPTIMISATIONS, optimise

CHANNELS = 4


class Network:
    """A random network over values of shape (2, 4, n, n), with side paths of shapes and constants."""

    def __init__(self, data: st.DataObject, opset: int) -> None:
        self.data, self.build = data, GraphBuilder(opset, np.float32)
        self.generator = np.random.default_rng(data.draw(st.integers(0, 999), label="seed"))
        dims = data.draw(st.sampled_from([[2, CHANNELS, 6, 6], ["N", CHANNELS, 6, 6], ["N", CHANNELS, "H", "W"]]))
        self.pool = [self.build.input(dims)]
        self.steps = [
            self._conv, self._norm, self._scale, self._relu, self._clip, self._identity, self._cast_there_and_back,
            self._transposes, self._pad_and_pool, self._pad_and_conv, self._reshape_of_shape, self._squeezes,
            self._gate, self._branch, self._sum, self._constants, self._twice,
        ]  # fmt: skip

    def grow(self) -> None:
        """Adds a few nodes after one of the last values."""
        step = self.data.draw(st.sampled_from(self.steps))
        self.pool.append(step(self.pool[-1 - self.data.draw(st.integers(0, min(1, len(self.pool) - 1)))]))

    def _constant(self, *shape: int) -> str:
        return self.build.constant(self.generator.standard_normal(shape) * 0.5)

    def _conv(self, x: str) -> str:
        kind = self.data.draw(st.sampled_from(["Conv", "Conv", "ConvTranspose"]))
        group = self.data.draw(st.sampled_from([1, 2, 4]))
        bias = [self._constant(CHANNELS)] if self.data.draw(st.booleans()) else []
        weights = self._constant(CHANNELS, CHANNELS // group, 3, 3)
        return self.build.node(kind, x, weights, *bias, group=group, pads=[1, 1, 1, 1])

    def _norm(self, x: str) -> str:
        scale, bias, mean = (self._constant(CHANNELS) for _ in range(3))
        variance = self.build.constant(np.abs(self.generator.standard_normal(CHANNELS)) + 0.5)
        return self.build.node("BatchNormalization", x, scale, bias, mean, variance)

    def _scale(self, x: str) -> str:
        op = self.data.draw(st.sampled_from(["Mul", "Add", "Sub", "Div"]))
        shape = self.data.draw(st.sampled_from([(), (CHANNELS, 1, 1), (1, CHANNELS, 1, 1), (1, 1, 1), (1,)]))
        constant = self.build.constant(np.abs(self.generator.standard_normal(shape)) + 0.5)
        order = (x, constant) if op == "Div" or self.data.draw(st.booleans()) else (constant, x)
        return self.build.node(op, *order)

    def _relu(self, x: str) -> str:
        return self.build.node(self.data.draw(st.sampled_from(["Relu", "Sigmoid", "Tanh", "Neg", "Abs"])), x)

    def _clip(self, x: str) -> str:
        if self.build.opset < 11:
            return self.build.node("Clip", x, min=-1.0, max=2.0)
        return self.build.node("Clip", x, self.build.constant(-1.0), self.build.constant(2.0))

    def _identity(self, x: str) -> str:
        return self.build.node(self.data.draw(st.sampled_from(["Identity", "Dropout"])), x)

    def _cast_there_and_back(self, x: str) -> str:
        return self.build.node("Cast", self.build.node("Cast", x, to=11), to=1)

    def _transposes(self, x: str) -> str:
        perm = self.data.draw(st.permutations(range(4)))
        inverse = [perm.index(axis) for axis in range(4)]
        value = self.build.node("Transpose", x, perm=perm)
        value = self.build.node("Relu", value) if self.data.draw(st.booleans()) else value
        return self.build.node("Transpose", value, perm=inverse)

    def _pad(self, x: str) -> str:
        pads = [0, 0, 1, 1, 0, 0, 1, 1]
        if self.build.opset < 11:
            return self.build.node("Pad", x, pads=pads)
        return self.build.node("Pad", x, self.build.constant(pads, np.int64))

    def _pad_and_pool(self, x: str) -> str:
        return self.build.node("AveragePool", self._pad(x), kernel_shape=[3, 3])

    def _pad_and_conv(self, x: str) -> str:
        return self.build.node("Conv", self._pad(x), self._constant(CHANNELS, CHANNELS, 3, 3))

    def _reshape_of_shape(self, x: str) -> str:
        shape = self.build.node("Shape", x)
        first = self.build.node("Gather", shape, self.build.constant([0], np.int64))
        flat = self.build.node("Concat", first, self.build.constant([-1], np.int64), axis=0)
        view = self.build.node("Reshape", x, flat)
        view = self.build.node("Relu", view) if self.data.draw(st.booleans()) else view
        return self.build.node("Reshape", view, shape)

    def _squeezes(self, x: str) -> str:
        axis = self.data.draw(st.integers(0, 4))
        return self.build.with_axes("Squeeze", self.build.with_axes("Unsqueeze", x, [axis]), [axis])

    def _gate(self, x: str) -> str:
        return self.build.node("Mul", x, self.build.node("Sigmoid", x))

    def _branch(self, x: str) -> str:
        return self.build.node("Add", x, self._relu(x))

    def _sum(self, x: str) -> str:
        return self.build.node("Add", x, self.data.draw(st.sampled_from(self.pool)))

    def _constants(self, x: str) -> str:
        one = self.build.node("Sqrt", self.build.constant(np.abs(self.generator.standard_normal((CHANNELS, 1, 1)))))
        return self.build.node("Mul", x, self.build.node("Add", one, self.build.constant(1.0)))

    def _twice(self, x: str) -> str:
        return self.build.node("Add", self.build.node("Exp", self.build.node("Tanh", x)), self.build.node("Tanh", x))


def _drawn(data: st.DataObject, opset: int) -> onnx.ModelProto:
    network = Network(data, opset)
    for _ in range(data.draw(st.integers(1, 12), label="steps")):
        network.grow()
    outputs = [value for value in network.pool[1:] if not data.draw(st.integers(0, 5))]
    return network.build.model(*dict.fromkeys([*outputs, network.pool[-1]]), rank=4)


def _outputs(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    try:
        return run_onnxruntime(proto, feeds)
    except Exception:  # sizes that do not fit
        reject()


OPSETS = [9, 10, 11, 12, 13, 15, 17, 18, 20]


@examples(60)
@given(data=st.data(), opset=st.sampled_from(OPSETS))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    proto = _drawn(data, opset)
    feeds = random_feeds(proto, dims={"N": 2, "H": 6, "W": 6})
    want = _outputs(proto, feeds)
    model = from_proto(proto)
    names = [node.name for node in model.graph]
    signature, num_before = signature_of(model), len(names)
    optimise(model)
    assert signature_of(model) == signature
    assert len({node.name for node in model.graph}) == len(model.graph), "names of nodes stay unique"
    assert not any(report.count for report in optimise(model)), "a second optimise changes nothing"
    assert len(model.graph) <= num_before + 2 * sum(node.op_type == "BatchNormalization" for node in proto.graph.node)
    after = ir.to_proto(model)
    onnx.checker.check_model(after)
    for value, got, expected in zip(proto.graph.output, run_onnxruntime(after, feeds), want, strict=True):
        assert_close(got, expected, 1e-3, f"{value.name} of {nodes(model)}")


@examples(20)
@given(data=st.data(), opset=st.sampled_from(OPSETS), order=st.permutations(range(len(OPTIMISATIONS))))
def test_every_order_of_the_passes_leaves_a_sound_graph(data: st.DataObject, opset: int, order: list[int]) -> None:
    proto = _drawn(data, opset)
    model = from_proto(proto)
    optimise(model, passes=[OPTIMISATIONS[index] for index in order])
    check_graph(model)
    feeds = random_feeds(proto, dims={"N": 2, "H": 6, "W": 6})
    want = _outputs(proto, feeds)
    for got, expected in zip(run_onnxruntime(ir.to_proto(model), feeds), want, strict=True):
        assert_close(got, expected, 1e-3, str(nodes(model)))


def _of_one_size(size: int) -> dict[str, Any]:
    build = GraphBuilder(17, np.float32)
    value = build.input([1, 4, 8, 8])
    for _ in range(size):
        value = build.node("Conv", value, build.constant(np.ones((4, 4, 1, 1))), build.constant(np.ones(4)))
        ones = [build.constant(np.ones(4)) for _ in range(4)]
        value = build.node("Relu", build.node("BatchNormalization", value, *ones))
    return {"proto": build.model(value)}


def test_work_grows_with_the_size_of_the_network_and_not_faster() -> None:
    calls = []
    for size in (25, 100):
        model = from_proto(_of_one_size(size)["proto"])
        count = itertools.count()
        sys.setprofile(lambda *_, count=count: next(count))  # type: ignore[misc]
        try:
            optimise(model)
        finally:
            sys.setprofile(None)
        calls.append(next(count))
    assert calls[1] < 6 * calls[0], calls


@pytest.mark.parametrize("pair", list(itertools.pairwise(OPTIMISATIONS)), ids=lambda pair: pair[0].name)
def test_passes_do_not_undo_each_other(pair: Any) -> None:
    proto = _of_one_size(2)["proto"]
    model = from_proto(proto)
    optimise(model, passes=pair, max_rounds=20)
    assert not any(report.count for report in optimise(model, passes=pair, max_rounds=1))
