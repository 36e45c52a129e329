# SPDX-License-Identifier: Apache-2.0
"""A value for one input, made up from its type, its name and who reads it; the same model and seed give the same.

Integers that choose rows stay below the number of rows, positions count, masks let everything through, lengths are
those of the other inputs.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.input_meanings import AXES, STEPS
from nndeploy.checking.likely_sizes import LENGTH, PAST, WAVE, kind_of, usual_sizes
from nndeploy.checking.open_sizes import OpenSizes
from nndeploy.values.size import evaluated
from nndeploy.values.types import (
    ML_DTYPES,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    numpy_dtype,
)

MAX_ELEMENTS = 1 << 26
LARGE_ELEMENTS = 1 << 14
"""Floats of so many elements, which are pictures and sounds, are on a grid of steps as those are.

A bundle keeps samples deflated, and random bits do not deflate. Smaller ones, which may be scores that are to be put
in order, have all bits: equal ones would be rare.
"""
SHARE_STEPS, NORMAL_STEPS = 256, 16
SEQUENCE_LENGTH = 2
SAMPLE_RATE = 16000
CUT_WORDS = 8
"""Words of a text that is cut into words."""
_WORDS = ("one", "two words", "", "Grüße", "5", "long " * 8)

_Array = np.ndarray[Any, Any]


class TooLargeError(Exception):
    """A generated tensor would be absurdly large."""


@dataclass(frozen=True, slots=True)
class ValueMaker:
    """Makes values at one choice of sizes; `plain` ones are small and equal, and have no optional parts."""

    unknown: OpenSizes
    sizes: Mapping[str, int]
    seed: int
    plain: bool

    def value(self, named: NamedType) -> Value:
        """Returns a value for an input.

        Raises:
            TooLargeError: it would have more than `MAX_ELEMENTS`.
        """
        return self._value(named.name, named.type, np.random.default_rng([self.seed, zlib.crc32(named.name.encode())]))

    def _value(self, name: str, kind: ValueType, random: np.random.Generator) -> Value:
        match kind:
            case TensorType(dtype, dims):
                return self._tensor(name, dtype, self._shape(name, dims), random)
            case OptionalType(element):
                return None if self.plain else self._value(name, element, random)
            case SequenceType(element):
                return [self._value(name, element, random) for _ in range(SEQUENCE_LENGTH)]
            case MapType(key, element):
                return {("one" if key == "string" else 1): self._value(name, element, random)}

    def _shape(self, name: str, dims: Sequence[Any] | None) -> tuple[int, ...]:
        rank = len(self.unknown.shapes.get(name, ()))
        if dims is None or len(dims) == rank:
            shape = self.unknown.shape(name, self.sizes) if rank else ()
        else:  # of the elements of a sequence, an optional or a map
            shape = tuple(
                dim if isinstance(dim, int) else self.sizes.get(dim, usual_sizes(kind_of(dim, axis, dims))[0])
                for axis, dim in enumerate(dims)
            )
        if np.prod(shape, dtype=np.float64) > MAX_ELEMENTS:
            raise TooLargeError
        return shape

    def _tensor(self, name: str, dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> _Array:
        words = name.lower()
        if dtype == "string":
            return self._texts(name, shape, random)
        if dtype == "bool":
            return np.asarray(random.random(shape) < (1.0 if "mask" in words or "use_cache" in words else 0.5))
        if name in self.unknown.counts:
            counts = [evaluated(size, self.sizes) for size in self.unknown.counts[name]]
            return np.array(counts).reshape(shape).astype(numpy_dtype(dtype))
        if dtype.startswith(("int", "uint")):
            known = None if self.plain else self._integers_by_name(name, shape)
            found = known if known is not None else self._integers(name, dtype, shape, random)
            return found.astype(numpy_dtype(dtype))
        if dtype.startswith("complex"):
            return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(numpy_dtype(dtype))
        is_share = self.plain or "mask" in words or _is_picture(name, shape)
        floats = np.asarray(random.random(shape) if is_share else random.standard_normal(shape))
        if floats.size >= LARGE_ELEMENTS:
            steps = SHARE_STEPS if is_share else NORMAL_STEPS
            floats = np.floor(floats * steps) / steps
        return floats.astype(numpy_dtype(dtype))

    def _texts(self, name: str, shape: tuple[int, ...], random: np.random.Generator) -> _Array:
        known = self.unknown.texts.get(name)
        words = _WORDS if known is None else known.words if known.is_sure else (*known.words, *_WORDS)
        size = (*shape, CUT_WORDS) if known is not None and known.is_cut else shape
        found = np.array(random.choice(np.array(words, dtype=object), size=size), dtype=object)
        if size == shape:
            return found
        texts = [" ".join(row) for row in found.reshape(-1, CUT_WORDS).tolist()]
        return np.array(texts, dtype=object).reshape(shape)

    def _integers_by_name(self, name: str, shape: tuple[int, ...]) -> _Array | None:
        """Returns integers whose name says what they are: positions behind the past, lengths, a rate of samples."""
        words, limit = name.lower(), self.unknown.limit(name, self.sizes)
        past, length = (self.unknown.size_of_kind(kind, self.sizes) for kind in (PAST, LENGTH))
        if "position" in words and shape:
            places = np.broadcast_to(np.arange(shape[-1]), shape) + (past if shape[-1] > 1 else 0)
            return places % (limit or MAX_ELEMENTS)
        if words in ("sr", "sample_rate", "sampling_rate"):
            return np.full(shape, SAMPLE_RATE)
        if limit is not None or len(shape) > 1:
            return None
        if "total_seq" in words or "seqlens_k" in words:  # of a past and what is new, as ONNX Runtime's attention asks
            return np.full(shape, past + length - int("seqlens_k" in words))
        if "length" in words or words.endswith(("_len", "_lens")):
            is_sound = WAVE in self.unknown.kinds.values() and LENGTH not in self.unknown.kinds.values()
            return np.full(shape, self.unknown.size_of_kind(WAVE, self.sizes) if is_sound else length)
        return None

    def _integers(self, name: str, dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> _Array:
        meaning = self.unknown.parameters.get(name)
        lower, upper = 0 if meaning != STEPS else 1, 10
        if (limit := self.unknown.limit(name, self.sizes)) is not None:
            upper = limit if dtype in ML_DTYPES else min(limit, np.iinfo(dtype).max)
        elif dtype in ("int8", "uint8"):
            lower, upper = (-128, 128) if dtype == "int8" else (0, 256)
        elif "mask" in name.lower():
            lower, upper = 1, 2
        elif dtype in ML_DTYPES:
            lower, upper = 0, 2
        if meaning == AXES:
            return np.arange(np.prod(shape, dtype=int)).reshape(shape) % max(1, upper)
        if self.plain:
            lower, upper = 1 if upper > 1 else 0, 2 if upper > 1 else 1
        return np.asarray(random.integers(lower, upper, shape))


def is_varied(kind: ValueType) -> bool:
    """Returns whether plain values of a type may run where others do not: integers, parts, few floats as parameters."""
    if not isinstance(kind, TensorType) or kind.dtype.startswith(("int", "uint", "bool")):
        return True
    return kind.shape is not None and len(kind.shape) < 2 and kind.dtype != "string"


def _is_picture(name: str, shape: tuple[int, ...]) -> bool:
    """Returns whether a float input holds pixels from 0 to 1; a detector finds nothing in much that is none."""
    has_channels = len(shape) in (3, 4) and (shape[-3] in (1, 3) or shape[-1] in (1, 3))
    return has_channels and any(word in name.lower() for word in ("image", "img"))
