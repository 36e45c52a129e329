# SPDX-License-Identifier: Apache-2.0
"""ONNX models in the form that TensorRT's parser reads, and the operators that are too new for it.

The parser looks at most operators without regard to their version, so a version that it does not know would be taken
for an older one. Those are refused here. Law: the same model gives the same bytes.

Source: TensorRT 11, ONNX Opset Guide (opsets 9 to 25); the parser itself names 7 as the oldest.
"""

import onnx.defs
import onnx_ir as ir

from nndeploy.backend_kit.transforms.operator_versions import means_same, version_of
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.nodes import bodies

NEWEST_OPSET = 25
OLDEST_OPSET = 7
MAX_BYTES = 2**31 - 1  # Source: protobuf's limit of one message


def bytes_for_parser(model: ir.Model) -> bytes:
    """Returns the bytes of a model; it stays as it is.

    Raises:
        BuildRefusedError: the model is larger than 2 GiB.
    """
    if sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value) > MAX_BYTES:
        raise BuildRefusedError("the model is larger than 2 GiB")
    try:
        return bytes(ir.to_proto(model).SerializeToString(deterministic=True))
    except Exception as err:  # protobuf's own error, whose class is no part of its interface
        raise BuildRefusedError("the model is larger than 2 GiB") from err


def unknown_version(node: ir.Node, model: ir.Model) -> str:
    """Returns why the parser could misread `node` or an operator in its bodies, or ""."""
    for inner in (node, *_nodes_inside(node)):
        said = version_of(model.graph.opset_imports, inner.domain)
        if said is None or inner.domain not in ("", "ai.onnx"):
            continue
        known = max(OLDEST_OPSET, min(said, NEWEST_OPSET))
        if _is_known(inner.op_type, known) and not means_same("", inner.op_type, said, known):
            age = "older" if said < known else "newer"
            return f"{inner.op_type} of opset {said} is {age} than what TensorRT reads (opset {known})"
    return ""


def _is_known(op_type: str, version: int) -> bool:
    """Returns whether the operator existed in a version of the set; of others the parser itself says so."""
    return bool(onnx.defs.has(op_type, version, ""))


def _nodes_inside(node: ir.Node) -> list[ir.Node]:
    return [inner for body in bodies(node) for inner in body.all_nodes()]
