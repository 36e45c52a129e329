# SPDX-License-Identifier: Apache-2.0
"""plan.json: what the run half needs of a library, and what whoever inspects it wants to see.

Where shapes are not fixed, sizes are entries of a table that the library's nnd_compose fills (c/program.h).

Law: `plan_from_json(plan_to_json(p)) == p`. Everything that is read is checked: it comes from a bundle.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from nndeploy.errors import BundleError
from nndeploy.values.solving import SolvedSymbol, solved_from_json

ALIGNMENT = 64
"""A cache line, and the largest vector."""
PLAN_FILE = "plan.json"
LIBRARY_FILE = "kernels.so"
CONSTANTS_FILE = "constants.bin"
MAX_BYTES = 2**40
MAX_RANK = 64
MAX_ENTRIES = 2**20
FORMAT, SHAPES_FORMAT = 3, 4
"""Formats of an artifact: all shapes are fixed, or some are not."""
FORMATS = ("fp32", "int32", "int64", "blocked fp32", "blocked bf16")
"""Forms of a border's values, in ONNX's order but for the last two."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A size that stands in the table."""

    number: int


Axis: TypeAlias = int | Entry


@dataclass(frozen=True, slots=True)
class Border:
    """An input or output: the shape of its memory, and what lies there. In a bundle all are in ONNX's order."""

    name: str
    shape: tuple[Axis, ...]
    format: str = "fp32"

    @property
    def is_fixed(self) -> bool:
        """Whether the shape is the same in every call."""
        return all(isinstance(size, int) for size in self.shape)

    def sizes(self, entries: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape by a table's entries."""
        return tuple(size if isinstance(size, int) else entries[size.number] for size in self.shape)

    @property
    def is_blocked(self) -> bool:
        """Whether it is in channel blocks, which begin at a cache line."""
        return self.format.startswith("blocked")


@dataclass(frozen=True, slots=True)
class Shapes:
    """What nnd_compose gets, and which entries of its table are the bytes of the arena and of each thread's scratch."""

    symbols: tuple[SolvedSymbol, ...]
    num_entries: int
    arena_entry: int
    scratch_entry: int


@dataclass(frozen=True, slots=True)
class NativePlan:
    """`scratch_bytes` are those of each thread; `steps` say what each step is, in order: for readers only.

    With `shapes`, the bytes are the most of any shape in range.
    """

    isa: str
    arena_bytes: int
    scratch_bytes: int
    constants_bytes: int
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    steps: tuple[Mapping[str, int | str], ...] = ()
    shapes: Shapes | None = None


def plan_to_json(plan: NativePlan) -> bytes:
    """Returns the bytes of plan.json."""
    data: dict[str, Any] = {
        "isa": plan.isa,
        "arena_bytes": plan.arena_bytes,
        "scratch_bytes": plan.scratch_bytes,
        "constants_bytes": plan.constants_bytes,
        "inputs": [_border_to_json(border) for border in plan.inputs],
        "outputs": [_border_to_json(border) for border in plan.outputs],
        "steps": [dict(step) for step in plan.steps],
    }
    if plan.shapes is not None:
        data["shapes"] = {**asdict(plan.shapes), "symbols": [asdict(one) for one in plan.shapes.symbols]}
    return json.dumps(data, indent=1, ensure_ascii=False).encode()


def plan_from_json(text: bytes) -> NativePlan:
    """Returns the plan.

    Raises:
        BundleError: it is malformed.
    """
    try:
        data = json.loads(text)
        inputs = _borders(data["inputs"])
        plan = NativePlan(
            str(data["isa"]),
            _bytes(data["arena_bytes"]),
            _bytes(data["scratch_bytes"]),
            _bytes(data["constants_bytes"]),
            inputs,
            _borders(data["outputs"]),
            tuple(dict(step) for step in data["steps"]),
            _shapes(data["shapes"], inputs) if "shapes" in data else None,
        )
        _check_entries(plan)
        return plan
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        raise BundleError(f"a malformed {PLAN_FILE}: {err!s:.200}") from err


def _border_to_json(border: Border) -> list[Any]:
    shape = [size if isinstance(size, int) else {"entry": size.number} for size in border.shape]
    return [border.name, shape, border.format]


def _shapes(data: Mapping[str, Any], inputs: Sequence[Border]) -> Shapes:
    symbols = solved_from_json(data["symbols"], [len(border.shape) for border in inputs])
    entries = [_whole(data[name]) for name in ("num_entries", "arena_entry", "scratch_entry")]
    if not 0 < entries[0] <= MAX_ENTRIES:
        raise ValueError(f"a table of {entries[0]} entries")
    return Shapes(symbols, *entries)


def _check_entries(plan: NativePlan) -> None:
    """Passes a plan whose every entry stands in its table."""
    sizes = [size for border in (*plan.inputs, *plan.outputs) for size in border.shape]
    entries = [size.number for size in sizes if isinstance(size, Entry)]
    count = 0
    if plan.shapes is not None:
        count, entries = plan.shapes.num_entries, [*entries, plan.shapes.arena_entry, plan.shapes.scratch_entry]
    if not all(0 <= entry < count for entry in entries):
        raise ValueError(f"an entry outside of a table of {count}")


def _borders(data: Sequence[Any]) -> tuple[Border, ...]:
    return tuple(Border(str(name), _shape(shape), _format(kind)) for name, shape, kind in data)


def _format(name: Any) -> str:
    if name not in FORMATS:
        raise ValueError(f"not a format: {name!r:.40}")
    return str(name)


def _shape(data: Sequence[Any]) -> tuple[Axis, ...]:
    if len(data) > MAX_RANK:
        raise ValueError(f"a shape of {len(data)} axes")
    return tuple(Entry(_whole(size["entry"])) if isinstance(size, dict) else _bytes(size) for size in data)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_BYTES:
        raise ValueError(f"not a number: {value!r:.40}")
    return value


def _bytes(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_BYTES:
        raise ValueError(f"not a size: {value!r:.40}")
    return value
