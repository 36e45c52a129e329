# SPDX-License-Identifier: Apache-2.0
"""Texts whose tokens are only counted: kernels read their bytes.

    TfIdfVectorizer(Flatten(Tokenizer(StringNormalizer(x))))   ->   TextGrams(TextBytes(x))

Conditions: no stop words; tokens are runs of one set of characters, or each character; what pads shorter texts is no
word of the pool.
"""

import re
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.graph.operators import int_attribute, operand, rank_of, text_attribute

OWN = "nndeploy"
"""Domain of operators that stand in no model."""
TEXT_BYTES, TEXT_GRAMS = "TextBytes", "TextGrams"
CHARACTERS = "."
_RUN = re.compile(r"((?:\\w|\\d|\[\^?(?:[^][\\]|\\[]wd.^\\-])+\]))(\1*)\+")


@dataclass(frozen=True, slots=True)
class CountedTexts:
    """What counts the n-grams of texts: the nodes, whose first one reads the texts, and what tokens are.

    `expression` is that of one character of a token; `CHARACTERS`: each is one.
    """

    nodes: tuple[ir.Node, ...]
    letter_case: str
    expression: str
    least: int

    @property
    def texts(self) -> ir.Value:
        """What the first node reads."""
        found = operand(self.nodes[0], 0)
        assert found is not None, "it was looked at"
        return found


def counted_texts(node: ir.Node) -> CountedTexts | None:
    """Returns the texts that a TfIdfVectorizer counts in, None where it reads other ones."""
    flatten = _producer(node, "Flatten")
    tokenizer = None if flatten is None else _producer(flatten, "Tokenizer")
    if flatten is None or tokenizer is None or int_attribute(flatten, "axis", 1) != 1:
        return None
    normalizer, words = _producer(tokenizer, "StringNormalizer"), node.attributes["pool_strings"].as_strings()
    split = _split_by(tokenizer)
    if split is None or text_attribute(tokenizer, "pad_value", "") in words:
        return None
    nodes: tuple[ir.Node, ...] = (tokenizer, flatten, node)
    case = "NONE"
    if normalizer is not None:
        stopwords = normalizer.attributes.get("stopwords")
        if stopwords is not None and stopwords.as_strings():
            return None
        nodes, case = (normalizer, *nodes), text_attribute(normalizer, "case_change_action", "NONE")
    if case not in ("NONE", "LOWER", "UPPER") or rank_of(operand(nodes[0], 0)) != 1:
        return None
    return CountedTexts(nodes, case, *split)


def _producer(node: ir.Node, op_type: str) -> ir.Node | None:
    value = operand(node, 0)
    producer = None if value is None else value.producer()
    return producer if producer is not None and producer.op_type == op_type else None


def _split_by(tokenizer: ir.Node) -> tuple[str, int] | None:
    """Returns the expression of one character of a token, and of how many one is at least."""
    expression, least = text_attribute(tokenizer, "tokenexp", ""), int_attribute(tokenizer, "mincharnum", 1)
    if int_attribute(tokenizer, "mark", 0) or "separators" in tokenizer.attributes or not expression.isascii():
        return None
    if expression == CHARACTERS:
        return (CHARACTERS, 1) if least < 2 else None
    word = re.fullmatch(r"\\b((?:\\w)+\+)\\b", expression)
    run = _RUN.fullmatch(expression if word is None else word[1])
    return None if run is None else (run[1], max(1, least, 1 + len(run[2]) // len(run[1])))
