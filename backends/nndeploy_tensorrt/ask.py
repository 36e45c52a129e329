# SPDX-License-Identifier: Apache-2.0
"""Asks TensorRT about one model: which nodes of its main graph it refuses, and why.

Five questions, each only where the ones before found nothing:

    sizes      is the size of every input known, or declared as a range?
    parser     does the parser take each node? (its list of supported subgraphs; its errors, brought to the node)
    shapes     does the value of an input decide shapes? TensorRT would have to know it when it builds
    types      has every value the type and the sizes that the model says? The parser silently makes float32 of
               float64 and int8 of quantised uint8
    builder    does an engine come out?

A question can be answered for a whole model only together: one bad node hides others. Whoever asks takes the refused
nodes out and asks again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from nndeploy.backend_kit.reasons import one_line_reason
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.nodes import bodies, values_read
from nndeploy.values.types import DimRange
from nndeploy_tensorrt.engine import EngineRequest, Parsed, build_engine, new_parser, parsed
from nndeploy_tensorrt.library import TensorRt, log_of
from nndeploy_tensorrt.model_bytes import bytes_for_parser
from nndeploy_tensorrt.reason import parser_reason
from nndeploy_tensorrt.sizes import MAX_PROFILES, profiles, unknown_size
from nndeploy_tensorrt.tensor_types import PACKED, dtype_name

Refused = Mapping[int, str]
"""Index of a node in the main graph -> why TensorRT does not take it."""

_FIRST_OF_STACK = re.compile(r"^(?P<name>.*) \([^()]*\)$", re.DOTALL)
NO_BLAME = -1


def refused_by_sizes(model: ir.Model, ranges: Mapping[str, DimRange]) -> Refused:
    """Returns the nodes that read an input whose sizes nobody declared."""
    unknown = {id(value): why for value in model.graph.inputs if (why := unknown_size(value, ranges))}
    return _readers(model, unknown)


def refused_by_parser(model: ir.Model, flavour: str) -> Refused:
    """Returns the nodes that the parser does not take; `NO_BLAME` stands for the whole where it names none.

    Raises:
        BuildRefusedError: the model is larger than 2 GiB.
    """
    with log_of(flavour).recording():
        empty = new_parser(flavour)
        asked = empty.parser
        if asked.supports_model_v2(bytes_for_parser(model)):
            return {}
        taken = {i for graph in range(asked.num_subgraphs) for i in asked.get_subgraph_nodes(graph)}
        errors = [asked.get_error(i) for i in range(asked.num_errors)]
        return _blamed(model, errors, taken)


def refused_by_shapes_or_types(model: ir.Model, flavour: str) -> Refused:
    """Returns the nodes that read a value which decides shapes, or that the parser would give another type.

    Raises:
        BuildRefusedError: the model does not parse.
    """
    with log_of(flavour).recording():
        found = parsed(bytes_for_parser(model), flavour)
        by_name = {value.name: value for value in model.graph.inputs}
        deciding = {
            id(by_name[tensor.name]): f"the value of {tensor.name!r} decides shapes and is known only at run time"
            for tensor in found.inputs
            if tensor.is_shape_tensor
        }
        wrong = {
            id(by_name[tensor.name]): why for tensor in found.inputs if (why := _misfit(by_name[tensor.name], tensor))
        }
        return _readers(model, deciding) or {**_readers(model, wrong), **_mistyped(model, found)}


def refused_by_builder(model: ir.Model, request: EngineRequest, ranges: Mapping[str, DimRange]) -> str:
    """Returns why no engine can be built of the whole model, or ""."""
    try:
        build_engine(bytes_for_parser(model), with_sizes(replace(request, is_trial=True), model, ranges, 1))
    except BuildRefusedError as err:
        return str(err)
    return ""


def with_sizes(
    request: EngineRequest, model: ir.Model, ranges: Mapping[str, DimRange], most: int = MAX_PROFILES
) -> EngineRequest:
    """Returns the request with the sizes of the model's dynamic inputs in at most `most` profiles."""
    return replace(request, profiles=profiles(model.graph.inputs, ranges, most))


def first_refused(count: int, refusal: Callable[[int], str]) -> tuple[int, str]:
    """Returns the index of the item with which `refusal(n)`, asked of the first n items, turns from "" to a reason.

    `refusal(count)` must give a reason; of several such items one is found, by halving.
    """
    low, high, why = 0, count, refusal(count)
    while high - low > 1:
        middle = (low + high) // 2
        if reason := refusal(middle):
            high, why = middle, reason
        else:
            low = middle
    return high - 1, why


