# SPDX-License-Identifier: Apache-2.0
"""`--shape`: which sizes the inputs of a model take, as text, as values, and put into the model.

    x=1..8,3,224,224:4,3,224,224     sizes or ranges of each axis, and after the colon the ones to tune for
    x=1,3,224..1280:32,640           a range in steps: 224, 256, ..., 1280; with a best size 224..1280:32:640
    x=?,3,480,-1                     "?" and "-1" leave an axis as the model has it
    x=batch,3,224,224                a name leaves a symbol of that name, or names an axis that has none
    batch=1..64:8                    the sizes of a symbol, wherever it stands in the inputs
    x:1x3x224x224                    trtexec's form, for --min-shapes, --opt-shapes and --max-shapes

A colon with as many entries from there on as up to there begins the best sizes, any other is a step. `8..64:8,3,32`
can be read both ways, with two axes and with three: the model's rank decides; with one axis it is the best size.
A size replaces the symbol of its axis everywhere in the model; a range is recorded under the symbol's name, which is
`<input>.<axis>` where the model has none. The model's own symbols keep their names.

Law: `parse_shape` of what `ShapeSpec` prints gives the same spec.

Source: the options of OpenVINO's benchmark_app (-shape) and of TensorRT's trtexec (--minShapes).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.frontend.traversal import graphs_of
from nndeploy.values.types import DimRange

DimSpec: TypeAlias = int | DimRange | str | None
"""A size, a range, the name of a symbol, or None: as the model has it."""

_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?")
_TRTEXEC = re.compile(r"(?P<quote>'?)(?P<name>.+?)(?P=quote):(?P<dims>\d+(?:x\d+)*)(?:,|$)")
_MAX_DIM = 2**31 - 1
_LEFT = ("?", "-1", "")


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """What is asked of one input, axis by axis; `stepped` is what the same text asks of a model with more axes."""

    dims: tuple[DimSpec, ...]
    stepped: "tuple[DimSpec, ...] | None" = field(default=None, compare=False)

    def of_rank(self, rank: int) -> tuple[DimSpec, ...]:
        """Returns what is asked of an input with this many axes."""
        return self.stepped if self.stepped is not None and len(self.stepped) == rank else self.dims

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
        UsageError: the text is malformed, a range is empty or does not end on a step, or a best size lies outside.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not _may_have_best(parts):
        return ShapeSpec(_parse_dims(parts, where))
    stepped = _stepped(parts)
    try:
        return ShapeSpec(_parse_with_best(parts, where), stepped)
    except UsageError:
        if stepped is None:
            raise
        return ShapeSpec(stepped)


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


def _shown(dim: DimSpec) -> str:
    return "?" if dim is None else str(dim)


def _may_have_best(parts: Sequence[str]) -> bool:
    """Returns whether the colon of the middle entry may begin the best sizes: no range and no colon follow."""
    middle = len(parts) // 2
    return (
        len(parts) % 2 == 1
        and ":" in parts[middle]
        and not any(":" in part or _RANGE.fullmatch(part) for part in parts[middle + 1 :])
    )


def _stepped(parts: Sequence[str]) -> tuple[DimSpec, ...] | None:
    """Returns the dims where every colon of several entries is a step, None where that has no meaning."""
    try:
        return _parse_dims(parts, "") if len(parts) > 1 else None
    except UsageError:
        return None


def _parse_with_best(parts: Sequence[str], where: str) -> tuple[DimSpec, ...]:
    middle = len(parts) // 2
    last, _, first_best = parts[middle].rpartition(":")
    dims = _parse_dims([*parts[:middle], last.strip()], where)
    bests = [first_best.strip(), *parts[middle + 1 :]]
    return tuple(_with_best(dim, best, where) for dim, best in zip(dims, bests, strict=True))


def _parse_dims(parts: Sequence[str], where: str) -> tuple[DimSpec, ...]:
    for i, part in enumerate(parts):
        if ":" in part and not _RANGE.fullmatch(part):
            raise UsageError(f"{i + 1} sizes, but {len(parts) - i} best sizes after the colon", where=where)
    return tuple(_parse_dim(part, where) for part in parts)


def _parse_dim(text: str, where: str) -> DimSpec:
    if text in _LEFT:
        return None
    if match := _RANGE.fullmatch(text):
        low, high, step = (_checked_dim(part, where) for part in match.groups(default="1"))
        return _checked_range(low, high, high, where, step)
    if text.isascii() and text.isdecimal():
        return _checked_dim(text, where)
    if text[0] in "-+.0123456789":
        raise UsageError(f"{text!r} is no size", where=where, hint="a number, a range 1..8, ? or a name")
    return text


def _checked_dim(text: str, where: str) -> int:
    if len(text) > 10 or int(text) > _MAX_DIM:
        raise UsageError(f"the size {text:.20} is too large", where=where, hint=f"at most {_MAX_DIM}")
    return int(text)


def _checked_range(low: int, high: int, best: int, where: str, step: int = 1) -> DimRange:
    if low < 0 or high > _MAX_DIM:
        raise UsageError(f"the range {low}..{high} is no range of sizes", where=where, hint=f"0 to {_MAX_DIM}")
    if low > high:
        raise UsageError(f"the range {low}..{high} is empty", where=where, hint="the smaller size comes first")
    if step < 1:
        raise UsageError(f"the step {step} of the range {low}..{high} is no step", where=where, hint="1 or more")
    if extra := (high - low) % step:
        raise UsageError(
            f"the range {low}..{high} does not end on a step of {step}",
            where=where,
            hint=f"{low}..{high - extra}:{step}",
        )
    found = DimRange(low, high, best, step)
    if not found.holds(best):
        raise UsageError(
            f"the best size {best} lies outside {found}", where=where, hint="a step and a best size: 224..1280:32:640"
        )
    return found


def _with_best(dim: DimSpec, text: str, where: str) -> DimSpec:
    if text in _LEFT or text == dim:
        return dim
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"the best size {text!r} is no number", where=where)
    best = _checked_dim(text, where)
    if isinstance(dim, DimRange):
        return _checked_range(dim.min, dim.max, best, where, dim.step)
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
            return dim if dim is None else _checked_range(dim.min, dim.max, dim.best, where, dim.step)
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


def _dims_of(
    value: onnx.ValueInfoProto, spec: ShapeSpec
) -> tuple[list[onnx.TensorShapeProto.Dimension], tuple[DimSpec, ...]]:
    """Returns the axes of an input, and what is asked of each."""
    if value.type.WhichOneof("value") != "tensor_type":
        raise UsageError(f"the input {value.name!r} is no tensor, so it has no shape")
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
