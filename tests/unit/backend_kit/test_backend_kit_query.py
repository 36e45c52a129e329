# SPDX-License-Identifier: Apache-2.0
"""Asking a library node by node: whole model first, then one-node models, equal ones once."""

import onnx
import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.backend_kit.query import bytes_of, part_of, supported_nodes
from nndeploy.backend_kit.reasons import MAX_REASON, one_line_reason
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.nodes import values_read

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'

CHAIN = """g (float[2,3] x, float[2,3] y) => (float[2,3] z) <float[3] c = {1.0, 2.0, 3.0}>
{ a = Add(x, c) b = Relu(a) d = Relu(y) z = Mul(b, d) }"""

BODY = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> {
  t = Neg(x)
  y = If (c) <then_branch = then () => (float[2] p) { p = Add(t, w) },
              else_branch = other () => (float[2] q) { q = Identity(x) }>
}"""


def model_of(text: str) -> ir.Model:
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(HEADER + text))
    return ir.from_proto(proto)


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_model_that_is_taken_whole_is_asked_once() -> None:
    asked: list[list[str]] = []

    def refusal(model: ir.Model) -> str:
        asked.append(operators(model))
        return ""

    assert all(answer.ok for answer in supported_nodes(model_of(CHAIN), refusal))
    assert asked == [["Add", "Relu", "Relu", "Mul"]]


def test_refused_model_is_asked_node_by_node_and_equal_nodes_once() -> None:
    asked: list[list[str]] = []

    def refusal(model: ir.Model) -> str:
        asked.append(operators(model))
        return "no Mul here" if "Mul" in operators(model) else ""

    answers = supported_nodes(model_of(CHAIN), refusal)
    assert [answer.ok for answer in answers] == [True, True, True, False]
    assert answers[3].reason == "no Mul here"
    assert asked == [["Add", "Relu", "Relu", "Mul"], ["Add"], ["Relu"], ["Mul"]]


def test_rule_refuses_before_the_library_is_asked() -> None:
    asked: list[list[str]] = []

    def refusal(model: ir.Model) -> str:
        asked.append(operators(model))
        return ""

    answers = supported_nodes(model_of(CHAIN), refusal, lambda node: "wrong here" if node.op_type == "Add" else "")
    assert [answer.reason for answer in answers] == ["wrong here", "", "", ""]
    assert asked == [["Relu", "Relu", "Mul"]]


def test_model_that_a_rule_refuses_whole_is_not_asked() -> None:
    def refusal(_model: ir.Model) -> str:
        raise AssertionError("asked")

    assert {answer.reason for answer in supported_nodes(model_of(CHAIN), refusal, lambda _: "no")} == {"no"}


def test_one_node_models_are_valid_and_carry_types_and_constants() -> None:
    seen: list[onnx.ModelProto] = []

    def refusal(model: ir.Model) -> str:
        proto = ir.to_proto(model)
        onnx.checker.check_model(proto, full_check=True)
        seen.append(proto)
        return "whole" if len(model.graph) > 1 else ""

    supported_nodes(model_of(CHAIN), refusal)
    add = seen[1].graph
    assert [value.name for value in add.input] == ["in0"]
    assert [dim.dim_value for dim in add.input[0].type.tensor_type.shape.dim] == [2, 3]
    assert onnx.numpy_helper.to_array(add.initializer[0]).tolist() == [1, 2, 3]


def test_body_stays_with_its_node_and_its_captured_values_become_inputs() -> None:
    model = model_of(BODY)
    choice = list(model.graph)[1]
    assert [value.name for value in values_read(choice)] == ["c", "t", "w", "x"]
    part = part_of(model, [choice])
    assert [value.name for value in part.graph.inputs] == ["c", "t", "x"]
    assert list(part.graph.initializers) == ["w"]
    onnx.checker.check_model(ir.to_proto(part), full_check=True)


def test_output_of_a_constant_node_is_a_constant() -> None:
    model = model_of("g (float[6] x) => (float[2,3] y) { s = Constant<value = int64[2] {2, 3}>() y = Reshape(x, s) }")
    part = part_of(model, [list(model.graph)[1]])
    assert [value.name for value in part.graph.inputs] == ["x"]
    assert operators(part) == ["Constant", "Reshape"]


def test_data_of_large_constants_does_not_make_questions_differ() -> None:
    values = ", ".join(["{}"] * 100)
    first, second = (values.format(*[float(i + start) for i in range(100)]) for start in (0, 7))
    model = model_of(
        f"g (float[100] x) => (float[100] z) <float[100] a = {{{first}}}, float[100] b = {{{second}}}>"
        "{ y = Add(x, a) z = Add(y, b) }"
    )
    asked: list[int] = []

    def refusal(part: ir.Model) -> str:
        asked.append(len(part.graph))
        return "whole" if len(part.graph) > 1 else ""

    supported_nodes(model, refusal)
    assert asked == [2, 1]


def test_data_of_small_constants_makes_questions_differ() -> None:
    model = model_of("""g (float[6] x) => (float[2,3] y, float[3,2] z) <int64[2] a = {2, 3}, int64[2] b = {3, 2}>
        { y = Reshape(x, a) z = Reshape(x, b) }""")  # fmt: skip
    asked: list[int] = []

    def refusal(part: ir.Model) -> str:
        asked.append(len(part.graph))
        return "whole" if len(part.graph) > 1 else ""

    supported_nodes(model, refusal)
    assert asked == [2, 1, 1]


def test_value_of_unknown_type_is_a_reason_where_types_are_needed() -> None:
    proto = onnx.parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { t = Relu(x) y = Neg(t) }")
    model = ir.from_proto(proto)  # shapes are not inferred: nothing is known of t

    def refusal(part: ir.Model) -> str:
        return "whole" if len(part.graph) > 1 else ""

    assert supported_nodes(model, refusal)[1].reason == "the type of 't' is not known"
    assert supported_nodes(model, refusal, needs_types=False)[1].ok


@pytest.mark.parametrize("text", [CHAIN, BODY])
def test_asking_changes_nothing(text: str) -> None:
    model = model_of(text)
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    supported_nodes(model, lambda part: "whole" if len(part.graph) > 1 else "one")
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_reason_is_one_short_line() -> None:
    assert one_line_reason("a\n b\x1b[31m.") == "a b\\x1b[31m"
    assert len(one_line_reason("x" * 1000)) == MAX_REASON


def test_model_above_the_limit_of_protobuf_is_refused() -> None:
    class TooLarge:
        def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - protobuf's name
            raise ValueError("Message exceeds maximum protobuf size of 2GB")

    with pytest.raises(BuildRefusedError, match="larger than 2 GiB"):
        bytes_of(TooLarge())  # type: ignore[arg-type]
