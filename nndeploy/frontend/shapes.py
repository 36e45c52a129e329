# SPDX-License-Identifier: Apache-2.0
"""`--shape`: which sizes the inputs of a model take, as text, as values, and put into the model.

    x=1..8,3,224,224:4,3,224,224     sizes or ranges of each axis, and after the colon the ones to tune for
    x=?,3,480,-1                     "?" and "-1" leave an axis as the model has it
    x=batch,3,224,224                a name leaves a symbol of that name, or names an axis that has none
    x:1x3x224x224                    trtexec's form, for --min-shapes, --opt-shapes and --max-shapes

A size replaces the symbol of its axis everywhere in the model; a range is recorded under the symbol's name, which is
`<input>.<axis>` where the model has none.

Law: `parse_shape` of what `ShapeSpec` prints gives the same spec.

Source: the options of OpenVINO's benchmark_app (-shape) and of TensorRT's trtexec (--minShapes).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.frontend.traversal import graphs_of
from nndeploy.value_types import DimRange

DimSpec: TypeAlias = int | DimRange | str | None
"""A size, a range, the name of a symbol, or None: as the model has it."""

_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_TRTEXEC = re.compile(r"(?P<quote>'?)(?P<name>.+?)(?P=quote):(?P<dims>\d+(?:x\d+)*)(?:,|$)")
_MAX_DIM = 2**31 - 1
_LEFT = ("?", "-1", "")


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """What is asked of one input, axis by axis."""

    dims: tuple[DimSpec, ...]

    def __str__(self) -> str:
        best = [str(dim.best) if isinstance(dim, DimRange) else _shown(dim) for dim in self.dims]
        tail = ":" + ",".join(best) if any(isinstance(dim, DimRange) for dim in self.dims) else ""
        return ",".join(_shown(dim) for dim in self.dims) + tail


def parse_shape_options(texts: Iterable[str]) -> dict[str, ShapeSpec]:
    """Returns input -> spec of `--shape` texts, one `name=dims` each.

    Raises:
        UsageError: a text is malformed, or an input is there twice.
    """
    specs: dict[str, ShapeSpec] = {}
    for text in texts:
        name, equals, dims = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--shape {text!r} names no input", hint="for example --shape x=1..8,3,224,224")
        if name in specs:
            raise UsageError(f"--shape gives the input {name!r} twice")
        specs[name] = parse_shape(dims, where=f"--shape {text}")
    return specs


def parse_shape(text: str, where: str = "") -> ShapeSpec:
    """Returns the spec of a text such as `1..8,3,224,224:4,3,224,224`; "" is the spec of a scalar.

    Raises:
        UsageError: the text is malformed, a range is empty, or a best size lies outside its range.
    """
    sizes, colon, best = text.partition(":")
    dims = [_parse_dim(part.strip(), where) for part in sizes.split(",")] if sizes.strip() else []
    if not colon:
        return ShapeSpec(tuple(dims))
    bests = best.split(",") if best.strip() else []
    if len(bests) != len(dims):
        raise UsageError(f"{len(dims)} sizes, but {len(bests)} best sizes after the colon", where=where)
    return ShapeSpec(tuple(_with_best(dim, part.strip(), where) for dim, part in zip(dims, bests, strict=True)))


def parse_trtexec_shapes(min_text: str, opt_text: str, max_text: str) -> dict[str, ShapeSpec]:
    """Returns input -> spec of the texts of --min-shapes, --opt-shapes and --max-shapes ("" where not given).

    A text holds `name:1x3x224x224` for one or more inputs with commas between. Missing ones follow those that are
    there: only opt means fixed sizes; min and max without opt are best at max.

    Raises:
        UsageError: a text is malformed, only one end of a range is given, ranks differ, or sizes are out of order.
    """
    low, best, high = (_parse_trtexec(t) for t in (min_text, opt_text, max_text))
    specs: dict[str, ShapeSpec] = {}
    for name in dict.fromkeys([*low, *best, *high]):
        if (name in low) != (name in high):
            raise UsageError(f"the input {name!r} has only one of --min-shapes and --max-shapes")
        ends = low.get(name, best.get(name, ())), best.get(name, high.get(name, ())), high.get(name, best.get(name, ()))
        if len({len(sizes) for sizes in ends}) > 1:
            raise UsageError(f"--min-shapes, --opt-shapes and --max-shapes of {name!r} differ in rank")
        specs[name] = ShapeSpec(tuple(_merged(*sizes, where=f"input {name!r}") for sizes in zip(*ends, strict=True)))
    return specs


def shape_spec_from_value(value: str | ShapeSpec | Sequence[object], where: str = "") -> ShapeSpec:
    """Returns the spec of what a Python caller gave.

    That is a text, or for each axis an int, a text such as "1..8", (min, max), (min, max, best), a DimRange or None.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(value, ShapeSpec):
        return value
    if isinstance(value, str):
        return parse_shape(value, where)
    return ShapeSpec(tuple(_dim_from_value(dim, where) for dim in value))


