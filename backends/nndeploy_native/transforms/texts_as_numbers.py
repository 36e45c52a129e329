# SPDX-License-Identifier: Apache-2.0
"""Texts that come from a table stay numbers, their places in it, until they leave a model or are compared.

    classifier, labels L          ->  Gather(L, classifier, labels 0, 1...)
    Gather(constant T, i)         ->  Gather(T, Gather(constant 0, 1..., i))
    Reshape(Gather(T, x))         ->  Gather(T, Reshape(x)), and so other movement
    Equal(Gather(T, x), constant) ->  Equal(x, place of the constant in T)
    OneHotEncoder(x, categories C)               ->  OneHotEncoder(LabelEncoder(x, C[0] -> 0, ..., else -1), 0, 1...)
                                                     also of numbers, where what is no category is refused
    TfIdfVectorizer(x, pool P)                   ->  TfIdfVectorizer(LabelEncoder(x, P[0] -> 0, ..., else -1), 0, 1...)

So kernels compute all but what enters and what leaves. Law: outputs do not change; their names and types stay.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_texts
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operator_rules import shown_operator
from nndeploy.graph.operators import int_attribute, ints_attribute, is_overridden, operand
from nndeploy.plugin.interface import MayTouch
from nndeploy_native.transforms.text_grams import OWN, TEXT_BYTES, TEXT_GRAMS, CountedTexts, counted_texts

ML = "ai.onnx.ml"
NO_PLACE = -1
REFUSES_OTHERS = "refuses_others"
"""Attribute of a LabelEncoder made here: what is no key ends the call."""
_Key = TypeVar("_Key", str, int)
_MOVEMENT = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


class TextsAsNumbers:
    """Lets kernels compute with places in tables instead of texts."""

    name = "texts-as-numbers"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows; returns how many it changed."""
        rewrite, count = _Rewrite(model), 0
        for node in tuple(model.graph):
            rule = _RULES.get(shown_operator(node.domain, node.op_type))
            if rule is not None and not is_overridden(node, model) and may_touch(node):
                count += rule(rewrite, node)
        rewrite.remove_unread()
        return count


