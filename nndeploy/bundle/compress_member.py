# SPDX-License-Identifier: Apache-2.0
"""Pieces of a member -> what is stored of it compressed; `nndeploy.bundle.compressed_member` says the form.

For the compile half. Law: `expand` of what `encode` makes of pieces gives their bytes, one after the other.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nndeploy.bundle.compressed_member import (
    COPY,
    LITERAL,
    MAX_KINDS,
    PIECE,
    PLANES,
    TABLE,
    width_of,
)

_LEVEL = 6
"""The level of deflate: 9 takes four times as long for half a percent less of float32 numbers (Xeon, 2026-11-29)."""
_KINDS_SEEN = 1 << 18
"""Items that are looked at first: where these alone are of too many kinds, the others are not sorted."""


class Piece(NamedTuple):
    """A part of a member: its kind and numbers, and what it consumes."""

    kind: int
    numbers: tuple[int, ...]
    consumed: bytes | memoryview = b""


def encode(pieces: Sequence[Piece]) -> bytes:
    """Returns what is stored of a member of these pieces."""
    stream = zlib.compressobj(_LEVEL)
    head = [struct.pack("<q", len(pieces)), *(PIECE.pack(one.kind, *one.numbers, *_zeros(one)) for one in pieces)]
    return b"".join((*map(stream.compress, (*head, *(one.consumed for one in pieces))), stream.flush()))


def literal(data: memoryview) -> Piece:
    """Returns the piece that is bytes as they are."""
    return Piece(LITERAL, (len(data),), data)


def copy(base: int, offset: int, size: int) -> Piece:
    """Returns the piece that is bytes of a base."""
    return Piece(COPY, (base, offset, size))


def items(data: memoryview, item: int) -> Piece:
    """Returns the piece that is items of `item` bytes, in the form that deflates best."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, item)
    found = [Piece(PLANES, (item, len(rows)), rows.T.tobytes()), *_of_few_kinds(rows)]
    return found[0] if len(found) == 1 else min(found, key=lambda piece: len(zlib.compress(piece.consumed, 1)))


def _of_few_kinds(rows: "np.ndarray[tuple[int, int], np.dtype[np.uint8]]") -> Iterator[Piece]:
    item = rows.shape[1]
    if item not in (2, 4, 8):
        return
    values = np.ascontiguousarray(rows).view(f"<u{item}").reshape(-1)
    if len(np.unique(values[:_KINDS_SEEN])) > MAX_KINDS:
        return
    kinds, numbers = np.unique(values, return_inverse=True)
    if len(kinds) <= MAX_KINDS:
        width = width_of(len(kinds))
        chosen = numbers.astype(f">u{width}").view(np.uint8).reshape(-1, width).T
        yield Piece(TABLE, (item, len(rows), len(kinds)), kinds.tobytes() + chosen.tobytes())


def _zeros(piece: Piece) -> tuple[int, ...]:
    return (0,) * (3 - len(piece.numbers))
