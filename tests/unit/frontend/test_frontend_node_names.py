# SPDX-License-Identifier: Apache-2.0
"""Names for nodes: unique, stable, and given names are kept."""

import onnx
from frontend_builders import model

from nndeploy.frontend.node_names import name_nodes
from nndeploy.frontend.traversal import nodes_of


def names(proto: onnx.ModelProto) -> list[str]:
    name_nodes(proto)
    return [node.name for node in nodes_of(proto)]


def test_a_node_without_a_name_is_called_after_its_operator_and_index() -> None:
    assert names(model(
        "g (float[1] x) => (float[1] c) { a = Relu(x)  b = Abs(a)  c = Relu(b) }"
    )) == ["Relu_0", "Abs_1", "Relu_2"]  # fmt: skip


def test_given_names_are_kept_and_never_given_again() -> None:
    proto = model("g (float[1] x) => (float[1] c) { a = Relu(x)  b = Relu(a)  c = Relu(b) }")
    proto.graph.node[2].name = "Relu_0"
    assert names(proto) == ["Relu_0_1", "Relu_1", "Relu_0"]


def test_of_several_nodes_with_one_name_the_first_keeps_it() -> None:
    proto = model("g (float[1] x) => (float[1] c) { a = Relu(x)  b = Relu(a)  c = Relu(b) }")
    for node in proto.graph.node:
        node.name = "act"
    assert names(proto) == ["act", "act_1", "act_2"]


def test_nodes_of_bodies_and_functions_get_names_of_their_own() -> None:
    proto = model(
        """g (float[1] x, bool c) => (float[1] y) {
            y = If(c) <then_branch = a () => (float[1] p) { p = local.f(x) },
                       else_branch = b () => (float[1] q) { q = Relu(x) }>
        }
        <domain: "local", opset_import: ["" : 17]> f (i) => (o) { o = Relu(i) }""",
        '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n',
    )
    assert names(proto) == ["If_0", "f_0", "Relu_0", "Relu_0_1"]


def test_naming_twice_changes_nothing() -> None:
    proto = model("g (float[1] x) => (float[1] b) { a = Relu(x)  b = Relu(a) }")
    assert names(proto) == names(proto)
