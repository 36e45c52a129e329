# SPDX-License-Identifier: Apache-2.0
"""Open sizes -> smaller and larger ones than were made up, to race placements at: who wins at one length may lose.

    input[1, length = 64] -> length = 16, length = 256
    image[1, 3, H = 224, W = 224] -> H = W = 128, H = W = 448

Batches, channels and a cache's past stay. Law: the same sample gives the same sizes.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.likely_sizes import IMAGE, LENGTH, WAVE, kind_of, terms_of
from nndeploy.values.types import TensorType, Value

FACTORS = (0.25, 4.0)
"""Factors of the number of elements of a sequence or picture: a fourth, and four times as many."""
_STRIDE = 32


def other_sizes(sample: Mapping[str, Value], inputs: Sequence[NamedType]) -> list[dict[str, int]]:
    """Returns for each of `FACTORS` a size for every named open size that may well differ; none where there is none."""
    found = [_scaled(sample, inputs, factor) for factor in FACTORS]
    return [sizes for sizes in found if sizes]


def _scaled(sample: Mapping[str, Value], inputs: Sequence[NamedType], factor: float) -> dict[str, int]:
    sizes: dict[str, int] = {}
    changes = False
    for named in inputs:
        value = sample.get(named.name)
        if not isinstance(named.type, TensorType) or named.type.shape is None or not isinstance(value, np.ndarray):
            continue
        for axis, dim in enumerate(named.type.shape):
            if not isinstance(dim, str) or terms_of(dim) or dim in sizes:
                continue
            sizes[dim] = _size(value.shape[axis], kind_of(dim, axis, named.type.shape), factor)
            changes = changes or sizes[dim] != value.shape[axis]
    return sizes if changes else {}


def _size(size: int, kind: str, factor: float) -> int:
    if kind in (LENGTH, WAVE):
        return max(1, int(size * factor))
    if kind == IMAGE:
        return max(_STRIDE, int(size * math.sqrt(factor) / _STRIDE + 0.5) * _STRIDE)
    return size
