# SPDX-License-Identifier: Apache-2.0
"""The wiring of graphs: every rule, and that the refusal names the node."""

import onnx
import pytest
from frontend_builders import model

from nndeploy.errors import ModelError
from nndeploy.frontend.graph_rules import check_graphs
from nndeploy.frontend.node_names import name_nodes


def check(body: str) -> None:
    proto = model(body)
    name_nodes(proto)
    check_graphs(proto)


def refusal(proto: onnx.ModelProto) -> ModelError:
    name_nodes(proto)
    with pytest.raises(ModelError) as caught:
        check_graphs(proto)
    assert caught.value.exit_code == 65
    return caught.value


@pytest.mark.parametrize("body", [
    "g (float[1] x) => (float[1] y) { a = Relu(x)  y = Add(a, x) }", "g (float[1] x) => (float[1] x) { y = Relu(x) }",
    "g (float[1] x) => (float[1] w) <float[1] w = {1}> { y = Relu(x) }",
    "g (float[1] x) => (float[1] y) { y = Clip(x, , x) }", "g (float[4] x) => (float[2] y) { y, = Split(x) }",
    "g (float[1] x, bool c) => (float[1] y) { y = If(c) <then_branch = a () => (float[1] p) { p = Relu(x) },"
    " else_branch = b () => (float[1] p) { p = Abs(x) }> }",
])  # fmt: skip
def test_sound_graphs_pass(body: str) -> None:
    check(body)


@pytest.mark.parametrize(("body", "words"), [
    ("g (float[1] x) => (float[1] y) { y = Add(x, xx) }",
     "node 'Add_0' (Add): the input 'xx' is produced by no node (hint: known: 'x')"),
    ("g (float[1] x) => (float[1] c) { a = Add(x, c)  b = Relu(a)  c = Abs(b) }",
     "node 'Add_0' (Add): nodes need each other's results in a circle: Add_0 -> Relu_1 -> Abs_2 -> Add_0"),
    ("g (float[1] x) => (float[1] a) { a = Add(x, a) }",
     "node 'Add_0' (Add): nodes need each other's results in a circle: Add_0 -> Add_0"),
    ("g (float[1] x) => (float[1] y) { y = Relu(b)  b = Abs(x) }",
     "node 'Relu_0' (Relu): the input 'b' is produced by the later node 'Abs_1'"),
    ("g (float[1] x) => (float[1] y) { y = Relu(x)  y = Abs(x) }",
     "node 'Abs_1' (Abs): the output 'y' is produced twice"),
    ("g (float[1] x) => (float[1] x) { x = Relu(x) }", "node 'Relu_0' (Relu): the output 'x' is produced twice"),
    ("g (float[1] x) => (float[1] w) <float[1] w = {1}> { w = Relu(x) }",
     "node 'Relu_0' (Relu): the output 'w' is produced twice"),
    ("g (float[4] x) => (float[2] y) { y, y = Split(x) }", "node 'Split_0' (Split): the output 'y' is produced twice"),
    ("g (float[1] x) => (float[1] yy) { y = Relu(x) }",
     "the output 'yy' is produced by no node (hint: known: 'x', 'y')"),
    ("g (float[1] x, float[1] x) => (float[1] y) { y = Relu(x) }", "the input 'x'"),
    ("g (float[1] x) => (float[1] y, float[1] y) { y = Relu(x) }", "the output 'y' is there twice"),
    ("g (float[1] x) => (float[1] y) <float[1] w = {1}, float[1] w = {2}> { y = Add(x, w) }",
     "the initializer 'w' is there twice"),
    ("g (float[1] x) => () { y = Relu(x) }", "the model has no outputs"),
    ("g (float[1] x, bool c) => (float[1] y) { y = If(c) <then_branch = a () => (float[1] x) { x = Relu(x) },"
     " else_branch = b () => (float[1] q) { q = Abs(x) }> }",
     "node 'If_0' (If): node 'Relu_0' (Relu): the output 'x' hides a value of the graph around it"),
    ("g (float[1] x, bool c) => (float[1] y) { y = If(c) <then_branch = a () => (float[1] p) { p = Relu(z) },"
     " else_branch = b () => (float[1] q) { q = Abs(x) }>  z = Neg(x) }",
     "node 'If_0' (If): node 'Relu_0' (Relu): the input 'z' is produced by no node"),
])  # fmt: skip
def test_unsound_graphs_are_refused_and_the_node_is_named(body: str, words: str) -> None:
    assert str(refusal(model(body))).startswith(words)


@pytest.mark.parametrize("part", ["input", "output", "initializer"])
def test_a_value_without_a_name_is_refused(part: str) -> None:
    proto = model("g (float[1] x) => (float[1] y) <float[1] w = {1}> { y = Add(x, w) }")
    getattr(proto.graph, part)[0].name = ""
    assert f"an {part} of the graph has no name" in str(refusal(proto))


def test_functions_are_checked_and_named() -> None:
    proto = model(
        "g (float[1] x) => (float[1] y) { y = local.f(x) }\n"
        '<domain: "local", opset_import: ["" : 17]> f (a) => (b) { b = Relu(c) }',
        '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n',
    )
    assert str(refusal(proto)).startswith("function 'f': node 'Relu_0' (Relu): the input 'c' is produced by no node")


def test_an_output_of_a_function_must_be_produced() -> None:
    proto = model(
        "g (float[1] x) => (float[1] y) { y = local.f(x) }\n"
        '<domain: "local", opset_import: ["" : 17]> f (a) => (b) { c = Relu(a) }',
        '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n',
    )
    assert str(refusal(proto)).startswith("function 'f': the output 'b' is produced by no node")


def test_a_long_circle_is_shortened() -> None:
    chain = "  ".join(f"v{i + 1} = Relu(v{i})" for i in range(100))
    error = refusal(model(f"g (float[1] x) => (float[1] v100) {{ v0 = Add(x, v100)  {chain} }}"))
    assert "Add_0 -> Relu_1 -> ... -> Relu_99 -> Relu_100 -> Add_0" in str(error)


def test_many_bodies_take_no_quadratic_time() -> None:
    body = "<then_branch = a () => (float[1] p) { p = Relu(x) }, else_branch = b () => (float[1] q) { q = Abs(x) }>"
    nodes = "  ".join(f"v{i} = If(c) {body}" for i in range(2000))
    check(f"g (float[1] x, bool c) => (float[1] v1999) {{ {nodes} }}")
