# SPDX-License-Identifier: Apache-2.0
"""Texts as tokens. Source: ONNX Runtime, com.microsoft.Tokenizer, whose expressions are RE2's: ASCII alone."""

import re
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
