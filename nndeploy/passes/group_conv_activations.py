# SPDX-License-Identifier: Apache-2.0
"""act(f(x)) -> the same, with f and act marked as one group that stays on one backend where it can.

Libraries compute an activation for nothing while the result of a convolution is still in registers, so a cut between
the two costs a pass over memory. The mark is `metadata_props["nndeploy.group"]`, the name of f's output; partitioning
reads it, the graph computes what it did. f is Conv, ConvTranspose or Gemm, and act, the only reader of f's output y:

* Relu, LeakyRelu, PRelu, Elu, Selu, Clip, Sigmoid, HardSigmoid, Tanh, Softplus, HardSwish, Mish, Gelu, Swish
* y * gate(y), where gate is Sigmoid, HardSigmoid, Softplus and Tanh, or Clip(y + c): swish, mish, hard-swish spelled
  out; a multiplication or division of the product by a constant belongs to it

Marks that the model came with are removed. Main graph only.

Source: the fusions that TensorRT, OpenVINO and ONNX Runtime document for convolutions.
"""

import onnx_ir as ir

from nndeploy.graph.constants import constant_tensor
from nndeploy.graph.linear_filter import FILTERS
from nndeploy.graph.operators import is_standard, only_user
from nndeploy.passes.model_pass import ModelPass

GROUP_KEY = "nndeploy.group"

_ACTIVATIONS = frozenset(
    {
        "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Relu", "Selu", "Sigmoid",
        "Softplus", "Swish", "Tanh",
    }
)  # fmt: skip
_GATE_STEPS = frozenset({"Add", "Clip", "HardSigmoid", "Mul", "Div", "Relu", "Sigmoid", "Softplus", "Tanh"})
_SCALINGS = frozenset({"Mul", "Div"})
MAX_GATE_STEPS = 4


class GroupConvActivations(ModelPass):
    """Marks each filter and its activation as one group."""

    name = "group-conv-activations"

    def rewrite(self, model: ir.Model) -> int:
        """Marks the nodes of the main graph; returns how many groups it formed, changed or dissolved."""
        group_of: dict[ir.Node, str] = {}
        for node in model.graph:
            if node.op_type in FILTERS and is_standard(node, model):
                members = _activation(node.outputs[0])
                if members and all(member.graph is node.graph and is_standard(member, model) for member in members):
                    group_of |= dict.fromkeys((node, *members), node.outputs[0].name or "")
        return len({change for node in model.graph for change in _mark(node, group_of.get(node))})


def _mark(node: ir.Node, group: str | None) -> set[str]:
    """Returns the groups that the node entered or left."""
    before = node.metadata_props.pop(GROUP_KEY, None)
    if group is not None:
        node.metadata_props[GROUP_KEY] = group
    return {name for name in (before, group) if name is not None and before != group}


def _activation(value: ir.Value) -> list[ir.Node]:
    """Returns the nodes that make up the activation of `value`; none where it has other readers, or is an output."""
    reader = only_user(value)
    if reader is not None:
        return [reader] if reader.op_type in _ACTIVATIONS and _reads_constants_besides(value, reader) else []
    readers = list(value.consumers())
    if value.is_graph_output() or len(readers) != 2 or len(value.uses()) != 2:
        return []
    gate = _gate(value, *readers) or _gate(value, *reversed(readers))
    return [*gate, *_scaling(gate[-1])] if gate else []


def _gate(value: ir.Value, start: ir.Node, product: ir.Node) -> list[ir.Node]:
    """Returns the nodes from `start` to `product`, which multiplies `value` with what they make of it; else none."""
    steps: list[ir.Node] = []
    node, source = start, value
    while node is not product:
        following = only_user(node.outputs[0])
        if len(steps) == MAX_GATE_STEPS or node.op_type not in _GATE_STEPS or following is None:
            return []
        if node.graph is not product.graph or not _reads_constants_besides(source, node):
            return []
        steps.append(node)
        node, source = following, node.outputs[0]
    return [*steps, product] if steps and product.op_type == "Mul" and value in product.inputs else []


def _scaling(product: ir.Node) -> list[ir.Node]:
    reader = only_user(product.outputs[0])
    is_scaling = reader is not None and reader.op_type in _SCALINGS
    return [reader] if reader and is_scaling and _reads_constants_besides(product.outputs[0], reader) else []


def _reads_constants_besides(value: ir.Value, node: ir.Node) -> bool:
    others = [other for other in node.inputs if other is not None and other is not value]
    return len(others) < len(node.inputs) and all(constant_tensor(other) is not None for other in others)
