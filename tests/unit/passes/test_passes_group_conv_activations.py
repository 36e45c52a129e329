# SPDX-License-Identifier: Apache-2.0
"""A filter and its activation are marked as one group; nothing is computed differently."""

import onnx_ir as ir
import pytest
from passes_harness import graph, rewritten

from nndeploy.passes.group_conv_activations import GROUP_KEY

NAME = "group-conv-activations"
CONSTANTS = "<float[1,1,1,1] w = {1}, float one = {1}, float three = {3}, float six = {6}, float nil = {0}>"
IN, OUT = "float[1,1,2,2] x", "float[1,1,2,2] y"


def _groups(model: ir.Model) -> dict[str, str]:
    marks = {node.outputs[0].name: node.metadata_props.get(GROUP_KEY) for node in model.graph}
    return {name: mark for name, mark in marks.items() if mark is not None}


@pytest.mark.parametrize("activation", [
    "y = Relu(c)", "y = Clip(c, nil, six)", "y = LeakyRelu(c)", "y = PRelu(c, one)", "y = Sigmoid(c)", "y = Tanh(c)",
    "y = HardSwish(c)", "g = Sigmoid(c) y = Mul(c, g)", "g = HardSigmoid(c) y = Mul(g, c)",
    "s = Softplus(c) g = Tanh(s) y = Mul(c, g)",
    "a = Add(c, three) g = Clip(a, nil, six) m = Mul(c, g) y = Div(m, six)",
    "a = Add(three, c) r = Clip(a, nil, six) g = Div(r, six) y = Mul(c, g)",
])  # fmt: skip
@pytest.mark.parametrize("conv", ["c = Conv(x, w)", "c = ConvTranspose(x, w)"])
def test_filter_and_activation_are_one_group(conv: str, activation: str) -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ {conv} {activation} }}")
    assert rewritten(NAME, model) == 1
    assert _groups(model) == {node.outputs[0].name: "c" for node in model.graph}


@pytest.mark.parametrize("body", [
    f"({IN}) => ({OUT}, float[1,1,2,2] c) {CONSTANTS} {{ c = Conv(x, w) y = Relu(c) }}",
    f"({IN}) => ({OUT}, float[1,1,2,2] z) {CONSTANTS} {{ c = Conv(x, w) y = Relu(c) z = Relu(c) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) y = Exp(c) }}",
    f"({IN}, float s) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) y = PRelu(c, s) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) g = Sigmoid(c) y = Add(c, g) }}",
    f"({IN}) => ({OUT}, float[1,1,2,2] c) {CONSTANTS} {{ c = Conv(x, w) g = Sigmoid(c) y = Mul(c, g) }}",
    f"({IN}) => ({OUT}, float[1,1,2,2] g) {CONSTANTS} {{ c = Conv(x, w) g = Sigmoid(c) y = Mul(c, g) }}",
    f"({IN}, float s) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) a = Add(c, s) g = Sigmoid(a) y = Mul(c, g) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) y = Mul(c, c) }}",
    f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Neg(x) y = Relu(c) }}",
])  # fmt: skip
def test_what_is_no_activation_of_one_filter_is_not_marked(body: str) -> None:
    model = graph(body)
    assert rewritten(NAME, model) == 0
    assert _groups(model) == {}


def test_marks_of_the_model_and_of_before_are_removed() -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) a = Relu(c) y = Exp(a) }}")
    model.graph[2].metadata_props[GROUP_KEY] = "forged"
    assert rewritten(NAME, model) == 2
    assert _groups(model) == {"c": "c", "a": "c"}
    model.graph[1].op_type = "Exp"
    assert rewritten(NAME, model) == 1
    assert _groups(model) == {}


def test_each_filter_has_its_own_group() -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w) a = Relu(c) d = Conv(a, w) y = Relu(d) }}")
    assert rewritten(NAME, model) == 2
    assert _groups(model) == {"c": "c", "a": "c", "d": "d", "y": "d"}
