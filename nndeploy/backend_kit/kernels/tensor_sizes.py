# SPDX-License-Identifier: Apache-2.0
"""The sizes of a model's values as kernels of our own take them: numbers, or sizes of the symbols of the inputs."""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, Size, bounds, is_fixed, product
from nndeploy.values.size_text import size_in
from nndeploy.values.types import DimRange

MAX_ELEMENTS = 2**31 - 2**16
"""Places are counted in 32 bits, and the last block of a kernel counts a little beyond the end."""


def sizes_of(value: ir.Value, ranges: Mapping[str, DimRange]) -> tuple[Dim, ...]:
    """Returns the sizes of a value; of symbols that have no range in `ranges` nothing is known.

    Raises:
        BuildRefusedError: a size has no name.
    """
    if value.shape is None:
        raise BuildRefusedError(f"the shape of {value.name!r} is not known")
    return tuple(_size(value, dim, ranges) for dim in value.shape)


def bounded_sizes_of(value: ir.Value, ranges: Mapping[str, DimRange]) -> tuple[Dim, ...]:
    """Returns the sizes of a value for kernels that are built for the ranges of all symbols.

    Raises:
        BuildRefusedError: a size is not known, there may be too many elements, or by the ranges none.
    """
    sizes = sizes_of(value, ranges)
    unknown = [one.name for size in sizes if isinstance(size, Size) for one in size.symbols if one.name not in ranges]
    if unknown:
        why = "--shape gives its range, where it is an input's"
        raise BuildRefusedError(f"nothing is known of the size {min(unknown)!r}: {why}")
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
    return size_in(text, ranges)