class _Rewrite:
    """One model, and which of its texts are known as places in a table."""

    def __init__(self, model: ir.Model) -> None:
        self._edits = GraphEdits(model)
        self._places: dict[ir.Value, tuple[ir.Value, Sequence[str]]] = {}
        self._made: list[ir.Node] = []

    def places_of(self, value: ir.Value | None) -> tuple[ir.Value, Sequence[str]] | None:
        """Returns the places that a text is made of, and the table that they are in; None where it is not."""
        return None if value is None else self._places.get(value)

    def constant(self, node: ir.Node, places: Sequence[int], like: ir.Value) -> ir.Value:
        """Returns places as a constant of the shape of another one."""
        assert node.graph is not None, "the node is in its graph"
        assert like.const_value is not None, "it is a constant"
        graph = node.graph
        assert isinstance(graph, ir.Graph), "functions are inlined before"
        array = np.array(places, np.int64).reshape(like.const_value.shape.numpy())
        return self._edits.constant(graph, array, f"{like.name}_places")

    def gives_places(self, node: ir.Node, table: Sequence[str]) -> None:
        """Says that the first output of a node is places in a table now; texts are made of it behind."""
        places = node.outputs[0]
        texts = ir.Value(name=places.name, type=places.type, shape=places.shape)
        places.replace_all_uses_with(texts, replace_graph_outputs=True)
        places.name = self._edits.fresh_value_name(f"{texts.name}_places")
        places.type = ir.TensorType(ir.DataType.INT64)
        source = ir.StringTensor([text.encode() for text in table], shape=ir.Shape([len(table)]))
        name = self._edits.fresh_value_name(f"{texts.name}_table")
        constant = ir.Value(
            name=name, type=ir.TensorType(source.dtype), shape=ir.Shape([len(table)]), const_value=source
        )
        assert isinstance(node.graph, ir.Graph), "functions are inlined before"
        node.graph.register_initializer(constant)
        node.append(self._node("", "Gather", [constant, places], texts))
        self._places[texts] = (places, table)

    def encoded(self, node: ir.Node, table: Sequence[str] | Sequence[int], *, refuses_others: bool) -> ir.Value:
        """Returns the places in a table of the texts, or numbers, that are the first input of a node."""
        texts = operand(node, 0)
        assert texts is not None, "it was looked at"
        name = self._edits.fresh_value_name(f"{texts.name}_places")
        places = ir.Value(name=name, type=ir.TensorType(ir.DataType.INT64), shape=texts.shape)
        keys = _keys_of(table)
        values = ir.AttrInt64s("values_int64s", range(len(table)))
        others = ir.AttrInt64(REFUSES_OTHERS, 1) if refuses_others else ir.AttrInt64("default_int64", NO_PLACE)
        node.prepend(self._node(ML, "LabelEncoder", [texts], places, (keys, values, others)))
        return places

    def reads_bytes(self, node: ir.Node, counted: CountedTexts) -> None:
        """Lets a TfIdfVectorizer count in the bytes of texts."""
        texts = counted.texts
        assert texts.shape is not None, "it has one axis"
        bytes_, ends = (self._edits.fresh_value_name(f"{texts.name}_{name}") for name in ("bytes", "ends"))
        values = (
            ir.Value(name=bytes_, type=ir.TensorType(ir.DataType.UINT8), shape=ir.Shape([f"{bytes_}.0"])),
            ir.Value(name=ends, type=ir.TensorType(ir.DataType.INT64), shape=texts.shape),
        )
        case = ir.AttrString("case", counted.letter_case)
        name = self._edits.fresh_node_name(f"{bytes_}/{TEXT_BYTES}")
        counted.nodes[0].prepend(ir.Node(OWN, TEXT_BYTES, [texts], [case], outputs=values, name=name))
        node.domain, node.op_type = OWN, TEXT_GRAMS
        node.resize_inputs(2)
        for number, value in enumerate(values):
            node.replace_input_with(number, value)
        for attribute in (
            case, ir.AttrString("expression", counted.expression), ir.AttrInt64("least", counted.least),
        ):  # fmt: skip
            node.attributes.add(attribute)
        self._made += counted.nodes[:-1]

    def _node(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[ir.Value],
        result: ir.Value,
        attributes: Sequence[ir.Attr] = (),
    ) -> ir.Node:
        name = self._edits.fresh_node_name(f"{result.name}/{op_type}")
        made = ir.Node(domain, op_type, inputs, attributes, outputs=[result], name=name)
        self._made.append(made)
        return made

    def remove_unread(self) -> None:
        """Removes texts that nobody reads any more."""
        for node in reversed(self._made):
            if not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
                self._edits.remove(node)


def _keys_of(table: Sequence[str] | Sequence[int]) -> ir.Attr:
    """Returns the keys of a LabelEncoder."""
    texts = [one for one in table if isinstance(one, str)]
    numbers = [one for one in table if isinstance(one, int)]
    return ir.AttrInt64s("keys_int64s", numbers) if numbers else ir.AttrStrings("keys_strings", texts)


def _table(texts: Sequence[_Key]) -> tuple[list[_Key], list[int]]:
    """Returns texts or numbers, each once, and the place of each of them."""
    table = list(dict.fromkeys(texts))
    place = {text: number for number, text in enumerate(table)}
    return table, [place[text] for text in texts]


def _renamed(node: ir.Node, name: str, other: str, places: Sequence[int]) -> None:
    """Gives a node an attribute of places in place of one of texts."""
    del node.attributes[name]
    node.attributes.add(ir.AttrInt64s(other, places))