def apply_shapes(model: onnx.ModelProto, specs: Mapping[str, ShapeSpec]) -> dict[str, DimRange]:
    """Puts sizes and names into the model, in place; returns symbol -> range.

    Raises:
        UsageError: there is no such input, the rank or a size is not the model's, or one symbol is asked to be two
            things.
    """
    inputs = {value.name: value for value in model.graph.input}
    asked: dict[str, _Asked] = {}
    for name, spec in specs.items():
        if name not in inputs:
            raise UsageError(f"the model has no input {name!r}", hint=did_you_mean(name, inputs))
        dims = _dims_of(inputs[name], spec)
        for axis, (dim, wanted) in enumerate(zip(dims, spec.dims, strict=True)):
            _apply_dim(dim, wanted, _Axis(name, axis), asked)
    sizes = {symbol: a.what for symbol, a in asked.items() if isinstance(a.what, int)}
    ranges = {symbol: a.what for symbol, a in asked.items() if isinstance(a.what, DimRange)}
    if sizes:
        _fix_symbols(model, sizes)
    return ranges


@dataclass(frozen=True, slots=True)
class _Axis:
    input: str
    axis: int

    def __str__(self) -> str:
        return f"axis {self.axis} of the input {self.input!r}"


@dataclass(frozen=True, slots=True)
class _Asked:
    what: int | DimRange
    by: _Axis


def _shown(dim: DimSpec) -> str:
    return "?" if dim is None else str(dim)


def _parse_dim(text: str, where: str) -> DimSpec:
    if text in _LEFT:
        return None
    if match := _RANGE.fullmatch(text):
        low, high = (_checked_dim(part, where) for part in match.groups())
        return _checked_range(low, high, high, where)
    if text.isascii() and text.isdecimal():
        return _checked_dim(text, where)
    if text[0] in "-+.0123456789":
        raise UsageError(f"{text!r} is no size", where=where, hint="a number, a range 1..8, ? or a name")
    return text


def _checked_dim(text: str, where: str) -> int:
    if len(text) > 10 or int(text) > _MAX_DIM:
        raise UsageError(f"the size {text:.20} is too large", where=where, hint=f"at most {_MAX_DIM}")
    return int(text)


def _checked_range(low: int, high: int, best: int, where: str) -> DimRange:
    if low < 0 or high > _MAX_DIM:
        raise UsageError(f"the range {low}..{high} is no range of sizes", where=where, hint=f"0 to {_MAX_DIM}")
    if low > high:
        raise UsageError(f"the range {low}..{high} is empty", where=where, hint="the smaller size comes first")
    if not low <= best <= high:
        raise UsageError(f"the best size {best} lies outside {low}..{high}", where=where)
    return DimRange(low, high, best)


