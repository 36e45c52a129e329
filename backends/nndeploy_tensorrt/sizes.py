# SPDX-License-Identifier: Apache-2.0
"""The declared ranges of symbolic dimensions -> the shapes that an engine must take: smallest, best, largest.

An engine is fast near the shape that a profile is tuned for. Where a range is wide, the widest one is cut into pieces,
each with a profile of its own; the other ranges are whole in every profile.
Law: an input without symbols needs no shapes; one with a symbol of unknown range cannot be built for; every size of a
range lies in exactly one piece.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from nndeploy.values.types import DimRange
from nndeploy_tensorrt.engine import InputSizes, Profile

WIDE = 8
"""Largest over smallest size of a profile, where `MAX_PROFILES` allow it."""
MAX_PROFILES = 4
"""Each one is built and kept on its own: an engine with four takes up to four times as long and as many bytes."""


def unknown_size(value: ir.Value, ranges: Mapping[str, DimRange]) -> str:
    """Returns which size of an input nobody declared, with what to do about it, or ""."""
    if value.shape is None:
        return f"the rank of {value.name!r} is not known"
    for axis, symbol in _symbols(value):
        if symbol not in ranges:
            named = f" ({symbol})" if symbol else ""
            return f"axis {axis}{named} of {value.name!r} has no range: declare it with --shape"
    return ""


def input_sizes(value: ir.Value, ranges: Mapping[str, DimRange]) -> InputSizes | None:
    """Returns the shapes of an input whose sizes are all known; None where they are fixed."""
    if value.shape is None or not any(True for _ in _symbols(value)):
        return None
    by_axis = [DimRange(dim, dim, dim) if isinstance(dim, int) else ranges[str(dim)] for dim in value.shape]
    return InputSizes(
        value.name or "",
        tuple(size.min for size in by_axis),
        tuple(size.best for size in by_axis),
        tuple(size.max for size in by_axis),
    )


def profiles(
    inputs: Sequence[ir.Value], ranges: Mapping[str, DimRange], most: int = MAX_PROFILES
) -> tuple[Profile, ...]:
    """Returns at most `most` profiles for inputs whose sizes are all known; none where all are fixed."""
    symbols = [symbol for value in inputs for _, symbol in _symbols(value)]
    if not symbols:
        return ()
    widest = max(symbols, key=lambda symbol: _width(ranges[symbol]))
    return tuple(
        tuple(sizes for value in inputs if (sizes := input_sizes(value, {**ranges, widest: piece})))
        for piece in pieces_of(ranges[widest], most)
    )


def pieces_of(limits: DimRange, most: int) -> list[DimRange]:
    """Returns a range as at most `most` ranges of about the same width, one after the other."""
    count = next(n for n in range(1, most + 1) if WIDE**n >= _width(limits) or n == most)
    low, pieces = limits.min, []
    for i in range(1, count + 1):
        high = limits.max if i == count else _on_step(limits, max(1, limits.min) * _width(limits) ** (i / count))
        if high < low:
            continue
        best = limits.best if low <= limits.best <= high else max(low, _on_step(limits, math.sqrt(low * high)))
        pieces.append(DimRange(low, high, best, limits.step))
        low = high + limits.step
    return pieces


def _width(limits: DimRange) -> float:
    return limits.max / max(1, limits.min)


def _on_step(limits: DimRange, size: float) -> int:
    """Returns the largest size of a range that is at most `size`."""
    return limits.min + (int(size) - limits.min) // limits.step * limits.step


def _symbols(value: ir.Value) -> Iterator[tuple[int, str]]:
    """Yields (axis, symbol) of the sizes that are no numbers; "" where a size has no name either."""
    for axis, dim in enumerate(value.shape or ()):
        if not isinstance(dim, int):
            yield axis, dim.value or "" if isinstance(dim, ir.SymbolicDim) else ""
