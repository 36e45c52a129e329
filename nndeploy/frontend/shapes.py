# SPDX-License-Identifier: Apache-2.0
"""The sizes of `--shape` put into a model.

A size replaces the symbol of its axis everywhere in the model; a range is recorded under the symbol's name, which is
`<input>.<axis>` where the model has none. The model's own symbols keep their names.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import onnx

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.frontend.shape_texts import DimSpec, ShapeSpec
from nndeploy.frontend.traversal import graphs_of
from nndeploy.values.types import DimRange


def apply_shapes(model: onnx.ModelProto, specs: Mapping[str, ShapeSpec]) -> dict[str, DimRange]:
    """Puts sizes and names into the model, in place; returns symbol -> range.

    A name in `specs` is that of an input or else of a symbol of some input.

    Raises:
        UsageError: there is no such input or symbol, the rank or a size is not the model's, or one symbol is asked
            to be two things.
    """
    inputs = {value.name: value for value in model.graph.input}
    taken = {dim.dim_param for value in _values(model) for dim in symbolic_dims(value.type)}
    asked: dict[str, _Asked] = {}
    for name in (name for name in specs if name in inputs):
        dims, wanted = _dims_of(inputs[name], specs[name])
        for axis, (dim, size) in enumerate(zip(dims, wanted, strict=True)):
            _apply_dim(dim, size, _Axis(name, axis), asked, taken)
    symbols = {dim.dim_param for value in inputs.values() for dim in symbolic_dims(value.type)}
    for name in (name for name in specs if name not in inputs):
        if name not in symbols:
            raise UsageError(
                f"the model has no input {name!r}, and no size of that name",
                hint=did_you_mean(name, (*inputs, *sorted(symbols))),
            )
        _ask(name, _size_of_symbol(name, specs[name]), f"the size {name!r}", asked)
    sizes = {symbol: a.what for symbol, a in asked.items() if isinstance(a.what, int)}
    ranges = {symbol: a.what for symbol, a in asked.items() if isinstance(a.what, DimRange)}
    if sizes:
        _fix_symbols(model, sizes)
    return ranges


def name_sizes(model: onnx.ModelProto) -> None:
    """Names each size of an input that has no name, as a range of it would be recorded, in place.

    What comes after can then tell which sizes of other values are equal to it.
    """
    taken = {dim.dim_param for value in _values(model) for dim in symbolic_dims(value.type)}
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.WhichOneof("value"):
                dim.dim_param = _free_name(_Axis(value.name, axis), taken)


@dataclass(frozen=True, slots=True)
class _Axis:
    input: str
    axis: int

    def __str__(self) -> str:
        return f"axis {self.axis} of the input {self.input!r}"


@dataclass(frozen=True, slots=True)
class _Asked:
    what: int | DimRange
    by: str


def _dims_of(
    value: onnx.ValueInfoProto, spec: ShapeSpec
) -> tuple[list[onnx.TensorShapeProto.Dimension], tuple[DimSpec, ...]]:
    """Returns the axes of an input, and what is asked of each."""
    if value.type.WhichOneof("value") != "tensor_type":
        raise UsageError(f"the input {value.name!r} is not a tensor, so it has no shape")
    shape = value.type.tensor_type.shape
    if not value.type.tensor_type.HasField("shape"):
        shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in spec.dims)
    wanted = spec.of_rank(len(shape.dim))
    if len(shape.dim) != len(wanted):
        raise UsageError(
            f"the input {value.name!r} has {len(shape.dim)} axes, but its --shape has {len(wanted)}",
            hint=f"the model says [{', '.join(_shown_dim(dim) for dim in shape.dim)}]",
        )
    return list(shape.dim), wanted


def _shown_dim(dim: onnx.TensorShapeProto.Dimension) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def _apply_dim(
    dim: onnx.TensorShapeProto.Dimension, wanted: DimSpec, axis: _Axis, asked: dict[str, _Asked], taken: Set[str]
) -> None:
    if isinstance(wanted, DimRange) and wanted.min == wanted.max:
        wanted = wanted.min
    if wanted is None:
        return
    if dim.HasField("dim_value"):
        _check_static(dim.dim_value, wanted, axis)
    elif isinstance(wanted, str):
        if dim.dim_param not in ("", wanted):
            raise UsageError(f"{axis} is named {dim.dim_param!r} in the model, not {wanted!r}")
        dim.dim_param = wanted
    else:
        dim.dim_param = dim.dim_param or _free_name(axis, taken)
        _ask(dim.dim_param, wanted, str(axis), asked)


def _free_name(axis: _Axis, taken: Set[str]) -> str:
    """Returns a name for an axis that has none; one that the model uses elsewhere would make two sizes one."""
    name = f"{axis.input}.{axis.axis}"
    while name in taken:
        name += "'"
    return name


def _ask(symbol: str, wanted: int | DimRange, by: str, asked: dict[str, _Asked]) -> None:
    before = asked.setdefault(symbol, _Asked(wanted, by))
    if before.what != wanted:
        raise UsageError(f"{by} cannot be {wanted} when {before.by} is {before.what}", hint=f"both are {symbol!r}")


def _size_of_symbol(name: str, spec: ShapeSpec) -> int | DimRange:
    if len(spec.dims) != 1 or not isinstance(spec.dims[0], int | DimRange):
        raise UsageError(f"--shape {name}={spec} is no size", hint=f"{name!r} is one size: {name}=8 or {name}=1..64:8")
    size = spec.dims[0]
    return size.min if isinstance(size, DimRange) and size.min == size.max else size


def _check_static(size: int, wanted: int | DimRange | str, axis: _Axis) -> None:
    if wanted != size:
        raise UsageError(f"{axis} is {size} in the model, not {wanted}", hint="export the model with a dynamic axis")


def _fix_symbols(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Puts sizes in the place of symbols; what else is said of values in between is inferred anew."""
    promised = {
        dim.dim_param for value in (*model.graph.input, *model.graph.output) for dim in symbolic_dims(value.type)
    }
    for dim in (dim for value in _values(model) for dim in symbolic_dims(value.type)):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]
        elif dim.dim_param not in promised:
            dim.ClearField("dim_param")


def _values(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    return (v for graph in graphs_of(model.graph) for v in (*graph.input, *graph.output, *graph.value_info))


def symbolic_dims(value_type: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    """Yields the sizes in a type, also those of the elements of sequences, optionals and maps, that are symbols."""
    match value_type.WhichOneof("value"):
        case "tensor_type":
            yield from (dim for dim in value_type.tensor_type.shape.dim if dim.dim_param)
        case "sequence_type":
            yield from symbolic_dims(value_type.sequence_type.elem_type)
        case "optional_type":
            yield from symbolic_dims(value_type.optional_type.elem_type)
        case "map_type":
            yield from symbolic_dims(value_type.map_type.value_type)