def _with_best(dim: DimSpec, text: str, where: str) -> DimSpec:
    if text in _LEFT or text == dim:
        return dim
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"the best size {text!r} is no number", where=where)
    best = _checked_dim(text, where)
    if isinstance(dim, DimRange):
        return _checked_range(dim.min, dim.max, best, where)
    if dim != best:
        raise UsageError(f"the best size {best} stands for {_shown(dim)!r}, which is no range", where=where)
    return dim


def _parse_trtexec(text: str) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    position = 0
    while position < len(text):
        match = _TRTEXEC.match(text, position)
        if not match:
            raise UsageError(f"{text[position:]!r} is no shape", hint="for example x:1x3x224x224,y:1x8")
        if match["name"] in found:
            raise UsageError(f"the input {match['name']!r} is there twice in {text!r}")
        found[match["name"]] = tuple(_checked_dim(size, text) for size in match["dims"].split("x"))
        position = match.end()
    return found


def _merged(low: int, best: int, high: int, where: str) -> DimSpec:
    return low if low == high == best else _checked_range(low, high, best, where)


def _dim_from_value(dim: object, where: str) -> DimSpec:
    match dim:
        case None | DimRange():
            return dim if dim is None else _checked_range(dim.min, dim.max, dim.best, where)
        case str():
            return _parse_dim(dim.strip(), where)
        case bool():
            pass
        case -1:
            return None
        case int():
            return _checked_dim(str(dim), where) if dim >= 0 else _no_size(dim, where)
        case (int() as low, int() as high):
            return _checked_range(low, high, high, where)
        case (int() as low, int() as high, int() as best):
            return _checked_range(low, high, best, where)
    return _no_size(dim, where)


def _no_size(dim: object, where: str) -> DimSpec:
    raise UsageError(f"{dim!r:.80} is no size", where=where, hint="an int, a pair (min, max), a text or None")


def _dims_of(value: onnx.ValueInfoProto, spec: ShapeSpec) -> list[onnx.TensorShapeProto.Dimension]:
    if value.type.WhichOneof("value") != "tensor_type":
        raise UsageError(f"the input {value.name!r} is no tensor, so it has no shape")
    shape = value.type.tensor_type.shape
    if not value.type.tensor_type.HasField("shape"):
        shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in spec.dims)
    if len(shape.dim) != len(spec.dims):
        raise UsageError(
            f"the input {value.name!r} has {len(shape.dim)} axes, but its --shape has {len(spec.dims)}",
            hint=f"the model says [{', '.join(_shown_dim(dim) for dim in shape.dim)}]",
        )
    return list(shape.dim)


def _shown_dim(dim: onnx.TensorShapeProto.Dimension) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def _apply_dim(dim: onnx.TensorShapeProto.Dimension, wanted: DimSpec, axis: _Axis, asked: dict[str, _Asked]) -> None:
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
        dim.dim_param = dim.dim_param or f"{axis.input}.{axis.axis}"
        before = asked.setdefault(dim.dim_param, _Asked(wanted, axis))
        if before.what != wanted:
            raise UsageError(
                f"{axis} cannot be {wanted} when {before.by} is {before.what}",
                hint=f"the model says that both are {dim.dim_param!r}",
            )


def _check_static(size: int, wanted: int | DimRange | str, axis: _Axis) -> None:
    if wanted != size:
        raise UsageError(f"{axis} is {size} in the model, not {wanted}", hint="export the model with a dynamic axis")


def _fix_symbols(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Puts sizes in the place of symbols; what else is said of values in between is inferred anew."""
    promised = {
        dim.dim_param for value in (*model.graph.input, *model.graph.output) for dim in symbolic_dims(value.type)
    }
    values = (v for graph in graphs_of(model.graph) for v in (*graph.input, *graph.output, *graph.value_info))
    for dim in (dim for value in values for dim in symbolic_dims(value.type)):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]
        elif dim.dim_param not in promised:
            dim.ClearField("dim_param")


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
