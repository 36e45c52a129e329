# SPDX-License-Identifier: Apache-2.0
"""Constant nodes become initializers of their graph."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from passes_harness import constants, graph, node_line, rewritten

NAME = "constants-to-initializers"


@pytest.mark.parametrize(("attribute", "dtype", "value"), [
    ("value_int = 3", ir.DataType.INT64, 3), ("value_ints = [3, 4]", ir.DataType.INT64, [3, 4]),
    ("value_float = 1.5", ir.DataType.FLOAT, 1.5), ("value_floats = [1.5, 2.5]", ir.DataType.FLOAT, [1.5, 2.5]),
    ('value_string = "a"', ir.DataType.STRING, b"a"),
    ('value_strings = ["a", "bc"]', ir.DataType.STRING, [b"a", b"bc"]),
    ("value = int8[2] {3, 4}", ir.DataType.INT8, [3, 4]),
])  # fmt: skip
def test_every_form_of_constant_keeps_its_type_and_value(attribute: str, dtype: ir.DataType, value: object) -> None:
    model = graph(f"(float[2] x) => (int64 y) {{ c = Constant<{attribute}>() y = Size(c) }}")
    assert rewritten(NAME, model) == 1
    assert model.graph.initializers["c"].dtype == dtype
    assert constants(model) == {"c": value}
    onnx.checker.check_model(ir.to_proto(model))


def test_sparse_constant_stays() -> None:
    values = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [3.0])
    indices = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [1])
    sparse = onnx.helper.make_sparse_tensor(values, indices, [2])
    model = graph("(float[2] x) => (float[2] y) { y = Relu(x) }")
    node = ir.Node("", "Constant", [], [ir.Attr("sparse_value", ir.AttributeType.SPARSE_TENSOR, sparse)], name="c")
    node.outputs[0].name = "c"
    model.graph[0].prepend(node)
    assert rewritten(NAME, model) == 0


def test_constant_in_a_branch_becomes_initializer_of_the_branch() -> None:
    model = graph("""(bool c, float[2] x) => (float[2] y) { y = If(c) <
            then_branch = t () => (float[2] a) { k = Constant<value_floats = [1.0, 2.0]>() a = Add(x, k) },
            else_branch = e () => (float[2] b) { b = Constant<value_floats = [1.0, 2.0]>() }> }""")  # fmt: skip
    assert rewritten(NAME, model) == 1
    then_branch = model.graph[0].attributes["then_branch"].as_graph()
    assert [node_line(node) for node in then_branch] == ["a = Add(x, k)"]
    assert list(then_branch.initializers) == ["k"]
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    for condition in (True, False):
        feeds = {"c": np.array(condition), "x": np.array([3, 4], np.float32)}
        want = [4.0, 6.0] if condition else [1.0, 2.0]
        assert onnx.reference.ReferenceEvaluator(proto).run(None, feeds)[0].tolist() == want
