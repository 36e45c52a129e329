# SPDX-License-Identifier: Apache-2.0
"""Whether a compiled model has the inputs and outputs that the bundle says.

What OpenVINO knows when the model is opened is compared once. A size that it leaves open, where the bundle says a
number, is compared after each call (`open_sizes`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nndeploy.errors import BundleError
from nndeploy.values.types import Dim, TensorType, ValueType
from nndeploy_openvino.element_types import OPENVINO_TYPES

OpenSizes = tuple[tuple[str, TensorType], ...]
"""Outputs with a size that only a call tells, and what the bundle says of them."""


def check_ports(side: str, names: Sequence[str], ports: Sequence[Any], said: Mapping[str, ValueType] | None) -> None:
    """Passes the inputs or the outputs of a model whose names are `names`.

    Raises:
        BundleError: there are more or fewer, or one is not what the bundle says.
    """
    if len(ports) != len(names):
        raise BundleError(f"the model has {len(ports)} {side}s, the metadata names {len(names)}")
    if said is None:
        return
    if (
        len(set(names)) != len(names)
        or not set(names) <= said.keys()
        or (side == "output" and said.keys() != set(names))
    ):
        raise BundleError(f"the metadata names other {side}s than the bundle: {', '.join(names):.80}")
    for name, port in zip(names, ports, strict=True):
        if problem := _misfit(port, said[name]):
            raise BundleError(f"{side} {name!r:.60} is {problem} in the model, the bundle says {said[name]}")


def open_sizes(names: Sequence[str], ports: Sequence[Any], said: Mapping[str, ValueType] | None) -> OpenSizes:
    """Returns the outputs whose sizes must be compared after a call."""
    found = []
    for name, port in zip(names, ports, strict=True):
        kind = None if said is None else said[name]
        if isinstance(kind, TensorType) and kind.shape is not None and port.get_partial_shape().is_dynamic:
            found.append((name, kind))
    return tuple(found)


def check_sizes(outputs: Mapping[str, Any], wanted: OpenSizes) -> None:
    """Passes outputs of a call that have the sizes which the bundle says.

    Raises:
        BundleError: one has others.
    """
    for name, kind in wanted:
        shape = outputs[name].shape
        if not _is_shape(shape, kind.shape or ()):
            raise BundleError(f"output {name!r:.60} has the shape {shape}, the bundle says {kind}")


def _misfit(port: Any, said: ValueType) -> str:
    """Returns how a port is not what is said of it, or ""."""
    element, shape = port.get_element_type().get_type_name(), port.get_partial_shape()
    if not isinstance(said, TensorType) or OPENVINO_TYPES.get(said.dtype) != element:
        return str(element)
    if said.shape is None or shape.rank.is_dynamic:
        return ""
    sizes = [dim.get_length() if dim.is_static else None for dim in shape]
    return "" if _is_shape(sizes, said.shape) else f"{element}{shape.to_string()}"


def _is_shape(sizes: Sequence[int | None], said: Sequence[Dim]) -> bool:
    """Whether sizes may be those that are said; on either side one may be open."""
    return len(sizes) == len(said) and all(
        size is None or not isinstance(wanted, int) or size == wanted for size, wanted in zip(sizes, said, strict=True)
    )
