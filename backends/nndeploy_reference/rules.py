# SPDX-License-Identifier: Apache-2.0
"""Nodes that ONNX's evaluator gets wrong, and that are not written anew (`operator_table.py`); seen in onnx 1.23.2.

Refused in bodies too: whoever evaluates a model hands it to the next engine.

Source: scikit-learn's own probabilities, which ONNX Runtime gives.
"""

from collections.abc import Callable, Mapping

import onnx

_Rule = Callable[[onnx.NodeProto], str]


def refusal_of(model: onnx.ModelProto) -> str:
    """Returns why a node of the model is refused, "" where none is."""
    return next((reason for node in _nodes(model.graph) if (reason := _refusal(node))), "")


def _refusal(node: onnx.NodeProto) -> str:
    rule = _RULES.get((node.domain, node.op_type))
    return "" if rule is None else rule(node)


def _nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                found += _nodes(body)
    return found


def _probabilities_of_a_machine(node: onnx.NodeProto) -> str:
    given = {attribute.name for attribute in node.attribute}
    return "the evaluator gets probabilities of SVMClassifier wrong (onnx 1.23.2)" if "prob_a" in given else ""


_RULES: Mapping[tuple[str, str], _Rule] = {
    ("ai.onnx.ml", "SVMClassifier"): _probabilities_of_a_machine,
}