def _blamed(model: ir.Model, errors: Sequence[TensorRt], taken: set[int]) -> dict[int, str]:
    """Returns what the parser holds against nodes: by its errors, and by what its subgraphs leave out."""
    blamed: dict[int, str] = {}
    unplaced: list[str] = []
    for error in errors:
        at = _nodes_of_error(model, error)
        inside = len(at) == 1 and model.graph[at[0]].op_type != error.node_operator()
        why = next(iter(_unread(model, error).values()), "") or _reason(error, inside=inside)
        for i in at:
            blamed.setdefault(i, why)
        if not at:
            unplaced.append(why)
    for i, node in enumerate(model.graph):
        if taken and i not in taken and i not in blamed:
            blamed[i] = unplaced[0] if unplaced else f"TensorRT has no {node.op_type} like this"
    return blamed or {NO_BLAME: unplaced[0] if unplaced else "TensorRT cannot parse it"}


def _reason(error: TensorRt, *, inside: bool) -> str:
    operator = error.node_operator()
    why = parser_reason(error.desc(), operator, error.node_name())
    return one_line_reason(f"{operator} inside: {why}") if inside and operator and operator not in why else why


def _nodes_of_error(model: ir.Model, error: TensorRt) -> list[int]:
    """Returns the nodes of the main graph that an error is about; an error inside a body is about its owner."""
    nodes = list(model.graph)
    stack = error.local_function_stack()
    if stack:
        owner = _FIRST_OF_STACK.match(stack[0])
        return [i for i, node in enumerate(nodes) if owner and node.name == owner["name"]]
    at = error.node()
    if 0 <= at < len(nodes) and (nodes[at].op_type == error.node_operator() or any(bodies(nodes[at]))):
        return [at]
    return list(_readers(model, _unread(model, error)))


def _unread(model: ir.Model, error: TensorRt) -> dict[int, str]:
    """Returns the input, with a reason, that the parser could not make: it says its name where others say the file."""
    return {
        id(value): f"TensorRT has no {_kind(value)}, as {value.name!r} is"
        for value in model.graph.inputs
        if value.name == error.file()
    }


def _kind(value: ir.Value) -> str:
    if not isinstance(value.type, ir.TensorType):
        return "sequences, optionals and maps"
    return value.type.dtype.name.lower()


def _readers(model: ir.Model, values: Mapping[int, str]) -> dict[int, str]:
    """Returns the nodes that read one of `values` (by id), with what is said of the value."""
    if not values:
        return {}
    return {
        i: next(values[id(value)] for value in values_read(node) if id(value) in values)
        for i, node in enumerate(model.graph)
        if any(id(value) in values for value in values_read(node))
    }


def _mistyped(model: ir.Model, found: Parsed) -> dict[int, str]:
    wrong: dict[int, str] = {}
    at_border = {id(value) for value in model.graph.outputs}
    for i, node in enumerate(model.graph):
        for k, value in enumerate(node.outputs):
            tensor = found.parser.get_layer_output_tensor(node.name, k) if value.name else None
            why = _misfit(value, tensor, at_border=id(value) in at_border) if tensor is not None else ""
            if why:
                wrong[i] = why
    return wrong


def _misfit(value: ir.Value, tensor: TensorRt, *, at_border: bool = True) -> str:
    """Returns how a tensor of the network differs from what the model says of the value, or ""."""
    got = dtype_name(tensor.dtype)
    said = value.dtype.numpy().name if value.dtype is not None else got
    if said != got:
        return f"TensorRT makes {value.name!r} {got}, the model says {said}"
    if at_border and got in PACKED:
        return f"{value.name!r} is {got}, which TensorRT packs and others do not"
    shape, sizes = value.shape, _sizes(tensor)
    if shape is None or sizes is None:
        return ""
    fits = len(shape) == len(sizes) and all(
        not isinstance(want, int) or have in (want, -1) for want, have in zip(shape, sizes, strict=False)
    )
    return "" if fits else f"TensorRT makes {value.name!r} {list(sizes)}, the model says {shape}"


def _sizes(tensor: TensorRt) -> tuple[int, ...] | None:
    try:
        return tuple(tensor.shape)
    except ValueError:  # the rank is not known
        return None
