# SPDX-License-Identifier: Apache-2.0
"""What the texts in an input may be, by who looks them up.

    town -> Reshape -> OneHotEncoder(York, Ely; no other)              ->  York or Ely
    text -> StringNormalizer -> Tokenizer -> TfIdfVectorizer(words)    ->  several of the words

Followed through what moves, folds or cuts texts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.graph.operators import int_attribute

_CUTTING = frozenset({"StringSplit", "Tokenizer"})
_MOVING = frozenset(
    {"ArrayFeatureExtractor", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Squeeze", "StringNormalizer",
     "Transpose", "Unsqueeze"}
)  # fmt: skip
_TABLES = ("cats_strings", "classes_strings", "keys_strings", "pool_strings")


@dataclass(frozen=True, slots=True)
class Texts:
    """`words` that are looked up: a text is several where it `is_cut`, and nothing else where it `is_sure`."""

    words: tuple[str, ...]
    is_cut: bool
    is_sure: bool


def text_inputs(graph: ir.Graph) -> dict[str, Texts]:
    """Returns what the inputs of texts hold that somebody looks up; where one may hold no other text, that decides."""
    found = {}
    for value in graph.inputs:
        if value.dtype == ir.DataType.STRING:
            tables = sorted(_tables_of(value, is_cut=False), key=lambda one: not one.is_sure)
            if tables:
                found[value.name or ""] = tables[0]
    return found


def _tables_of(value: ir.Value, *, is_cut: bool) -> Iterator[Texts]:
    for node in {use.node: None for use in value.uses()}:
        if node.op_type in _CUTTING or node.op_type in _MOVING:
            yield from _tables_of(node.outputs[0], is_cut=is_cut or node.op_type in _CUTTING)
        for name in _TABLES:
            words = node.attributes[name].as_strings() if name in node.attributes else ()
            if words:
                is_sure = node.op_type == "OneHotEncoder" and int_attribute(node, "zeros", 1) == 0
                yield Texts(tuple(words), is_cut, is_sure)
