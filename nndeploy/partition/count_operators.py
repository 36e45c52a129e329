# SPDX-License-Identifier: Apache-2.0
"""A submodel -> what each of its operators computes and moves, by the shapes that one sample gives."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, is_constant, operator, values_read
from nndeploy.pacing.plan.operators import Operator, Operators
from nndeploy.partition.cost import flops_of
from nndeploy.partition.value_sizes import Sizes


def counted_operators(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> Operators:
    """Returns the operators of the main graph, in its order; `shapes` and sizes that are not known as in `cost`."""
    sizes = Sizes(shapes)
    numbers, num_bytes = dict[str, int](), list[int]()

    def number_of(value: ir.Value) -> int:
        name = value.name or ""
        if name not in numbers:
            numbers[name] = len(numbers)
            num_bytes.append(sizes.bytes(value))
        return numbers[name]

    found = []
    for node in model.graph:
        read = values_read(node)
        constants = sum(sizes.bytes(value) for value in read if is_constant(value))
        found.append(
            Operator(
                operator(node),
                tuple(number_of(value) for value in read if value.name and not is_constant(value)),
                tuple(number_of(value) for value in node.outputs if value.name),
                flops_of(node, sizes),
                constants + _bytes_inside(node, sizes),
            )
        )
    return Operators(tuple(zip(numbers, num_bytes, strict=True)), tuple(found))


def _bytes_inside(node: ir.Node, sizes: Sizes) -> int:
    """Returns what the nodes in the bodies of a node move."""
    nodes = [inner for body in bodies(node) for inner in body]
    return sum(
        sum(sizes.bytes(value) for value in (*inner.inputs, *inner.outputs)) + _bytes_inside(inner, sizes)
        for inner in nodes
        if flops_of(inner, sizes)
    )
