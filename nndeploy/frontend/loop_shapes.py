# SPDX-License-Identifier: Apache-2.0
"""Shapes that the body of a Loop declares of what it carries from one iteration to the next, as far as they are proven.

    Loop(n, , x: [2, 3]) { (v: [2, 3]) -> w = Concat(v, x): [4, 3] }   ->   v: no shape
    Loop(n, , x: [2, 3]) { (v: [2, 3]) -> w = Add(v, x): [2, 3] }      ->   as it is

A declaration holds by induction: what goes in has that shape, and what comes out has it whenever that is so. One that
does not hold would mislead every engine: they fold sizes.
"""

from collections.abc import Mapping

import onnx
import onnx.helper

from nndeploy.frontend.traversal import bodies_of, graphs_of, nodes_of
from nndeploy.graph.operator_rules import normal_domain


def forget_unproven(model: onnx.ModelProto, typed: onnx.ModelProto) -> bool:
    """Drops the shapes that nothing proves, in place; returns whether there was one.

    `typed` is the model with the types that are inferred where the shapes hold.
    """
    types: dict[str, onnx.TypeProto] = {}
    for graph in graphs_of(typed.graph):
        types.update((value.name, value.type) for value in (*graph.input, *graph.value_info, *graph.output))
        for tensor in graph.initializer:
            types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    is_changed = False
    for loop, known in zip(nodes_of(model), nodes_of(typed), strict=True):
        if loop.op_type == "Loop" and not normal_domain(loop.domain) and not _is_proven(loop, known, types):
            is_changed |= _forget(loop)
    return is_changed


def forget_shape(value: onnx.ValueInfoProto) -> None:
    """Drops the shape of a tensor, in place."""
    if value.type.WhichOneof("value") == "tensor_type":
        value.type.tensor_type.ClearField("shape")


def _forget(loop: onnx.NodeProto) -> bool:
    (body,) = bodies_of(loop)
    carried = [value for value in body.input[2:] if value.type.tensor_type.HasField("shape")]
    for value in carried:
        forget_shape(value)
    return bool(carried)


def _is_proven(loop: onnx.NodeProto, typed: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> bool:
    (body,), (known,) = bodies_of(loop), bodies_of(typed)
    carried = zip(body.input[2:], loop.input[2:], known.output[1:], strict=False)
    return all(_holds(v.type, (types.get(first, onnx.TypeProto()), last.type)) for v, first, last in carried)


def _holds(declared: onnx.TypeProto, found: tuple[onnx.TypeProto, onnx.TypeProto]) -> bool:
    """Returns whether a declared shape, as far as it says anything, is that of what goes in and of what comes out."""
    if not declared.tensor_type.HasField("shape"):
        return True
    wanted = _sizes(declared)
    return all(
        each.tensor_type.HasField("shape")
        and len(_sizes(each)) == len(wanted)
        and all(want in (None, size) for want, size in zip(wanted, _sizes(each), strict=True))
        for each in found
    )


def _sizes(value_type: onnx.TypeProto) -> list[int | str | None]:
    dims = value_type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims]
