# SPDX-License-Identifier: Apache-2.0
"""Asks a library which nodes of a model it takes, through one function that tries a whole model. For plugin authors.

In: a model and `refusal`, which tries a model with the real library and returns "" or the reason. Out: one `Support`
for each node. The whole model is tried first (the usual case, and the fastest); only if the library refuses it, each
node is tried as a model of its own, with its typed inputs and the constants it reads. Equal one-node models are tried
once: names are made canonical and the data of large constants is left out before they are compared.

A `rule` may refuse a node beforehand, for what a library would take but get wrong.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.nodes import values_read
from nndeploy.plugin.interface import TAKEN, Support

Refusal = Callable[[ir.Model], str]
"""Tries a model with the library; returns "" where it takes it, else the reason."""

Rule = Callable[[ir.Node], str]
"""Returns why a node is refused without asking the library, or ""."""

MAX_CONSTANT_ELEMENTS = 64
"""Larger constants are asked about with other data: no library looks into them, and equal questions are more often met.

Shapes, axes, pads, scales of Resize and the like, which do decide, are smaller.
"""


def supported_nodes(
    model: ir.Model, refusal: Refusal, rule: Rule = lambda _node: "", *, needs_types: bool = True
) -> list[Support]:
    """Returns the library's answer for each node of the main graph, in its order.

    With `needs_types` a node is refused where the type of a value that it reads is not known.
    """
    nodes = list(model.graph)
    ruled = [rule(node) for node in nodes]
    allowed = [node for node, reason in zip(nodes, ruled, strict=True) if not reason]
    if not allowed:
        return [_support(reason) for reason in ruled]
    whole = model if len(allowed) == len(nodes) else part_of(model, allowed)
    if not (needs_types and untyped_input(whole)) and not refusal(whole):
        return [_support(reason) for reason in ruled]
    known: dict[bytes, str] = {}

    def ask(node: ir.Node) -> str:
        untyped = _untyped(node) if needs_types else ""
        return untyped or _ask(model, node, refusal, known)

    return [_support(reason or ask(node)) for node, reason in zip(nodes, ruled, strict=True)]


def part_of(model: ir.Model, nodes: Sequence[ir.Node]) -> ir.Model:
    """Returns `nodes` (in topological order) as a model of their own; constants become its initializers.

    Inputs are the values that the nodes read and do not make, outputs all that they make.
    """
    made = {id(output) for node in nodes for output in node.outputs}
    inputs: dict[int, ir.Value] = {}
    constants: dict[int, ir.Value] = {}
    for value in (value for node in nodes for value in values_read(node)):
        if id(value) not in made:
            (inputs if constant_of(value) is None else constants)[id(value)] = value
    outputs = [output for node in nodes for output in node.outputs if output.name]
    view = ir.GraphView(
        list(inputs.values()),
        outputs,
        nodes=nodes,
        initializers=tuple(value for value in constants.values() if value.is_initializer()),
        opset_imports=model.graph.opset_imports,
        name="part",
    )
    made_by_nodes = [value for value in constants.values() if not value.is_initializer()]
    graph = _with_constant_nodes(view, made_by_nodes).clone()
    return ir.Model(graph, ir_version=model.ir_version, functions=list(model.functions.values()))


def constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Returns the tensor of an initializer or of a Constant node's output, None for any other value."""
    if value.is_initializer():
        return value.const_value
    producer = value.producer()
    if producer is None or producer.op_type != "Constant" or producer.domain not in ("", "ai.onnx"):
        return None
    tensor = producer.attributes.get("value")
    # get_const_tensor names the tensor of a `value` attribute anew: nothing here may change the model
    return ir.convenience.get_const_tensor(value) if tensor is None else tensor.as_tensor()


def bytes_of(proto: onnx.ModelProto) -> bytes:
    """Returns a model's bytes; the same model gives the same bytes.

    Raises:
        BuildRefusedError: the model is larger than 2 GiB, protobuf's limit of one message.
    """
    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except Exception as err:  # protobuf's own class is not typed
        raise BuildRefusedError("the model is larger than 2 GiB") from err


def untyped_input(model: ir.Model) -> str:
    """Returns the name of an input whose type is not known, or ""."""
    return next((value.name or "?" for value in model.graph.inputs if value.type is None), "")


def _support(reason: str) -> Support:
    return Support(False, reason) if reason else TAKEN


def _with_constant_nodes(view: ir.GraphView, values: Sequence[ir.Value]) -> ir.GraphView:
    """Returns the view with the Constant nodes that make `values` in front."""
    makers = [producer for value in values if (producer := value.producer()) is not None]
    return ir.GraphView(
        view.inputs,
        view.outputs,
        nodes=[*makers, *view],
        initializers=tuple(view.initializers.values()),
        opset_imports=view.opset_imports,
        name=view.name,
    )


def _untyped(node: ir.Node) -> str:
    value = next((value for value in values_read(node) if value.type is None and constant_of(value) is None), None)
    return "" if value is None else one_line_reason(f"the type of {value.name!r} is not known")


def _ask(model: ir.Model, node: ir.Node, refusal: Refusal, known: dict[bytes, str]) -> str:
    part = part_of(model, [node])
    _make_canonical(part)
    key = ir.to_proto(part).SerializeToString(deterministic=True)
    if key not in known:
        known[key] = one_line_reason(refusal(part))
    return known[key]


def _make_canonical(part: ir.Model) -> None:
    """Renames what surrounds a one-node model and forgets the data of large constants."""
    graph = part.graph
    for i, value in enumerate(graph.inputs):
        value.name = f"in{i}"
    for i, value in enumerate(list(graph.initializers.values())):
        value.name = f"const{i}"
        if isinstance(value.const_value, ir.ExternalTensor):
            continue  # it is not copied into the question anyhow
        if value.const_value is not None and value.const_value.size > MAX_CONSTANT_ELEMENTS:
            value.const_value = _without_data(value.const_value, value.name)
    for i, value in enumerate(graph.outputs):
        value.name = f"out{i}"
    for node in graph:
        node.name, node.doc_string = "", None
        node.metadata_props.clear()


def _without_data(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """Returns a tensor of the same type and shape: ones for reals (a scale must not be 0), zeros for the others."""
    if tensor.dtype == ir.DataType.STRING:
        return tensor
    fill = np.ones if tensor.dtype.is_floating_point() else np.zeros
    return ir.Tensor(fill(tensor.shape.numpy(), tensor.dtype.numpy()), dtype=tensor.dtype, name=name)
