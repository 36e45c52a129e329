# SPDX-License-Identifier: Apache-2.0
"""The plan: what the run half needs to know to launch a submodel's kernels. Plain data, written as plan.json.

It is all arithmetic: where each tensor lies, the sizes that each launch is given, and a grid as products of sizes
divided by block sizes. Where shapes are not fixed, sizes and offsets are texts of `sizes/text.py` over symbols: "s0",
"s1" ... are what the inputs' shapes give, "a0", "a1" ... where each value of the arena begins; `shape_plan.py` makes a
plan of numbers of them. Law: `plan_from_json(plan_to_json(p)) == p`; a plan of numbers that is read addresses only
memory that it declares itself.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nndeploy.errors import BundleError
from nndeploy.values.size import MAX_SIZE, Dim, Size, product, symbol
from nndeploy.values.size_text import size_from_text
from nndeploy.values.solved_symbol import SolvedSymbol, solved_from_json
from nndeploy.values.types import NUMPY_DTYPES, numpy_dtype

FORMAT, SHAPES_FORMAT = 1, 2
"""Formats of a plan and of an artifact: all shapes are fixed, or some are not."""
PLAN_FILE = "plan.json"
CONSTANTS_FILE = "constants.bin"
ALIGNMENT = 256
MAX_BYTES = 2**62
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Source: CUDA C++ Programming Guide, technical specifications, all compute capabilities."""

GridAxis: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes in one of the two memories of a submodel: "arena" (values) or "constants"."""

    memory: str
    offset: Dim


@dataclass(frozen=True, slots=True)
class Border:
    """An input or output: where it is, its type and shape."""

    name: str
    place: Place
    dtype: str
    shape: tuple[Dim, ...]

    @property
    def num_bytes(self) -> Dim:
        """Bytes of the value."""
        return product(self.shape) * numpy_dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class Kernel:
    """A cubin and how its function is launched.

    `parameters` are (name, kind) in order, kind "tensor" or "i32"; `num_null` null pointers follow (Triton's scratch
    memory, which our kernels do not use). The size of a grid axis is the product, over its pairs (size, divisor), of
    size / divisor rounded up.
    """

    file: str
    symbol: str
    parameters: tuple[tuple[str, str], ...]
    num_null: int
    grid: tuple[GridAxis, GridAxis, GridAxis]
    num_warps: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of the kernel called `kernel`."""

    kernel: str
    tensors: tuple[tuple[str, Place], ...]
    sizes: tuple[tuple[str, Dim], ...]


@dataclass(frozen=True, slots=True)
class ArenaValue:
    """A value of the arena: it begins behind the ends of `below`, the numbers of earlier ones."""

    num_bytes: Dim
    below: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shapes:
    """What the symbols of a plan stand for: "s0" ... in the order of `symbols`, "a0" ... in that of `arena`.

    The latter count units of `ALIGNMENT` bytes.
    """

    symbols: tuple[SolvedSymbol, ...]
    arena: tuple[ArenaValue, ...]


def solved_size(number: int, solved: SolvedSymbol) -> Size:
    """Returns the symbol that stands for what the inputs' shapes give."""
    return symbol(f"s{number}", solved.low, solved.high)


def arena_offset(number: int) -> Dim:
    """Returns where a value of the arena begins, in bytes."""
    return ALIGNMENT * symbol(f"a{number}")


@dataclass(frozen=True, slots=True)
class TritonPlan:
    """A submodel for one compute capability; with `shapes`, `arena_bytes` are the most of any shape in range."""

    arena_bytes: int
    constants_bytes: int
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    kernels: Mapping[str, Kernel]
    launches: tuple[Launch, ...]
    shapes: Shapes | None = None


