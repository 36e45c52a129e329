# SPDX-License-Identifier: Apache-2.0
"""Whether a model may say an older operator set version, because all its operators mean the same there.

A library that knows operator sets up to 26 refuses a model that says 28, although most operators did not change in
between. An operator means the same at two versions where its newest definition at both is the same one, or where the
two definitions have the same text, attributes, inputs and outputs, so that only element types were added. Where the
text changed as well, `GREW_ONLY` says from which version on nothing but types and attributes were added.

Law: where `operator_newer_than` finds none, a model computes after `restamp` what it did before.
Source: ONNX operator schemas (`since_version`, and how a version takes the newest schema not above it).
"""

from collections.abc import Mapping
from functools import cache

import onnx
import onnx.defs
import onnx_ir as ir

GREW_ONLY = {
    "Abs": 6, "Add": 7, "And": 7, "Cast": 9, "CastLike": 15, "Ceil": 6, "Clip": 12, "Concat": 4, "Constant": 11,
    "ConstantOfShape": 9, "Div": 7, "Equal": 7, "Erf": 9, "Exp": 6, "Expand": 8, "Flatten": 1, "Floor": 6, "Gather": 1,
    "Greater": 7, "Identity": 1, "Less": 7, "Log": 6, "MatMul": 1, "Max": 8, "Min": 8, "Mul": 7, "Neg": 6, "Not": 1,
    "Or": 7, "Pow": 12, "Range": 11, "ReduceMax": 18, "ReduceMin": 18, "ReduceSum": 13, "Relu": 6, "Reshape": 5,
    "Round": 11,
    "Shape": 1, "Sigmoid": 6, "Size": 1, "Slice": 10, "Sqrt": 6, "Squeeze": 13, "Sub": 7, "Tanh": 6, "Tile": 6,
    "Transpose": 1, "Unsqueeze": 13, "Where": 9,
}  # fmt: skip
"""Operator -> version since which later definitions add only element types, and attributes that may be left out."""


def operator_newer_than(model: ir.Model, newest: Mapping[str, int]) -> str:
    """Returns an operator, such as "SwiGLU of opset 28", that means something else in the older sets, or "".

    `newest` gives for a domain the newest version that is known; a domain it lacks is left alone.
    """
    holders: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for holder in holders:
        for node in holder.all_nodes():
            domain = "" if node.domain == "ai.onnx" else node.domain
            said = version_of(holder.opset_imports, domain)
            if said is not None and not means_same(domain, node.op_type, said, min(said, newest.get(domain, said))):
                return f"{node.op_type} of opset {said}"
    return ""


def restamp(proto: onnx.ModelProto, newest: Mapping[str, int], ir_version: int) -> None:
    """Lowers the versions that the model says, in place, to at most `newest` and `ir_version`."""
    proto.ir_version = min(proto.ir_version, ir_version)
    for holder in (proto, *proto.functions):
        for imported in holder.opset_import:
            domain = "" if imported.domain == "ai.onnx" else imported.domain
            imported.version = min(imported.version, newest.get(domain, imported.version))


def version_of(opset_imports: Mapping[str, int], domain: str) -> int | None:
    """Returns the version of an operator set that a graph says; "" and "ai.onnx" are the same."""
    if domain in ("", "ai.onnx"):
        return opset_imports.get("", opset_imports.get("ai.onnx"))
    return opset_imports.get(domain)


@cache
def means_same(domain: str, op_type: str, version: int, other: int) -> bool:
    """Returns whether an operator is defined alike in two versions of its set."""
    if version == other:
        return True
    if domain == "" and GREW_ONLY.get(op_type, max(version, other)) <= min(version, other):
        return True
    schema, other_schema = (_schema(domain, op_type, v) for v in (version, other))
    if schema is None or other_schema is None:
        return schema is other_schema  # not ONNX's own: no version of it is known, and none can change
    return schema.since_version == other_schema.since_version or _meaning(schema) == _meaning(other_schema)


def _schema(domain: str, op_type: str, version: int) -> "onnx.defs.OpSchema | None":
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _meaning(schema: "onnx.defs.OpSchema") -> tuple[object, ...]:
    attributes = [
        (name, attribute.type, attribute.required, attribute.default_value.SerializeToString())
        for name, attribute in sorted(schema.attributes.items())
    ]
    return (
        (schema.doc or "").split(),
        attributes,
        [(value.name, value.option, value.type_str) for value in schema.inputs],
        [(value.name, value.option, value.type_str) for value in schema.outputs],
    )
