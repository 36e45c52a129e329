# SPDX-License-Identifier: Apache-2.0
"""No two values are called alike, and what is known of one is not believed of its namesake."""

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import onnx.reference

from nndeploy.frontend.load import load_model
from nndeploy.frontend.traversal import graphs_of
from nndeploy.frontend.unique_names import name_values

BRANCH = """{
  zero = Constant<value = int64 {0}>()
  axes = Constant<value = int64[1] {0}>()
  s = Shape(%s)
  k = Gather(s, zero)
  j = Unsqueeze(k, axes)
  n = Concat<axis=0>(j, j)
  t = ConstantOfShape(n)
  r = Relu(t)
}"""
NAMESAKES = f"""<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2,8] x, float[N,8] z) => (float[P,Q] y) {{
  y = If(c) <then_branch = a () => (float[A,B] r) {BRANCH % "x"}, else_branch = b () => (float[A,B] r) {BRANCH % "z"}>
}}"""

NESTED = """<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2] x) => (float[2] y) {
  h = Neg(x)
  y = If(c) <
    then_branch = a () => (float[2] p) {
      q = Exp(h)
      p = If(c) <then_branch = d () => (float[2] o) { m = Abs(q) o = Add(m, q) },
                 else_branch = e () => (float[2] o) { m = Neg(q) o = Mul(m, h) }>
    },
    else_branch = b () => (float[2] p) <float[2] w = {1, 2}> { q = Mul(h, w) m = Add(q, x) p = Identity(m) }
  >
}"""


def names_made(model: onnx.ModelProto) -> list[str]:
    return [
        name
        for graph in graphs_of(model.graph)
        for name in (
            *(value.name for value in graph.input),
            *(tensor.name for tensor in graph.initializer),
            *(name for node in graph.node for name in node.output),
        )
    ]


def test_what_is_known_of_one_branch_is_not_believed_of_the_other() -> None:
    loaded = load_model(onnx.parser.parse_model(NAMESAKES))
    made = [node.outputs[0] for node in loaded.model.graph.all_nodes() if node.op_type == "ConstantOfShape"]
    assert [[str(dim) for dim in value.shape or ()] for value in made] == [["2", "2"], ["N", "N"]]


def test_every_value_has_a_name_of_its_own_and_means_the_same() -> None:
    before = onnx.parser.parse_model(NESTED)
    after = onnx.parser.parse_model(NESTED)
    name_values(after)
    onnx.checker.check_model(after, full_check=True)
    assert len(set(names_made(after))) == len(names_made(after)) == len(names_made(before))
    assert [value.name for value in after.graph.input] == ["c", "x"]
    assert after.graph.node[0].output[0] == "h"
    for condition in (True, False):
        fed = {"c": np.array(condition), "x": np.array([0.5, -2], np.float32)}
        want, got = (onnx.reference.ReferenceEvaluator(model).run(None, fed)[0] for model in (before, after))
        np.testing.assert_array_equal(got, want)


def test_names_that_are_unique_already_stay() -> None:
    model = onnx.parser.parse_model(NESTED)
    name_values(model)
    again = onnx.ModelProto.FromString(model.SerializeToString())
    name_values(again)
    assert again == model


def test_a_free_name_is_not_one_that_comes_later() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (bool c, float[2] x) => (float[2] y, float[2] q_1) {
      y = If(c) <then_branch = a () => (float[2] p) { q = Neg(x) p = Exp(q) },
                 else_branch = b () => (float[2] p) { q = Abs(x) p = Log(q) }>
      q_1 = Relu(x)
    }"""
    model = onnx.parser.parse_model(text)
    name_values(model)
    onnx.checker.check_model(model, full_check=True)
    assert len(set(names_made(model))) == len(names_made(model))