def grid_of(kernel: Kernel, launch: Launch) -> tuple[Dim, Dim, Dim]:
    """Returns how many blocks a launch has along each axis."""
    sizes = dict(launch.sizes)
    x, y, z = (product(-(-sizes[name] // divisor) for name, divisor in axis) for axis in kernel.grid)
    return x, y, z


def plan_to_json(plan: TritonPlan) -> bytes:
    """Returns the canonical JSON text of a plan."""
    data = {
        "format": FORMAT if plan.shapes is None else SHAPES_FORMAT,
        "arena_bytes": plan.arena_bytes,
        "constants_bytes": plan.constants_bytes,
        "inputs": [_border_to_json(border) for border in plan.inputs],
        "outputs": [_border_to_json(border) for border in plan.outputs],
        "kernels": {name: _kernel_to_json(kernel) for name, kernel in sorted(plan.kernels.items())},
        "launches": [_launch_to_json(launch) for launch in plan.launches],
    }
    if plan.shapes is not None:
        symbols = [one._asdict() for one in plan.shapes.symbols]
        arena = [[_dim_to_json(one.num_bytes), list(one.below)] for one in plan.shapes.arena]
        data["shapes"] = {"symbols": symbols, "arena": arena}
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def plan_from_json(data: bytes) -> TritonPlan:
    """Returns the plan that `data` holds.

    Raises:
        BundleError: it is malformed, of another format, or addresses memory that it does not declare.
    """
    try:
        found = json.loads(data)
        if found["format"] not in (FORMAT, SHAPES_FORMAT):
            raise BundleError(
                f"a plan of format {found['format']!r:.20}; this nndeploy reads {FORMAT} and {SHAPES_FORMAT}"
            )
        plan = _plan_from_json(found)
    except BundleError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
        raise BundleError(f"the plan is malformed: {type(err).__name__}: {err}", where=PLAN_FILE) from err
    for number, launch in enumerate(plan.launches):
        _check_names(plan, launch, f"launch {number}")
    if plan.shapes is None:
        check_numbers(plan)
    return plan


def _plan_from_json(data: Any) -> TritonPlan:
    shapes, reader = None, _Reader({})
    if data["format"] == SHAPES_FORMAT:
        symbols = solved_from_json(data["shapes"]["symbols"], [len(border[3]) for border in data["inputs"]])
        arena = data["shapes"]["arena"]
        known: dict[str, Dim] = {f"s{number}": solved_size(number, one) for number, one in enumerate(symbols)}
        of_inputs = _Reader(known)
        shapes = Shapes(symbols, tuple(_arena_value(number, one, of_inputs) for number, one in enumerate(arena)))
        reader = _Reader({**known, **{f"a{number}": symbol(f"a{number}") for number in range(len(arena))}})
    return TritonPlan(
        _size(data["arena_bytes"], MAX_BYTES),
        _size(data["constants_bytes"], MAX_BYTES),
        tuple(_border_from_json(item, reader) for item in data["inputs"]),
        tuple(_border_from_json(item, reader) for item in data["outputs"]),
        {str(name): _kernel_from_json(item) for name, item in data["kernels"].items()},
        tuple(_launch_from_json(item, reader) for item in data["launches"]),
        shapes,
    )


class _Reader:
    """Reads sizes: numbers, or texts over known symbols."""

    def __init__(self, known: Mapping[str, Dim]) -> None:
        self._known = known
        self._read: dict[str, Dim] = {}

    def size(self, value: Any, most: int = MAX_SIZE) -> Dim:
        """Returns a size that is not negative, as far as that can be told before the symbols are known."""
        return self._text(value) if isinstance(value, str) else _size(value, most)

    def signed(self, value: Any) -> Dim:
        """Returns a size of either sign."""
        return -_size(-value) if isinstance(value, int) and value < 0 else self.size(value)

    def _text(self, text: str) -> Dim:
        if text not in self._read:
            self._read[text] = size_from_text(text, self._symbol)
        return self._read[text]

    def _symbol(self, name: str) -> Dim:
        if name not in self._known:
            raise ValueError(f"not a size: {name!r:.40}")
        return self._known[name]


def check_numbers(plan: TritonPlan) -> None:
    """Passes a plan of numbers that stays inside of its memory.

    Raises:
        BundleError: it does not.
    """
    for border in (*plan.inputs, *plan.outputs):
        _check_place(plan, border.place, border.num_bytes, f"{border.name!r}")
        _check_sizes(border.shape, 0, f"{border.name!r}")
    for number, launch in enumerate(plan.launches):
        _check_launch(plan, launch, f"launch {number}")


def _check_names(plan: TritonPlan, launch: Launch, where: str) -> None:
    kernel = plan.kernels.get(launch.kernel)
    if kernel is None:
        raise BundleError(f"{where} names the kernel {launch.kernel!r:.80}, which is not there", where=PLAN_FILE)
    tensors, sizes = {name for name, _ in launch.tensors}, {name for name, _ in launch.sizes}
    missing = [name for name, kind in kernel.parameters if name not in (tensors if kind == "tensor" else sizes)]
    missing += [name for axis in kernel.grid for name, _ in axis if name not in sizes]
    if missing:
        raise BundleError(f"{where} lacks {missing[0]!r:.80}", where=PLAN_FILE)


def _check_launch(plan: TritonPlan, launch: Launch, where: str) -> None:
    for _, place in launch.tensors:
        _check_place(plan, place, 1, where)
    _check_sizes([size for _, size in launch.sizes], -MAX_SIZE, where)
    blocks = grid_of(plan.kernels[launch.kernel], launch)
    if not all(1 <= size <= most for size, most in zip(blocks, MAX_GRID, strict=True)):
        raise BundleError(f"{where} has a grid of {blocks}", where=PLAN_FILE)


def _check_place(plan: TritonPlan, place: Place, num_bytes: Dim, where: str) -> None:
    room = plan.arena_bytes if place.memory == "arena" else plan.constants_bytes
    if place.offset < 0 or place.offset + num_bytes > room:
        raise BundleError(f"{where} lies outside the {place.memory} of {room} bytes", where=PLAN_FILE)


def _check_sizes(sizes: Sequence[Dim], least: int, where: str) -> None:
    for size in sizes:
        if not least <= size <= MAX_SIZE:
            raise BundleError(f"{where} has a size of {size}", where=PLAN_FILE)


def _dim_to_json(size: Dim) -> int | str:
    return size if isinstance(size, int) else str(size)


def _arena_value(number: int, data: Any, reader: _Reader) -> ArenaValue:
    num_bytes, below = data
    value = ArenaValue(reader.size(num_bytes, MAX_BYTES), tuple(map(_size, below)))
    if not all(other < number for other in value.below):
        raise ValueError(f"a value of the arena that lies on a later one: {below!r:.40}")
    return value


def _border_to_json(border: Border) -> list[Any]:
    return [border.name, _place_to_json(border.place), border.dtype, list(map(_dim_to_json, border.shape))]


def _border_from_json(data: Any, reader: _Reader) -> Border:
    name, place, dtype, shape = data
    if not isinstance(name, str) or dtype not in (*NUMPY_DTYPES, "bfloat16"):
        raise ValueError(f"not a border: {data!r:.80}")
    return Border(name, _place_from_json(place, reader), dtype, tuple(reader.size(size) for size in shape))


def _place_to_json(place: Place) -> list[Any]:
    return [place.memory, _dim_to_json(place.offset)]


def _place_from_json(data: Any, reader: _Reader) -> Place:
    memory, offset = data
    if memory not in ("arena", "constants"):
        raise ValueError(f"not a memory: {memory!r:.20}")
    return Place(memory, reader.size(offset, MAX_BYTES))


def _kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    return {
        "file": kernel.file,
        "symbol": kernel.symbol,
        "parameters": [list(pair) for pair in kernel.parameters],
        "num_null": kernel.num_null,
        "grid": [[list(pair) for pair in axis] for axis in kernel.grid],
        "num_warps": kernel.num_warps,
        "shared_bytes": kernel.shared_bytes,
    }


def _kernel_from_json(data: Any) -> Kernel:
    parameters = tuple((str(name), str(kind)) for name, kind in data["parameters"])
    if not all(kind in ("tensor", "i32") for _, kind in parameters) or not 1 <= data["num_warps"] <= 32:
        raise ValueError("a kernel with malformed parameters")
    x, y, z = (tuple((str(name), _divisor(divisor)) for name, divisor in axis) for axis in data["grid"])
    return Kernel(
        file=str(data["file"]),
        symbol=str(data["symbol"]),
        parameters=parameters,
        num_null=_size(data["num_null"], 8),
        grid=(x, y, z),
        num_warps=int(data["num_warps"]),
        shared_bytes=_size(data["shared_bytes"]),
    )


def _launch_to_json(launch: Launch) -> list[Any]:
    tensors = {name: _place_to_json(place) for name, place in launch.tensors}
    return [launch.kernel, tensors, {name: _dim_to_json(size) for name, size in launch.sizes}]


def _launch_from_json(data: Any, reader: _Reader) -> Launch:
    kernel, tensors, sizes = data
    return Launch(
        str(kernel),
        tuple((str(name), _place_from_json(place, reader)) for name, place in tensors.items()),
        tuple((str(name), reader.signed(size)) for name, size in sizes.items()),
    )


def _size(value: Any, most: int = MAX_SIZE) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"not a size: {value!r:.40}")
    return value


def _divisor(value: Any) -> int:
    if _size(value) == 0:
        raise ValueError("a grid divided by 0")
    return int(value)
