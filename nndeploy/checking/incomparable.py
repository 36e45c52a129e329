# SPDX-License-Identifier: Apache-2.0
"""Values that two right runs need not agree on, with the reason: of those only the type is compared.

Random operators draw other numbers in every library, also with a seed; all that follows from them differs too. What
an operator outside ONNX gives (an encoded image, say) may change as a whole with the last bit of what it is given.
"""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, operator, values_read
from nndeploy.graph.operator_rules import OPSETS

RANDOM_OPERATORS = frozenset({
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
})  # fmt: skip


def incomparable_values(graph: ir.Graph) -> Mapping[str, str]:
    """Returns the values of a topologically sorted main graph that cannot be compared by number: name -> reason."""
    reasons: dict[str, str] = {}
    random: set[int] = set()
    for node in graph:
        if _is_random(node) or any(id(value) in random for value in values_read(node)):
            random.update(id(value) for value in node.outputs)
            reasons.update({value.name: "random by definition" for value in node.outputs if value.name})
        elif node.domain not in OPSETS and node.domain != "ai.onnx":
            reasons.update({value.name: f"made by {operator(node)}" for value in node.outputs if value.name})
        elif node.op_type == "Identity" and (reason := reasons.get(_input_name(node))) and node.outputs[0].name:
            reasons[node.outputs[0].name] = reason
    return reasons


def _input_name(node: ir.Node) -> str:
    value = node.inputs[0] if node.inputs else None
    return value.name or "" if value is not None else ""


def _is_random(node: ir.Node) -> bool:
    if node.op_type == "Dropout":
        return len(node.inputs) > 2 and node.inputs[2] is not None  # training mode may be on
    return node.op_type in RANDOM_OPERATORS or any(_is_random(inner) for body in bodies(node) for inner in body)
