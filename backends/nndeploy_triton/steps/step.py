# SPDX-License-Identifier: Apache-2.0
"""What all steps share: the request for a launch, tiles, and epilogues.

Law: a request's grid covers every element of the output, whatever the tile and the sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from nndeploy.values.size import Dim
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.program import Program, identity
from nndeploy_triton.views import View

Constant: TypeAlias = "int | float | bool | str | tuple[Constant, ...] | None"
GridAxis: TypeAlias = "tuple[tuple[str, int], ...]"
"""A grid axis as data: the product, over its (size, divisor) pairs, of size / divisor rounded up."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Block sizes by the kernel's names for them, and how a block is run."""

    blocks: tuple[tuple[str, int], ...]
    num_warps: int = 4
    num_stages: int = 1

    def __getitem__(self, name: str) -> int:
        """Returns one block size."""
        return dict(self.blocks)[name]

    def __str__(self) -> str:
        return "x".join(str(size) for _, size in self.blocks)


@dataclass(frozen=True, slots=True)
class Request:
    """One launch, before its kernel is compiled.

    Names are those of the kernel's parameters; item i of a tuple parameter is "name.i". `sizes` may hold more than
    the kernel's parameters: the grid refers to them too. `written` is the tensor parameter that the kernel writes.
    """

    kernel: str
    tensors: tuple[tuple[str, View], ...]
    sizes: tuple[tuple[str, Dim], ...]
    constants: tuple[tuple[str, Constant], ...]
    grid: tuple[GridAxis, GridAxis, GridAxis]
    tile: Tile
    layout: str
    labels: tuple[str, ...] = ()
    grid_only: tuple[str, ...] = ()
    written: str = "out"


class TritonStep(Protocol):
    """One call of a kernel."""

    @property
    def output(self) -> View:
        """What the step writes."""

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads, constants included."""

    def tiles(self, gpu: GpuFacts) -> list[Tile]:
        """Returns the tiles that the kernel may use for this step on `gpu`, the one of the table first."""

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:
        """Returns what to launch."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of an output element before it is written: `program` over it and then over `extras`.

    Extras have the shape of the output, broadcast by strides of 0. `axes` groups the output's axes into the kernel's
    (batch, row, column).
    """

    program: Program
    extras: tuple[View, ...] = ()

    def joined(self, program: Program, at: int, others: Sequence[View]) -> "Epilogue":
        """Returns the epilogue followed by `program`, whose input `at` is this one's result and the rest `others`."""
        extras = (*self.extras, *others)
        merged = list(dict.fromkeys(extras))
        places = [0, *(1 + merged.index(extra) for extra in extras)]
        return Epilogue(program.after(self.program, at).with_inputs_merged(places), tuple(merged))


PLAIN = Epilogue(identity())


@dataclass(frozen=True, slots=True)
class EpilogueArguments:
    """An epilogue as arguments of a kernel: tensors, strides, and how each extra varies."""

    tensors: tuple[tuple[str, View], ...]
    sizes: tuple[tuple[str, Dim], ...]
    kinds: tuple[str, ...]


def epilogue_arguments(
    epilogue: Epilogue, axes: Sequence[Sequence[int]], prefix: str = "extra"
) -> EpilogueArguments | None:
    """Returns the arguments for an epilogue over an output whose axes are grouped into (batch, row, column).

    None where an extra does not step over a group in one line.
    """
    tensors, sizes, kinds = list[tuple[str, View]](), list[tuple[str, Dim]](), list[str]()
    for number, extra in enumerate(epilogue.extras):
        strides = extra.strides_of_groups(axes)
        if strides is None:
            return None
        tensors.append((f"{prefix}s.{number}", extra))
        sizes += [(f"{prefix}_strides.{number}.{axis}", stride) for axis, stride in enumerate(strides)]
        kinds.append(_kind(strides))
    return EpilogueArguments(tuple(tensors), tuple(sizes), tuple(kinds))


def _kind(strides: Sequence[Dim]) -> str:
    _, row, column = strides
    if row and column:
        return "tile"
    return "row" if row else "column" if column else "scalar"


def renamed(view: View, name: str) -> View:
    """Returns the same layout of another value."""
    return replace(view, name=name)


def grid(*axes: Sequence[tuple[str, int]]) -> tuple[GridAxis, GridAxis, GridAxis]:
    """Returns a grid of up to three axes."""
    x, y, z = (*axes, (), (), ())[:3]
    return tuple(x), tuple(y), tuple(z)


def power_of_two(size: int, at_most: int, at_least: int = 1) -> int:
    """Returns the smallest power of two that is no smaller than `size`, kept between the bounds."""
    return max(at_least, min(at_most, 1 << max(0, size - 1).bit_length()))
