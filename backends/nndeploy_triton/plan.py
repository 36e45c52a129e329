# SPDX-License-Identifier: Apache-2.0
"""The plan: what the run half needs to know to launch a submodel's kernels. Plain data, written as plan.json.

It is all arithmetic: where each tensor lies, the sizes that each launch is given, and a grid as products of sizes
divided by block sizes. Law: `plan_from_json(plan_to_json(p)) == p`; what passes `plan_from_json` addresses only memory
that the plan itself declares.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from nndeploy.errors import BundleError
from nndeploy.value_types import NUMPY_DTYPES, numpy_dtype

FORMAT = 1
PLAN_FILE = "plan.json"
CONSTANTS_FILE = "constants.bin"
ALIGNMENT = 256
MAX_SIZE = 2**31 - 1
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Source: CUDA C++ Programming Guide, technical specifications, all compute capabilities."""

GridAxis: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes in one of the two memories of a submodel: "arena" (values) or "constants"."""

    memory: str
    offset: int


@dataclass(frozen=True, slots=True)
class Border:
    """An input or output: where it is, its type and shape."""

    name: str
    place: Place
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of the value."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


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
    sizes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A submodel for one compute capability."""

    arena_bytes: int
    constants_bytes: int
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    kernels: Mapping[str, Kernel]
    launches: tuple[Launch, ...]


def grid_of(kernel: Kernel, launch: Launch) -> tuple[int, int, int]:
    """Returns how many blocks a launch has along each axis."""
    sizes = dict(launch.sizes)
    x, y, z = (math.prod(-(-sizes[name] // divisor) for name, divisor in axis) for axis in kernel.grid)
    return x, y, z


def plan_to_json(plan: Plan) -> bytes:
    """Returns the canonical JSON text of a plan."""
    data = {
        "format": FORMAT,
        "arena_bytes": plan.arena_bytes,
        "constants_bytes": plan.constants_bytes,
        "inputs": [_border_to_json(border) for border in plan.inputs],
        "outputs": [_border_to_json(border) for border in plan.outputs],
        "kernels": {name: _kernel_to_json(kernel) for name, kernel in sorted(plan.kernels.items())},
        "launches": [_launch_to_json(launch) for launch in plan.launches],
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def plan_from_json(data: bytes) -> Plan:
    """Returns the plan that `data` holds.

    Raises:
        BundleError: it is malformed, of another format, or addresses memory that it does not declare.
    """
    try:
        found = json.loads(data)
        if found["format"] != FORMAT:
            raise BundleError(f"a plan of format {found['format']!r:.20}; this nndeploy reads {FORMAT}")
        plan = Plan(
            _size(found["arena_bytes"], 2**62),
            _size(found["constants_bytes"], 2**62),
            tuple(_border_from_json(item) for item in found["inputs"]),
            tuple(_border_from_json(item) for item in found["outputs"]),
            {str(name): _kernel_from_json(item) for name, item in found["kernels"].items()},
            tuple(_launch_from_json(item) for item in found["launches"]),
        )
    except BundleError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
        raise BundleError(f"the plan is malformed: {type(err).__name__}: {err}", where=PLAN_FILE) from err
    _check(plan)
    return plan


def _check(plan: Plan) -> None:
    for border in (*plan.inputs, *plan.outputs):
        _check_place(plan, border.place, border.num_bytes, f"{border.name!r}")
    for number, launch in enumerate(plan.launches):
        _check_launch(plan, launch, f"launch {number}")


def _check_launch(plan: Plan, launch: Launch, where: str) -> None:
    kernel = plan.kernels.get(launch.kernel)
    if kernel is None:
        raise BundleError(f"{where} names the kernel {launch.kernel!r:.80}, which is not there", where=PLAN_FILE)
    for _, place in launch.tensors:
        _check_place(plan, place, 1, where)
    tensors, sizes = {name for name, _ in launch.tensors}, {name for name, _ in launch.sizes}
    missing = [name for name, kind in kernel.parameters if name not in (tensors if kind == "tensor" else sizes)]
    missing += [name for axis in kernel.grid for name, _ in axis if name not in sizes]
    if missing:
        raise BundleError(f"{where} lacks {missing[0]!r:.80}", where=PLAN_FILE)
    blocks = grid_of(kernel, launch)
    if not all(1 <= size <= most for size, most in zip(blocks, MAX_GRID, strict=True)):
        raise BundleError(f"{where} has a grid of {blocks}", where=PLAN_FILE)


def _check_place(plan: Plan, place: Place, num_bytes: int, where: str) -> None:
    room = plan.arena_bytes if place.memory == "arena" else plan.constants_bytes
    if place.offset + num_bytes > room:
        raise BundleError(f"{where} lies outside the {place.memory} of {room} bytes", where=PLAN_FILE)


def _border_to_json(border: Border) -> list[Any]:
    return [border.name, _place_to_json(border.place), border.dtype, list(border.shape)]


def _border_from_json(data: Any) -> Border:
    name, place, dtype, shape = data
    if not isinstance(name, str) or dtype not in (*NUMPY_DTYPES, "bfloat16"):
        raise ValueError(f"not a border: {data!r:.80}")
    return Border(name, _place_from_json(place), dtype, tuple(_size(size) for size in shape))


def _place_to_json(place: Place) -> list[Any]:
    return [place.memory, place.offset]


def _place_from_json(data: Any) -> Place:
    memory, offset = data
    if memory not in ("arena", "constants"):
        raise ValueError(f"not a memory: {memory!r:.20}")
    return Place(memory, _size(offset, 2**62))


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
    return [launch.kernel, tensors, dict(launch.sizes)]


def _launch_from_json(data: Any) -> Launch:
    kernel, tensors, sizes = data
    return Launch(
        str(kernel),
        tuple((str(name), _place_from_json(place)) for name, place in tensors.items()),
        tuple((str(name), _signed(size)) for name, size in sizes.items()),
    )


def _size(value: Any, most: int = MAX_SIZE) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"not a size: {value!r:.40}")
    return value


def _signed(value: Any) -> int:
    return -_size(-value) if isinstance(value, int) and value < 0 else _size(value)


def _divisor(value: Any) -> int:
    if _size(value) == 0:
        raise ValueError("a grid divided by 0")
    return int(value)
