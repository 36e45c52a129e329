# SPDX-License-Identifier: Apache-2.0
"""What nodes need of a device's memory: the constants that they read, and the values that are alive while they run.

    alive at a node: every value that it or a node before it makes and it or a node after it reads

Counted for the nodes of the main graph in its order, at the sizes for which costs were estimated. What a backend's
library takes beside that, and what one saves by sharing memory, nobody can say before it runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, is_constant, node_name, values_read
from nndeploy.partition.cost import Costs


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """The bytes of each constant that is read, by name, and of all values that are alive at once."""

    weights: Mapping[str, int]
    peak_bytes: int

    @property
    def weight_bytes(self) -> int:
        """The bytes of all constants."""
        return sum(self.weights.values())


def memory_needs(graph: ir.Graph, costs: Costs) -> dict[str, MemoryNeeds]:
    """Returns what each node needs, by its name."""
    nodes = list(graph)
    made = {value.name: i for i, node in enumerate(nodes) for value in node.outputs if value.name}
    last = {**made, **{value.name: -1 for value in graph.inputs if value.name}}
    for i, node in enumerate(nodes):
        last |= {value.name: i for value in values_read(node) if value.name in last and value.name}
    last |= {value.name: len(nodes) - 1 for value in graph.outputs if value.name in last and value.name}
    changes = [0] * (len(nodes) + 1)
    for name, end in last.items():
        size = costs.value_bytes.get(name, 0)
        changes[made.get(name, 0)] += size
        changes[end + 1] -= size
    found, alive = dict[str, MemoryNeeds](), 0
    for node, change in zip(nodes, changes, strict=False):
        alive += change
        found[node_name(node)] = MemoryNeeds(_weights(node), alive)
    return found


def needs_together(needs: Iterable[MemoryNeeds]) -> MemoryNeeds:
    """Returns what nodes need that run one after the other in one place."""
    every = list(needs)
    weights = {name: size for one in every for name, size in one.weights.items()}
    return MemoryNeeds(weights, max((one.peak_bytes for one in every), default=0))


def _weights(node: ir.Node) -> dict[str, int]:
    read = [value for value in values_read(node) if is_constant(value)]
    found = {value.name or "": value.const_value.nbytes for value in read if value.const_value is not None}
    inside = sum(_bytes_inside(body) for body in bodies(node))
    return {**found, f"in {node_name(node)}": inside} if inside else found


def _bytes_inside(body: ir.Graph) -> int:
    """Returns the bytes of the constants of a body, and of those inside of it."""
    own = [value.const_value for value in body.initializers.values() if value.const_value is not None]
    for node in body:
        own += [one.as_tensor() for one in node.attributes.values() if one.type == ir.AttributeType.TENSOR]
    return sum(tensor.nbytes for tensor in own) + sum(_bytes_inside(one) for node in body for one in bodies(node))
