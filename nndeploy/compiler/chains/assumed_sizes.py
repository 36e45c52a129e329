# SPDX-License-Identifier: Apache-2.0
"""Usual ranges for sizes that a model leaves open, for backends that must be told some (our own kernels).

    x: [batch, 3, 224, 224]          ->  batch 1..32
    x: [batch, 3, height, width]     ->  batch 1..4, height and width 32..1536

Most exporters leave the batch open, and a submodel that is built for such ranges is far faster than none. Law: what is
built so is never a submodel's only variant; calls with other sizes run on the next one (`runtime/other_sizes.py`).
"""

from collections.abc import Mapping, Sequence

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.likely_sizes import BATCH, IMAGE, LENGTH, WAVE, kind_of
from nndeploy.values.types import DimRange, TensorType, Value

STEPS = (1, 32)
"""Steps of the sizes of images, in the order in which they are tried: arms of a U-net are only equal at multiples."""
_USUAL = {BATCH: (1, 4), IMAGE: (32, 1536), LENGTH: (64, 4096), WAVE: (1024, 65536)}
_MOST_IMAGES = 32
"""Most images where nothing else is open: the largest value of all that may come must be one that kernels can count."""

AssumedRanges = Mapping[int, Mapping[str, DimRange]]
"""Step of the sizes of images -> symbol -> range."""


def assumed_ranges(
    inputs: Sequence[NamedType], told: Mapping[str, DimRange], samples: Sequence[Mapping[str, Value]]
) -> AssumedRanges:
    """Returns ranges for all open sizes that hold those of every sample; by step, no step where there are none.

    `told` are the ranges that the user gave.
    """
    kinds = {name: kind for name, kind in _open_sizes(inputs).items() if name not in told}
    seen = [sizes for sample in samples if (sizes := _sizes_of(inputs, sample))]
    if not kinds or not seen or not all(kind in _USUAL for kind in kinds.values()):
        return {}
    found = {}
    for step in STEPS if IMAGE in kinds.values() else STEPS[:1]:
        usual = _USUAL if set(kinds.values()) != {BATCH} else {BATCH: (1, _MOST_IMAGES)}
        steps = {name: step if kind == IMAGE else 1 for name, kind in kinds.items()}
        ranges = {
            name: _around([sizes[name] for sizes in seen], *usual[kind], steps[name]) for name, kind in kinds.items()
        }
        if all(ranges[name].holds(sizes[name]) for sizes in seen for name in ranges):
            found[step] = {**ranges, **told}
    return found


def _open_sizes(inputs: Sequence[NamedType]) -> dict[str, str]:
    """Returns symbol -> kind; a size without a name, which nothing can be said of, is the kind ""."""
    found: dict[str, str] = {}
    for named in inputs:
        dims = named.type.shape if isinstance(named.type, TensorType) else None
        for axis, dim in enumerate(dims or ()):
            if not isinstance(dim, int):
                found.setdefault(dim or "", kind_of(dim, axis, dims or ()) if dim and "+" not in dim else "")
        if dims is None:
            found[""] = ""
    return found


def _sizes_of(inputs: Sequence[NamedType], sample: Mapping[str, Value]) -> dict[str, int]:
    """Returns symbol -> size in a sample."""
    found: dict[str, int] = {}
    for named in inputs:
        dims = named.type.shape if isinstance(named.type, TensorType) else None
        shape = getattr(sample.get(named.name), "shape", ())
        found |= {dim: size for dim, size in zip(dims or (), shape, strict=False) if isinstance(dim, str)}
    return found


def _around(sizes: Sequence[int], low: int, high: int, step: int) -> DimRange:
    """Returns the range from `low` to `high`, or to what is beyond of `sizes`; its best is the first of these."""
    low, high = min(low, *sizes), max(high, *sizes)
    return DimRange(low, low + (high - low) // step * step, sizes[0], step)
