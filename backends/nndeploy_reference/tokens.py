# SPDX-License-Identifier: Apache-2.0
"""Texts as tokens, and how often n-grams of tokens stand in rows.

Source: ONNX TfIdfVectorizer; ONNX Runtime, com.microsoft.Tokenizer, whose expressions are RE2's: ASCII alone.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
from onnx import defs

from nndeploy_reference.operator_table import Array, Node, operator

_TEXTS = defs.OpSchema.FormalParameter("X", "tensor(string)"), defs.OpSchema.FormalParameter("Y", "tensor(string)")
_KINDS = defs.OpSchema.AttrType
SCHEMA = defs.OpSchema(
    "Tokenizer",
    "com.microsoft",
    1,
    inputs=_TEXTS[:1],
    outputs=_TEXTS[1:],
    attributes=[
        defs.OpSchema.Attribute(name, kind, "", required=False)
        for name, kind in {
            "mark": _KINDS.INT, "mincharnum": _KINDS.INT, "pad_value": _KINDS.STRING, "separators": _KINDS.STRINGS,
            "tokenexp": _KINDS.STRING,
        }.items()
    ],
)  # fmt: skip


@operator("Tokenizer", domain="com.microsoft", schema=SCHEMA)
def _tokens(node: Node, x: Array) -> Array:
    rows = [_tokens_of(node, text) for text in x.ravel().tolist()]
    width = max(map(len, rows), default=0)
    found: Any = np.full((len(rows), width), node.pad_value, object)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found.reshape(*x.shape, width)


def _tokens_of(node: Node, text: str) -> list[str]:
    if node.separators == [""] or node.tokenexp == ".":
        parts = list(text)
    elif node.separators is None and node.tokenexp:
        parts = [found for found in re.findall(node.tokenexp, text, re.ASCII) if len(found) >= (node.mincharnum or 1)]
    else:
        raise ValueError("a Tokenizer with separators")
    return ["\x02", *parts, "\x03"] if node.mark else parts


@operator("TfIdfVectorizer")
def _grams(node: Node, x: Array) -> Array:
    """The weight of an n-gram is that at its own place in the pool, not at its column's."""
    pool, columns = node.pool_strings or node.pool_int64s, node.ngram_indexes
    weights = node.weights or [1.0] * len(columns)
    grams = [
        tuple(pool[begin : begin + length])
        for length, (first, end) in enumerate(pairwise([*node.ngram_counts, len(pool)]), 1)
        for begin in range(first, end, length)
    ]
    rows = x.reshape(-1, x.shape[-1])
    found = np.zeros((len(rows), max(columns) + 1), np.float32)
    for row, counts in zip(found, (_counts(node, row) for row in rows.tolist()), strict=True):
        for gram, column, weight in zip(grams, columns, weights, strict=True):
            times = counts[gram] if node.mode != "IDF" else min(1, counts[gram])
            row[column] += times * (1.0 if node.mode == "TF" else weight)
    return found.reshape(*x.shape[:-1], -1)


def _counts(node: Node, row: list[Any]) -> Counter[tuple[Any, ...]]:
    counts = Counter[tuple[Any, ...]]()
    for length in range(node.min_gram_length, node.max_gram_length + 1):
        for apart in range(1, 2 + (node.max_skip_count if length > 1 else 0)):
            width = (length - 1) * apart + 1
            counts.update(tuple(row[i : i + width : apart]) for i in range(len(row) - width + 1))
    return counts
