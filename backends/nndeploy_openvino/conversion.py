# SPDX-License-Identifier: Apache-2.0
"""ONNX -> OpenVINO's own model, with inputs and outputs in a known order and of the types that the model declares.

Sizes of inputs that have a declared range are bounded by it, so that OpenVINO plans for no others and refuses them.

Of what is written `forget_names` takes the names of inner values and of the graph: OpenVINO numbers some of them with a
counter of the process, and without them the same submodel gives the same bytes. So it does the notes of a model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import DimRange
from nndeploy_openvino.element_types import OPENVINO_TYPES
from nndeploy_openvino.indices import indexed_inputs
from nndeploy_openvino.input_values import COMPARING, LOSING_INFINITY, NEEDING_ELEMENTS, Limits
from nndeploy_openvino.library import core, openvino
from nndeploy_openvino.mapped_weights import bytes_with_addresses
from nndeploy_openvino.pads import unsafe_pads
from nndeploy_openvino.reason import reason_of


@dataclass(frozen=True, slots=True)
class Converted:
    """OpenVINO's model, the names of its inputs (unused ones are gone) and outputs in its order, and its limits.

    The model has constants in the memory of `weights`.
    """

    model: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    limits: Limits
    weights: Sequence[Any]


def convert(model: ir.Model, ranges: Mapping[str, DimRange]) -> Converted:
    """Returns `model` as OpenVINO's; `ranges` are those of symbolic sizes.

    Raises:
        BuildRefusedError: OpenVINO does not convert it, gives an output another type, or it is larger than 2 GiB.
    """
    data, weights = bytes_with_addresses(model)
    try:
        converted = core().read_model(data)
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err
    wanted = {value.name or "": value for value in model.graph.inputs}
    inputs = _input_names(converted, list(wanted))
    outputs = tuple(value.name or "" for value in model.graph.outputs)
    if len(converted.outputs) != len(outputs):
        raise BuildRefusedError(f"OpenVINO makes {len(converted.outputs)} outputs of {len(outputs)}")
    for name, port in zip(inputs, converted.inputs, strict=True):
        _check_type(wanted[name], port)
    _bound(converted, [wanted[name] for name in inputs], ranges)
    for value, port in zip(model.graph.outputs, converted.outputs, strict=True):
        _check_type(value, port)
        _check_shape(value, port)
    _check_pads(converted)
    indices = {name: size for name, size in indexed_inputs(model.graph).items() if name in inputs}
    loses, needs, compares = (_has(converted, fact) for fact in (_loses_infinity, _needs_elements, _compares_integers))
    return Converted(converted, inputs, outputs, Limits(loses, needs, compares, indices), weights)


def _input_names(converted: Any, wanted: list[str]) -> tuple[str, ...]:
    """Returns the name of each of OpenVINO's inputs; one that is handed through to an output has lost its own."""
    ports = [[name for name in port.get_names() if name in wanted] for port in converted.inputs]
    if len(ports) == len(wanted) and all(found in ([], [name]) for found, name in zip(ports, wanted, strict=True)):
        return tuple(wanted)
    if any(len(found) != 1 for found in ports):
        raise BuildRefusedError("OpenVINO does not keep apart inputs that it hands through")
    return tuple(found[0] for found in ports)


def _bound(converted: Any, values: Sequence[ir.Value], ranges: Mapping[str, DimRange]) -> None:
    """Puts the ranges into the shapes of the inputs."""
    shapes = {}
    for port, value in zip(converted.inputs, values, strict=True):
        limits = [ranges.get(str(dim.value)) if isinstance(dim, ir.SymbolicDim) else None for dim in value.shape or ()]
        if any(limits):
            shapes[port] = openvino().PartialShape(
                [
                    dim if limit is None else openvino().Dimension(limit.min, limit.max)
                    for dim, limit in zip(port.get_partial_shape(), limits, strict=True)
                ]
            )
    if not shapes:
        return
    try:
        converted.reshape(shapes)
    except Exception as err:  # the library's way to say no has many classes
        raise BuildRefusedError(reason_of(err)) from err


def _check_type(value: ir.Value, port: Any) -> None:
    declared = None if value.dtype is None else value.dtype.numpy().name
    got = port.get_element_type().get_type_name()
    if declared is not None and OPENVINO_TYPES.get(declared) != got:
        raise BuildRefusedError(f"{value.name!r} is {declared}, OpenVINO makes it {got}")


def _check_shape(value: ir.Value, port: Any) -> None:
    """Refuses an output whose known sizes differ: OpenVINO reads an attribute otherwise."""
    got = port.get_partial_shape()
    if value.shape is None or got.rank.is_dynamic:
        return
    sizes = [dim.get_length() if dim.is_static else None for dim in got]
    said = [dim if isinstance(dim, int) else None for dim in value.shape]
    differs = any(a != b for a, b in zip(sizes, said, strict=False) if a is not None and b is not None)
    if len(sizes) != len(said) or differs:
        raise BuildRefusedError(f"the output is {value.shape} in ONNX, OpenVINO makes it {got.to_string()}")


def forget_names(model: Any) -> None:
    """Takes from a model, and the bodies in it, the names and notes that do not follow from the submodel."""
    model.set_friendly_name("submodel")
    for note in list(model.rt_info.keys()):
        del model.rt_info[note]
    for i, operation in enumerate(model.get_ordered_ops()):
        operation.set_friendly_name(f"n{i}")
        for note in [key for key in operation.rt_info if key.startswith("fused_names")]:
            del operation.rt_info[note]
        for output in operation.outputs():
            output.get_tensor().set_names(set())
        for body in _bodies(operation):
            forget_names(body)


def _check_pads(model: Any) -> None:
    """Refuses pads with which the library would read beyond a tensor, and those that only a call tells."""
    for operation in model.get_ordered_ops():
        if operation.get_type_name() == "Pad":
            pads = (_integers(operation.input_value(side).get_node()) for side in (1, 2))
            if reason := unsafe_pads(*pads):
                raise BuildRefusedError(f"OpenVINO reads beyond a tensor for {reason}")
        for body in _bodies(operation):
            _check_pads(body)


def _has(model: Any, fact: Callable[[Any], bool]) -> bool:
    """Returns whether something holds for a layer of a model, or of a body in it."""
    return any(fact(layer) or any(_has(body, fact) for body in _bodies(layer)) for layer in model.get_ops())


def _loses_infinity(layer: Any) -> bool:
    return layer.get_type_name() in LOSING_INFINITY


def _compares_integers(layer: Any) -> bool:
    return layer.get_type_name() in COMPARING and layer.get_input_element_type(0).get_type_name() in ("i32", "i64")


def _needs_elements(layer: Any) -> bool:
    kind = layer.get_type_name()
    if kind not in NEEDING_ELEMENTS:
        return False
    shape = layer.get_input_partial_shape(0)
    axes = _integers(layer.input_value(1).get_node()) if kind.startswith("Reduce") else None
    if shape.rank.is_dynamic or axes is None:
        return bool(shape.is_dynamic)
    return any(shape[axis].is_dynamic for axis in axes)


def _integers(operation: Any) -> list[int] | None:
    if operation.get_type_name() != "Constant":
        return None
    return [int(number) for number in operation.get_vector()]


def _bodies(operation: Any) -> Iterator[Any]:
    kind = operation.get_type_name()
    if kind == "If":
        yield operation.get_function(0)
        yield operation.get_function(1)
    elif kind in ("Loop", "TensorIterator"):
        yield operation.get_function()
