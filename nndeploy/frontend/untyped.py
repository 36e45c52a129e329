# SPDX-License-Identifier: Apache-2.0
"""onnx's inference of types, kept from nodes that end the process where the type of an input is not known.

Seen with onnx 1.23.2: `FRAGILE`. Such a node is an operator that nobody knows until its inputs have types.
"""

from collections.abc import Collection
from typing import Any

import onnx
import onnx.shape_inference

from nndeploy.frontend.traversal import graphs_of

FRAGILE = {
    "DictVectorizer": "ai.onnx.ml",
    "EyeLike": "",
    "LabelEncoder": "ai.onnx.ml",
    "RegexFullMatch": "",
    "TreeEnsemble": "ai.onnx.ml",
}
"""Operator -> its domain."""
_UNKNOWN = "nndeploy.untyped"


def infer_shapes(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Returns what `onnx.shape_inference.infer_shapes` returns, and raises what it raises."""
    if not _hidden_of(model, FRAGILE.values()):
        return onnx.shape_inference.infer_shapes(model, **options)
    hidden = onnx.ModelProto()
    hidden.CopyFrom(model)
    hidden.opset_import.add(domain=_UNKNOWN, version=1)
    for node in _hidden_of(hidden, FRAGILE.values()):
        node.domain = _UNKNOWN
    while True:
        typed = onnx.shape_inference.infer_shapes(hidden, **options)
        names = _typed_names(typed)
        shown = [node for node in _hidden_of(hidden, (_UNKNOWN,)) if names.issuperset(filter(None, node.input))]
        _show(shown)
        if not shown:
            _show(_hidden_of(typed, (_UNKNOWN,)))
            typed.opset_import.pop()
            return typed


def _hidden_of(model: onnx.ModelProto, domains: Collection[str]) -> list[onnx.NodeProto]:
    return [
        node
        for graph in graphs_of(model.graph)
        for node in graph.node
        if node.op_type in FRAGILE and node.domain in domains
    ]


def _show(nodes: list[onnx.NodeProto]) -> None:
    for node in nodes:
        node.domain = FRAGILE[node.op_type]


def _typed_names(typed: onnx.ModelProto) -> set[str]:
    found = set()
    for graph in graphs_of(typed.graph):
        found |= {tensor.name for tensor in graph.initializer}
        found |= {
            value.name
            for value in (*graph.input, *graph.value_info, *graph.output)
            if value.type.WhichOneof("value") is not None
        }
    return found
