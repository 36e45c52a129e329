# SPDX-License-Identifier: Apache-2.0
"""Finds the parts of some bytes that stand in others already: trained weights, in the files of several libraries.

For the compile half. Nothing is known of the files' formats: a base is cut into blocks of `BLOCK` bytes; where the
first bytes of one turn up in the other bytes, at whatever offset, the part that both share is as long as it goes on, to
both sides. Each part of a base that has `2 * BLOCK` bytes and more is found, but for blocks that begin as many others
do, as those of zeros: such a part is found by the blocks around them.

Large bases have larger blocks, so that there are at most `MAX_BLOCKS`, and then `WINDOW_BLOCKS` are looked at in each
`SPARSE` times as many: large files share whole tensors.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nndeploy.files.file_content import let_go_of_pages

BLOCK = 64
LEAST_BYTES = 96
"""A shorter part costs about what it saves."""
LARGE_BYTES = 16 << 20
"""A part of so many is large: behind it the pages of both files are given back."""
MAX_BLOCKS = 1 << 18
WINDOW_BLOCKS, SPARSE = 8, 16
MOST_ALIKE = 4
"""Blocks that may begin with the same bytes; those of more say nothing about a place."""
MOST_SHORT = 1 << 16
"""Parts that may turn out too short until it is given up: such bytes are no weights that were stored twice."""
_KEY = 8
_DENSE_WINDOW = 1 << 18
_MAX_STEP = 1 << 20
_FILTER_BITS = 24
_MIX = np.uint64(0x9E3779B97F4A7C15)

_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Repeated(NamedTuple):
    """`size` bytes from `at` on are those of a base from `offset` on."""

    at: int
    base: int
    offset: int
    size: int


class RepeatedParts:
    """The blocks of several bases."""

    def __init__(self, bases: Sequence[bytes | memoryview]) -> None:
        self._contents, self._bases = bases, [np.frombuffer(base, np.uint8) for base in bases]
        block = BLOCK
        while sum(map(len, self._bases)) > block * MAX_BLOCKS:
            block *= 2
        self._window, self._step = _DENSE_WINDOW, _DENSE_WINDOW
        if block > BLOCK:
            self._window, self._step = WINDOW_BLOCKS * block, WINDOW_BLOCKS * block * SPARSE
        keys, places = [np.zeros(0, np.uint64)], [np.zeros((0, 2), np.int64)]
        for number, base in enumerate(self._bases):
            blocks = base[: len(base) // block * block].reshape(-1, block)
            offsets = np.arange(len(blocks)) * block
            keys.append(np.ascontiguousarray(blocks[:, :_KEY]).view("<u8").reshape(-1))
            places.append(np.stack([np.full_like(offsets, number), offsets], axis=1))
        found, first, counts = np.unique(np.concatenate(keys), return_index=True, return_counts=True)
        self._keys = found[counts <= MOST_ALIKE]
        self._places = np.concatenate(places)[first[counts <= MOST_ALIKE]]
        self._filter = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._filter[_hashed(self._keys)] = True

    def of(self, data: bytes | memoryview) -> Iterator[Repeated]:
        """Yields the parts of `data` that stand in a base, in order; they do not overlap."""
        content, end, begin, num_short = np.frombuffer(data, np.uint8), 0, 0, 0
        while begin < len(content) and num_short < MOST_SHORT:
            at, numbers = self._candidates(content[begin : begin + self._window + _KEY - 1])
            i = 0
            while i < len(at) and num_short < MOST_SHORT:
                base, offset = map(int, self._places[numbers[i]])
                found = self._grown(content, end, begin + int(at[i]), base, offset)
                if found.size < LEAST_BYTES:
                    i, num_short = i + 1, num_short + 1
                    continue
                yield found
                end = found.at + found.size
                if found.size >= LARGE_BYTES:
                    for mapped in (data, self._contents[base]):
                        let_go_of_pages(mapped)
                i = int(np.searchsorted(at, end - begin))
            begin = max(begin + self._step, end)

    def _candidates(self, content: _Array) -> tuple[_Array, _Array]:
        """Returns where in a window a block may begin, in order, and the numbers of the blocks."""
        found = []
        for shift in range(min(_KEY, max(0, len(content) - _KEY + 1)) if len(self._keys) else 0):
            keys = content[shift : shift + (len(content) - shift) // _KEY * _KEY].view("<u8")
            likely = np.flatnonzero(self._filter[_hashed(keys)])
            numbers = np.minimum(np.searchsorted(self._keys, keys[likely]), len(self._keys) - 1)
            is_there = self._keys[numbers] == keys[likely]
            found.append(np.stack([likely[is_there] * _KEY + shift, numbers[is_there]], axis=1))
        both = np.concatenate(found) if found else np.zeros((0, 2), np.int64)
        order = np.argsort(both[:, 0], kind="stable")
        return both[order, 0], both[order, 1]

    def _grown(self, content: _Array, least: int, at: int, base: int, offset: int) -> Repeated:
        """Returns the part around a place that both share, from `least` on."""
        other = self._bases[base]
        back = min(at - least, offset)
        before = _num_equal(content[at - back : at][::-1], other[offset - back : offset][::-1])
        size = before + _num_equal(content[at:], other[offset:])
        return Repeated(at - before, base, offset - before, size)


def _hashed(keys: _Array) -> _Array:
    hashed: _Array = keys * _MIX >> np.uint64(64 - _FILTER_BITS)
    return hashed


def _num_equal(a: _Array, b: _Array) -> int:
    """Returns how many elements are equal until the first that are not."""
    most, done, step = min(len(a), len(b)), 0, 256
    while done < most:
        end = min(most, done + step)
        differs = a[done:end] != b[done:end]
        if differs.any():
            return done + int(differs.argmax())
        done, step = end, min(step * 4, _MAX_STEP)
    return most
