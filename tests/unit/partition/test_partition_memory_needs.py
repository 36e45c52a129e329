# SPDX-License-Identifier: Apache-2.0
"""What nodes need of a device's memory: constants once, values from where they are made to where they are read last."""

import onnx
import onnx_ir as ir

from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.memory_needs import memory_needs, needs_together

TEXT = """<ir_version: 8, opset_import: ["": 18]>
network (float[4] x) => (float[4] y, float[4] early)
<float[4] w = {1, 2, 3, 4}, float[2] v = {1, 2}> {
    [first] a = Add(x, w)
    [second] early = Mul(a, w)
    [third] b = Add(early, a)
    [fourth] c = Concat<axis = 0>(v, v)
    [fifth] y = Add(b, c)
}"""


def test_what_each_node_needs() -> None:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(TEXT)))
    needs = memory_needs(model.graph, estimate_costs(model, {}))
    assert {name: one.weights for name, one in needs.items()} == {
        "first": {"w": 16}, "second": {"w": 16}, "third": {}, "fourth": {"v": 8}, "fifth": {},
    }  # fmt: skip
    assert [one.peak_bytes for one in needs.values()] == [
        16 * len(alive)
        for alive in (["x", "a"], ["a", "early"], ["a", "early", "b"], ["early", "b", "c"], list("ebcy"))
    ]
    together = needs_together(needs.values())
    assert (together.weight_bytes, together.peak_bytes) == (24, 64)


def test_constants_in_the_bodies_of_a_node_are_its_weights() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
    network (bool c, float[4] x) => (float[4] y) {
        [either] y = If(c) <
            then_branch = then () => (float[4] t) <float[4] w = {1, 2, 3, 4}> { t = Add(x, w) },
            else_branch = otherwise () => (float[4] e) {
                k = Constant<value = float[2] {1, 2}>()
                e = Concat<axis = 0>(k, k)
            }
        >
    }"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    (needs,) = memory_needs(model.graph, estimate_costs(model, {})).values()
    assert needs.weight_bytes == 16 + 8
