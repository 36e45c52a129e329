# SPDX-License-Identifier: Apache-2.0
"""`--shape` as text and as values: which sizes the inputs of a model take. No model is needed here.

    x=1..8,3,224,224:4,3,224,224     sizes or ranges of each axis, and after the colon the ones to tune for
    x=1,3,224..1280:32,640           a range in steps: 224, 256, ..., 1280; with a best size 224..1280:32:640
    x=?,3,480,-1                     "?" and "-1" leave an axis as the model has it
    x=batch,3,224,224                a name leaves a symbol of that name, or names an axis that has none
    batch=1..64:8                    the sizes of a symbol, wherever it stands in the inputs
    x:1x3x224x224                    trtexec's form, for --min-shapes, --opt-shapes and --max-shapes

A colon with as many entries from there on as up to there begins the best sizes, any other is a step. `8..64:8,3,32`
can be read both ways, with two axes and with three: the model's rank decides; with one axis it is the best size.

Law: `parse_shape` of what `ShapeSpec` prints gives the same spec.

Source: the options of OpenVINO's benchmark_app (-shape) and of TensorRT's trtexec (--minShapes).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nndeploy.errors import UsageError
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
