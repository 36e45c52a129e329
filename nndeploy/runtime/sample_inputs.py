# SPDX-License-Identifier: Apache-2.0
"""Inputs made up from a program's types alone, to measure with where nothing better is at hand.

Floats are uniform in 0..1, all else is zero, False or an empty text, which are valid indices and lengths for most
models. Symbolic sizes are the best of their declared range, others 1. The same program gives the same inputs.
"""

from collections.abc import Mapping

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.values.types import (
    DimRange,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    numpy_dtype,
)


def sample_inputs(manifest: Manifest, seed: int = 0) -> dict[str, Value]:
    """Returns a value for every input."""
    dice = np.random.default_rng(seed)
    return {item.name: _sample(item.type, manifest.ranges, dice) for item in manifest.inputs}


def sample_of_shapes(manifest: Manifest, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Value]:
    """Returns a value for every input, tensors of the shapes that are given."""
    dice = np.random.default_rng(0)
    return {
        item.name: _array(item.type, shapes[item.name], dice)
        if isinstance(item.type, TensorType) and item.name in shapes
        else _sample(item.type, manifest.ranges, dice)
        for item in manifest.inputs
    }


def _sample(value_type: ValueType, ranges: Mapping[str, DimRange], dice: np.random.Generator) -> Value:
    match value_type:
        case OptionalType(element):
            return _sample(element, ranges, dice)
        case SequenceType(element):
            return [_sample(element, ranges, dice)]
        case MapType(key, element):
            return {"" if key == "string" else 0: _sample(element, ranges, dice)}
        case TensorType():
            return _tensor(value_type, ranges, dice)


def _tensor(tensor: TensorType, ranges: Mapping[str, DimRange], dice: np.random.Generator) -> Value:
    return _array(tensor, tuple(_size(dim, ranges) for dim in tensor.shape or ()), dice)


def _array(tensor: TensorType, shape: tuple[int, ...], dice: np.random.Generator) -> Value:
    dtype = numpy_dtype(tensor.dtype)
    if tensor.dtype == "string":
        return np.full(shape, "", dtype=object)
    if tensor.dtype.startswith(("float", "bfloat", "complex")):
        return dice.random(shape, dtype=np.float32).astype(dtype)
    return np.zeros(shape, dtype)


def _size(dim: int | str | None, ranges: Mapping[str, DimRange]) -> int:
    if isinstance(dim, int):
        return dim
    return ranges[dim].best if dim is not None and dim in ranges else 1
