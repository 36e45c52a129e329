# SPDX-License-Identifier: Apache-2.0
"""Where each value between steps lies in the arena: numbers, or entries of the table where a size is not fixed.

Values are placed for the largest sizes of the ranges. Where sizes are not fixed, each then lies on top of those that
lived at the same time and were placed below it: with smaller sizes all of them move down together, and the arena is as
small as the shapes of a call allow. Law: two values that overlap in memory do not overlap in time, whatever the sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy.backend_kit.kernels.memory import Lifetime, aligned, piled, placed
from nndeploy.backend_kit.kernels.usage import readers_of
from nndeploy.values.size import Dim, bounds
from nndeploy_native.isa import Isa
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.plan import ALIGNMENT
from nndeploy_native.size_table import SizeTable, largest_code
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import padded


@dataclass(frozen=True, slots=True)
class Arena:
    """The C expression of the offset of each value, and of the bytes of the whole; `most_bytes` are the most of all."""

    offsets: Mapping[str, str]
    num_bytes: str
    most_bytes: int


def arena_of(steps: Sequence[NativeStep], lowered: Lowered, isa: Isa, table: SizeTable) -> Arena:
    """Returns where values lie; adds the entries that say it to the table."""
    sizes, lifetimes = _lifetimes(steps, lowered, isa)
    offsets, num_bytes = placed(lifetimes, ALIGNMENT)
    if all(isinstance(size, int) for size in sizes.values()):
        return Arena({name: str(offset) for name, offset in offsets.items()}, str(num_bytes), num_bytes)
    begins: dict[str, str] = {}
    ends: dict[str, str] = {}
    for name, below in piled(lifetimes, offsets).items():
        entry = table.added(largest_code(ends[other] for other in below))
        begins[name] = f"sizes[{entry}]"
        ends[name] = f"({begins[name]} + {table.code_of(padded(sizes[name], ALIGNMENT))})"
    whole = table.added(largest_code(ends.values()))
    return Arena({name: f"call->{begin}" for name, begin in begins.items()}, f"sizes[{whole}]", num_bytes)


def _lifetimes(steps: Sequence[NativeStep], lowered: Lowered, isa: Isa) -> tuple[dict[str, Dim], dict[str, Lifetime]]:
    outside = {tensor.name for tensor in (*lowered.inputs.values(), *lowered.outputs.values())}
    readers = readers_of(steps)
    sizes: dict[str, Dim] = {}
    lifetimes: dict[str, Lifetime] = {}
    for number, step in enumerate(steps):
        tensor = step.output
        if tensor.name not in outside:
            last = readers.get(tensor.name, [number])[-1]
            sizes[tensor.name] = tensor.num_bytes(isa)
            lifetimes[tensor.name] = Lifetime(aligned(bounds(sizes[tensor.name])[1], ALIGNMENT), number, last)
    return sizes, lifetimes
