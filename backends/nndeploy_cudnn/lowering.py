# SPDX-License-Identifier: Apache-2.0
"""A submodel, or one node of a model, as operations and then as steps: what `supports` and `build` share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.nodes import values_read
from nndeploy.values.types import DimRange
from nndeploy_cudnn.emitter import Emission, emit
from nndeploy_cudnn.operations import Value
from nndeploy_cudnn.patterns import translate
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation
from nndeploy_cudnn.planner import Plans


@dataclass(frozen=True, slots=True)
class Lowered:
    """`inputs` are those that some step reads, a shape that was known beforehand is not among them."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    emission: Emission


def lower(
    nodes: Sequence[ir.Node], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], planner: Plans,
    ranges: Mapping[str, DimRange],
) -> Lowered:  # fmt: skip
    """Returns the steps that compute `outputs` from `inputs`.

    Raises:
        NotTakenError: a node is not taken.
    """
    translation = Translation(ranges)
    for node in nodes:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            continue
        translate(node, translation)
    found = tuple(translation.value(output) for output in outputs)
    used = tuple(value for value in map(translation.known, inputs) if value is not None)
    return Lowered(used, found, emit(translation.operations, used, found, planner))


def refusal_of(node: ir.Node, planner: Plans, ranges: Mapping[str, DimRange]) -> str:
    """Returns why cuDNN does not take a node by itself, or ""."""
    inputs = [value for value in values_read(node) if constant_of(value) is None]
    outputs = [output for output in node.outputs if output.uses() or output.is_graph_output()] or node.outputs[:1]
    try:
        lower([node], inputs, list(outputs), planner, ranges)
    except NotTakenError as err:
        return str(err)
    return ""
