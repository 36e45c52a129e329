# SPDX-License-Identifier: Apache-2.0
"""A batch of any size in a range, on plans that are made for a few: 1, 2, 4, 8.

A call runs on the plans for the next size that is large enough, filled up with copies of its own rows, which
`batch_rows` proves to touch no other. Law: a ladder goes up in steps of at most two, so fewer than half of what is
computed is thrown away, and there are always rows enough to fill it up with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.values.size import Dim, Size
from nndeploy.values.size_text import size_from_text, symbol_in
from nndeploy.values.types import DimRange

MAX_RUNGS = 8
"""Plans are made anew for each size: so many times as long to build, and as many bytes of plans."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The sizes of `symbol` that plans are made for, the smallest first."""

    symbol: str
    rungs: tuple[int, ...]


def ladder_of(values: Iterable[ir.Value], ranges: Mapping[str, DimRange]) -> Ladder | None:
    """Returns the ladder of the one size of some values that is in a range; None where there is no such, or several."""
    sizes = [size_of(dim.value, ranges) for value in values for dim in value.shape or () if not isinstance(dim, int)]
    open_ones = {one.name for size in sizes if isinstance(size, Size) for one in size.symbols}
    if None in sizes or len(open_ones) != 1 or not open_ones <= ranges.keys():
        return None
    (symbol,) = open_ones
    limits = ranges[symbol]
    rungs = [limits.min]
    while 0 < rungs[-1] < limits.max:
        rungs.append(min(2 * rungs[-1], limits.max))
    return Ladder(symbol, tuple(rungs)) if rungs[0] > 0 and len(rungs) <= MAX_RUNGS else None


def size_of(text: str | None, ranges: Mapping[str, DimRange]) -> "Dim | None":
    """Returns the size that a model calls by a text; None where it says nothing."""
    return None if text is None else size_from_text(text, lambda name: symbol_in(name, ranges))
