# SPDX-License-Identifier: Apache-2.0
"""A member that is stored smaller than it is: deflated, and made of parts of other members where these repeat.

Below the reader: stored bytes come in, real ones go out; `nndeploy.bundle.compress_member` is the other way. What is
stored is one zlib stream of

    the number of pieces; for each its kind and three numbers; then what they consume, in order

Numbers are 64-bit little endian.

| piece | numbers | what it is | what it consumes |
| --- | --- | --- | --- |
| `LITERAL` | size | `size` bytes as they are | these bytes |
| `COPY` | base, offset, size | `size` bytes of a base, which is a member that is not compressed | nothing |
| `PLANES` | item, count | `count` items of `item` bytes | all first bytes, all second bytes, ... |
| `TABLE` | item, count, kinds | the same, of few kinds | the kinds; each item's kind, all high bytes, all low ones |

Laws: nothing outside of a base is read; the memory that is taken follows from the size that the caller expects, not
from what the stream says. The real bytes are for the caller to check against a hash.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nndeploy.errors import BundleError

MAX_OWN_BYTES = 64 << 20
"""What a compressed member may hold beyond its bases."""
MAX_PIECES = 1 << 16
LITERAL, COPY, PLANES, TABLE = range(4)
HEAD = 8
PIECE = struct.Struct("<4q")
MAX_ITEM = 16
MAX_KINDS = 1 << 16

ReadBase = Callable[[int, int, memoryview], None]
"""Fills memory with the bytes of the base of a number from an offset on."""


def expand(stored: memoryview, target: memoryview, bases: Sequence[int], read_base: ReadBase) -> None:
    """Fills `target` with the real bytes of a member; `bases` are the sizes of the members that it is made of.

    Raises:
        BundleError: what is stored is damaged, names bytes outside of a base, or makes less or more than `target`.
    """
    pieces, consumed = _inflated(stored, len(target))
    at = 0
    for kind, *numbers in pieces:
        size = _size(kind, numbers)
        if size > len(target) - at:
            raise BundleError(f"its pieces make more than {len(target)} bytes")
        part = target[at : at + size]
        if kind == COPY:
            base, offset, _ = numbers
            if not (0 <= base < len(bases) and 0 <= offset <= bases[base] - size):
                raise BundleError(f"a piece reaches outside of its base: {size} bytes at {offset} of {base}")
            read_base(base, offset, part)
        else:
            consumed = _filled(kind, numbers, part, consumed)
        at += size
    if at != len(target) or len(consumed):
        raise BundleError(f"its pieces make {at} bytes of {len(target)}, and leave {len(consumed)}")


def _inflated(stored: memoryview, size: int) -> tuple[Iterable[tuple[int, ...]], memoryview]:
    """Returns the pieces, and what they consume; of few items, all of different kinds, that is twice what they are."""
    most = HEAD + MAX_PIECES * PIECE.size + 2 * min(size, MAX_OWN_BYTES)
    stream = zlib.decompressobj()
    try:
        data = memoryview(stream.decompress(stored, most))
    except zlib.error as err:
        raise BundleError(f"cannot be inflated: {err}") from err
    if not stream.eof or stream.unused_data:
        raise BundleError("it does not end where its stream does, or inflates to more than it says")
    count = int.from_bytes(data[:HEAD], "little")
    end = HEAD + count * PIECE.size
    if count > MAX_PIECES or end > len(data):
        raise BundleError(f"it has {count} pieces")
    return PIECE.iter_unpack(data[HEAD:end]), data[end:]


def _size(kind: int, numbers: Sequence[int]) -> int:
    """Returns how many bytes a piece makes, at least one."""
    first, second, third = numbers
    is_items = kind == TABLE or (kind == PLANES and not third)
    size = first * second if is_items and 0 < first <= MAX_ITEM else 0
    size = third if kind == COPY else first if kind == LITERAL and not (second or third) else size
    if size < 1:
        raise BundleError(f"it has a piece that is none: {kind}, {first}, {second}, {third}")
    return size


def _filled(kind: int, numbers: Sequence[int], target: memoryview, consumed: memoryview) -> memoryview:
    """Fills memory with a piece; returns what is left to consume."""
    item, count, kinds = numbers
    width = width_of(kinds)
    if kind == TABLE and not 0 < kinds <= min(count, MAX_KINDS):
        raise BundleError(f"a piece of {count} items has {kinds} kinds")
    needed = kinds * item + count * width if kind == TABLE else len(target)
    if needed > len(consumed):
        raise BundleError(f"a piece consumes {needed} bytes of {len(consumed)}")
    data, rest = np.frombuffer(consumed[:needed], np.uint8), consumed[needed:]
    if kind == LITERAL:
        target[:] = data.data
        return rest
    rows = np.frombuffer(target, np.uint8).reshape(count, item)
    if kind == PLANES:
        rows[:] = data.reshape(item, count).T
        return rest
    numbers_of = data[kinds * item :].reshape(width, count).astype(np.intp)
    chosen = numbers_of[0] if width == 1 else numbers_of[0] << 8 | numbers_of[1]
    if chosen.max() >= kinds:
        raise BundleError(f"an item is of kind {chosen.max()} of {kinds}")
    rows[:] = data[: kinds * item].reshape(kinds, item)[chosen]
    return rest


def width_of(kinds: int) -> int:
    """Returns how many bytes the number of a kind takes."""
    return 1 if kinds <= 1 << 8 else 2
