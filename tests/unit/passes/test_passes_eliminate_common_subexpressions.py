# SPDX-License-Identifier: Apache-2.0
"""What is computed twice is computed once, where it has to be the same."""

import onnx
import onnx_ir as ir
import pytest
from passes_harness import graph, rewritten

NAME = "eliminate-common-subexpressions"


@pytest.mark.parametrize("pair", [
    "a = LeakyRelu<alpha = 0.1>(x) b = LeakyRelu<alpha = 0.2>(x)",
    "a = LeakyRelu<alpha = 0.0>(x) b = LeakyRelu<alpha = -0.0>(x)", "a = Sub(x, z) b = Sub(z, x)",
    "a = RandomNormalLike(x) b = RandomNormalLike(x)", "a = RandomUniformLike(x) b = RandomUniformLike(x)",
    "a = Bernoulli(x) b = Bernoulli(x)", "a = Dropout(x, half, yes) b = Dropout(x, half, yes)",
    "a = com.microsoft.Gelu(x) b = com.microsoft.Gelu(x)",
])  # fmt: skip
def test_what_may_differ_stays(pair: str) -> None:
    model = graph(
        f"(float[2] x, float[2] z) => (float[2] y) <float half = {{0.5}}, bool yes = {{1}}> {{ {pair} y = Add(a, b) }}",
        domains=', "com.microsoft": 1',
    )
    assert rewritten(NAME, model) == 0


def test_functions_of_the_model_may_be_random() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2] x) => (float[2] y)
        { a = ai.onnx.ml.Noise(x) b = ai.onnx.ml.Noise(x) y = Add(a, b) }"""
    )
    function = '<domain: "ai.onnx.ml", opset_import: ["": 17]> Noise (v) => (w) { w = RandomNormalLike(v) }'
    proto.functions.append(onnx.parser.parse_function(function))
    assert rewritten(NAME, ir.from_proto(proto)) == 0


def test_outputs_that_are_asked_for_have_to_agree() -> None:
    body = "{ a, m = Dropout(x) b, n = Dropout(x) k = Cast<to = 1>(n) y = Sum(a, b, k) }"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {body}')
    assert rewritten(NAME, ir.from_proto(proto)) == 1
    proto.graph.node[0].output[1] = ""
    assert rewritten(NAME, ir.from_proto(proto)) == 0