def _texts_of(node: ir.Node, name: str) -> Sequence[str]:
    attribute = node.attributes.get(name)
    return () if attribute is None else attribute.as_strings()


def _labels_of(other: str) -> "_Rule":
    def rule(rewrite: _Rewrite, node: ir.Node) -> bool:
        labels = _texts_of(node, "classlabels_strings")
        if not labels:
            return False
        table, places = _table(labels)
        node.attributes.pop(other, None)
        _renamed(node, "classlabels_strings", other, places)
        if node.outputs[0].name:
            rewrite.gives_places(node, table)
        return True

    return rule


def _gathered(rewrite: _Rewrite, node: ir.Node) -> bool:
    texts, data = constant_texts(operand(node, 0)), operand(node, 0)
    if texts is None or data is None:
        return False
    table, places = _table(texts)
    node.replace_input_with(0, rewrite.constant(node, places, data))
    rewrite.gives_places(node, table)
    return True


def _moved(rewrite: _Rewrite, node: ir.Node) -> bool:
    known = rewrite.places_of(operand(node, 0))
    if known is None:
        return False
    node.replace_input_with(0, known[0])
    rewrite.gives_places(node, known[1])
    return True


def _cast(rewrite: _Rewrite, node: ir.Node) -> bool:
    if rewrite.places_of(operand(node, 0)) is None or int_attribute(node, "to", 0) != ir.DataType.STRING:
        return False
    node.op_type = "Identity"
    node.attributes.clear()
    return _moved(rewrite, node)


def _compared(rewrite: _Rewrite, node: ir.Node) -> bool:
    for number in (0, 1):
        known, other = rewrite.places_of(operand(node, number)), operand(node, 1 - number)
        texts = constant_texts(other)
        if known is not None and texts is not None and other is not None:
            place = {text: at for at, text in enumerate(known[1])}
            constant = rewrite.constant(node, [place.get(text, NO_PLACE) for text in texts], other)
            node.replace_input_with(number, known[0])
            node.replace_input_with(1 - number, constant)
            return True
    return False


def _one_hot(rewrite: _Rewrite, node: ir.Node) -> bool:
    is_sure = int_attribute(node, "zeros", 1) == 0
    table: Sequence[str] | Sequence[int]
    if texts := _texts_of(node, "cats_strings"):
        table, places = _table(texts)
    elif is_sure:
        table, places = _table(ints_attribute(node, "cats_int64s") or ())
    else:
        return False
    node.replace_input_with(0, rewrite.encoded(node, table, refuses_others=is_sure))
    for name in ("cats_strings", "cats_int64s", "zeros"):
        node.attributes.pop(name, None)
    node.attributes.add(ir.AttrInt64s("cats_int64s", places))
    return True


def _tf_idf(rewrite: _Rewrite, node: ir.Node) -> bool:
    table, places = _table(_texts_of(node, "pool_strings"))
    if not table:
        return False
    counted = counted_texts(node)
    if counted is not None:
        rewrite.reads_bytes(node, counted)
        return True
    node.replace_input_with(0, rewrite.encoded(node, table, refuses_others=False))
    _renamed(node, "pool_strings", "pool_int64s", places)
    return True


_Rule = Callable[[_Rewrite, ir.Node], bool]
_RULES: dict[str, _Rule] = {
    "ai.onnx.ml::LinearClassifier": _labels_of("classlabels_ints"),
    "ai.onnx.ml::SVMClassifier": _labels_of("classlabels_ints"),
    "ai.onnx.ml::TreeEnsembleClassifier": _labels_of("classlabels_int64s"),
    "ai.onnx.ml::OneHotEncoder": _one_hot,
    **dict.fromkeys(("ai.onnx.ml::ArrayFeatureExtractor", "Gather"), _gathered),
    **dict.fromkeys(_MOVEMENT, _moved),
    "Cast": _cast,
    "Equal": _compared,
    "TfIdfVectorizer": _tf_idf,
}
