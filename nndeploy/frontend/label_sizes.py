# SPDX-License-Identifier: Apache-2.0
"""Outputs that are labels of rows: one for each row, whatever the model says.

onnxmltools writes that a classifier of LightGBM gives one label, of as many rows as there are. Where the number of rows
is open, what a model says of the number of labels is forgotten; the inference finds it again.
"""

import onnx

CLASSIFIERS = frozenset({"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"})
_HANDED_ON = frozenset({"Cast", "Identity"})


def forget_label_sizes(graph: onnx.GraphProto) -> None:
    """Takes the sizes out of outputs that are labels, in place, where a size of an input is open."""
    dims = [dim for value in graph.input for dim in value.type.tensor_type.shape.dim]
    if all(dim.HasField("dim_value") for dim in dims):
        return
    producers = {name: node for node in graph.node for name in node.output}
    for value in graph.output:
        if _is_label(value.name, producers):
            for dim in value.type.tensor_type.shape.dim:
                dim.ClearField("dim_value")


def _is_label(name: str, producers: dict[str, onnx.NodeProto]) -> bool:
    for _ in producers:  # a chain is no longer than there are nodes: the order of these was not checked yet
        node = producers.get(name)
        if node is None:
            return False
        if node.domain == "ai.onnx.ml":
            return node.op_type in CLASSIFIERS and node.output[0] == name
        if node.op_type not in _HANDED_ON or not node.input:
            return False
        name = node.input[0]
    return False
