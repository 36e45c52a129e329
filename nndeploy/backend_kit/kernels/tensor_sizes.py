# SPDX-License-Identifier: Apache-2.0
"""The sizes of a model's values as kernels of our own take them: numbers, or sizes in the ranges of the inputs."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, Size, bounds, is_fixed, product
from nndeploy.values.size_text import size_from_text, symbol_in
from nndeploy.values.types import DimRange

MAX_ELEMENTS = 2**31 - 2**16
"""Places are counted in 32 bits, and the last block of a kernel counts a little beyond the end."""


def sizes_of(value: ir.Value, ranges: Mapping[str, DimRange]) -> tuple[Dim, ...]:
    """Returns the sizes of a value; `ranges` are those of the symbols of the model's inputs.

    Raises:
        BuildRefusedError: a size is not known, there may be too many elements, or by the ranges none.
    """
    if value.shape is None:
        raise BuildRefusedError(f"the shape of {value.name!r} is not known")
    sizes = tuple(_size(value, dim, ranges) for dim in value.shape)
    has = "has" if is_fixed(sizes) else "may have"
    if bounds(product(sizes))[1] > MAX_ELEMENTS:
        raise BuildRefusedError(f"{value.name!r} {has} more than {MAX_ELEMENTS} elements")
    if any(isinstance(size, Size) and bounds(size)[0] < 1 for size in sizes):
        raise BuildRefusedError(f"{value.name!r} may have no elements")
    return sizes


def _size(value: ir.Value, dim: object, ranges: Mapping[str, DimRange]) -> Dim:
    if isinstance(dim, int):
        return dim
    text = dim.value if isinstance(dim, ir.SymbolicDim) else None
    if text is None:
        raise BuildRefusedError(f"a size of {value.name!r} is not known")
    return size_from_text(text, lambda name: _symbol(name, ranges))


def _symbol(name: str, ranges: Mapping[str, DimRange]) -> Dim:
    if name not in ranges:
        why = "--shape gives its range, where it is an input's"
        raise BuildRefusedError(f"nothing is known of the size {name!r}: {why}")
    return symbol_in(name, ranges)
