# SPDX-License-Identifier: Apache-2.0
"""Ranges of the model's inputs -> ranges of every symbolic size inside it.

A symbol that shape inference gave to a value in between ("unk__7" for half the width) has a range that follows from
those of the inputs: the sizes are inferred with all inputs smallest, best and largest. A backend that must know the
sizes at the borders of its submodel (an engine of TensorRT) is built with these.

Law: at each of the three settings a derived size is the one that inference gives. In between it is taken to lie
between them, which holds for operators that do not shrink their output when an input grows.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir as ir

from nndeploy.partition.concrete_shapes import concrete_shapes
from nndeploy.values.types import DimRange

_AMBIGUOUS = -1


def derived_ranges(model: ir.Model, ranges: Mapping[str, DimRange]) -> dict[str, DimRange]:
    """Returns symbol -> range for the symbols of values in between; `ranges` are those of the inputs' symbols.

    Empty where a symbolic size of an input has no range. A symbol whose size is not known, or differs between two
    values, is left out.
    """
    at = [shapes_at(model, ranges, end) for end in ("min", "best", "max")]
    if any(shapes is None for shapes in at):
        return {}
    low, best, high = (_sizes(model, shapes or {}) for shapes in at)
    symbols = (low.keys() & best.keys() & high.keys()) - ranges.keys()
    return {symbol: _range(low[symbol], best[symbol], high[symbol]) for symbol in sorted(symbols)}


def _range(low: int, best: int, high: int) -> DimRange:
    return DimRange(min(low, best, high), max(low, best, high), best)


def shapes_at(model: ir.Model, ranges: Mapping[str, DimRange], end: str) -> dict[str, tuple[int, ...]] | None:
    """Returns the shapes of values by name where every input has the `end` ("min", "best" or "max") of its ranges.

    None where a symbolic size of an input has no range; empty where the model has none.
    """
    inputs = [value for value in model.graph.inputs if isinstance(value.type, ir.TensorType)]
    if any(_size(dim, ranges, end) is None for value in inputs for dim in value.shape or (None,)):
        return None
    return concrete_shapes(model, {value.name or "": _array(value, ranges, end) for value in inputs})


def _sizes(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Returns symbol -> size where values have these shapes."""
    sizes: dict[str, int] = {}
    for symbol, size in _symbols(model, shapes):
        sizes[symbol] = size if sizes.get(symbol, size) == size else _AMBIGUOUS
    return {symbol: size for symbol, size in sizes.items() if size != _AMBIGUOUS}


def _symbols(model: ir.Model, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    for value in (output for node in model.graph for output in node.outputs):
        found = shapes.get(value.name or "")
        if found is None or value.shape is None or len(found) != len(value.shape):
            continue
        for dim, size in zip(value.shape, found, strict=True):
            if isinstance(dim, ir.SymbolicDim) and dim.value:
                yield dim.value, size


def _array(
    value: ir.Value, ranges: Mapping[str, DimRange], end: str
) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    """Returns an array of the right shape that takes no memory."""
    shape = tuple(_size(dim, ranges, end) or 0 for dim in value.shape or ())
    return np.broadcast_to(np.uint8(0), shape)


def _size(dim: object, ranges: Mapping[str, DimRange], end: str) -> int | None:
    """Returns the size of one dimension at an end of its range, None where that is not known."""
    if isinstance(dim, int):
        return dim
    symbol = dim.value if isinstance(dim, ir.SymbolicDim) else None
    if symbol is None or symbol not in ranges:
        return None
    found: int = getattr(ranges[symbol], end)
    return found
