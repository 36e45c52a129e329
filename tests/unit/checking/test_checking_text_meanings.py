# SPDX-License-Identifier: Apache-2.0
"""What made-up texts are: words that a model looks up, and nothing else where no other may come."""

from typing import Any

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from nndeploy.checking.text_meanings import Texts, text_inputs


def inputs_of(*nodes: onnx.NodeProto) -> dict[str, Texts]:
    given = [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in "xy"]
    graph = helper.make_graph(list(nodes), "g", given, [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    return text_inputs(ir.from_proto(helper.make_model(graph)).graph)


def one_hot(source: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("OneHotEncoder", [source], ["z"], domain="ai.onnx.ml", **attributes)


def test_texts_that_are_looked_up_are_known_through_movement() -> None:
    reshape = helper.make_node("Reshape", ["x", "s"], ["r"])
    assert inputs_of(reshape, one_hot("r", cats_strings=["a", "b"])) == {"x": Texts(("a", "b"), False, False)}


def test_texts_that_are_cut_into_words_are_several() -> None:
    nodes = [
        helper.make_node("StringNormalizer", ["x"], ["l"]),
        helper.make_node("Tokenizer", ["l"], ["t"], domain="com.microsoft"),
        helper.make_node("TfIdfVectorizer", ["t"], ["z"], pool_strings=["a", "b"]),
    ]
    assert inputs_of(*nodes) == {"x": Texts(("a", "b"), True, False)}


def test_where_no_other_text_may_come_that_decides() -> None:
    encoder = helper.make_node("LabelEncoder", ["x"], ["l"], domain="ai.onnx.ml", keys_strings=["a", "c"])
    assert inputs_of(encoder, one_hot("x", cats_strings=["a"], zeros=0)) == {"x": Texts(("a",), False, True)}
