# SPDX-License-Identifier: Apache-2.0
"""The declared ranges of symbolic dimensions -> the shapes that an engine must take: smallest, best, largest.

Law: an input without symbols needs no shapes; one with a symbol of unknown range cannot be built for.
"""

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from nndeploy.value_types import DimRange
from nndeploy_tensorrt.engine import InputSizes


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


def _symbols(value: ir.Value) -> Iterator[tuple[int, str]]:
    """Yields (axis, symbol) of the sizes that are no numbers; "" where a size has no name either."""
    for axis, dim in enumerate(value.shape or ()):
        if not isinstance(dim, int):
            yield axis, dim.value or "" if isinstance(dim, ir.SymbolicDim) else ""
