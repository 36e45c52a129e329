# SPDX-License-Identifier: Apache-2.0
"""Nodes that ONNX Runtime would take and get wrong: refused before the library is asked.

Each rule was seen to give wrong numbers with onnxruntime 1.31.1, on a case of ONNX's own backend test suite.
"""

from collections.abc import Iterator

import onnx_ir as ir


def rule(node: ir.Node) -> str:
    """Returns why `node`, with all in its bodies, is refused, or ""."""
    return next((reason for inner in _with_bodies(node) if (reason := _wrong(inner))), "")


def _wrong(node: ir.Node) -> str:
    if node.domain not in ("", "ai.onnx"):
        return ""
    if node.op_type == "MaxUnpool" and len(node.inputs) > 2 and node.inputs[2] is not None:
        return "ONNX Runtime counts the indices of MaxUnpool in another shape where the output's is given"
    inverse = node.attributes.get("inverse")
    if node.op_type == "DFT" and inverse is not None and inverse.as_int():
        return "ONNX Runtime is 1e-5 off in an inverse DFT where the result is 0"
    return ""


def _with_bodies(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from attribute.as_graph().all_nodes()
        elif attribute.type == ir.AttributeType.GRAPHS:
            for graph in attribute.as_graphs():
                yield from graph.all_nodes()
