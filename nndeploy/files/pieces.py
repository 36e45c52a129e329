# SPDX-License-Identifier: Apache-2.0
"""A file read piece by piece: no more than a piece of it is in memory, whatever its size."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nndeploy.files.whole_files import open_regular, reading

PIECE_BYTES = 1 << 20
ANY_SIZE = 1 << 62
"""A limit for those who have none."""


def pieces_of(path: Path, max_bytes: int = ANY_SIZE) -> Iterator[bytes]:
    """Yields what a file holds; raises as `open_regular` does.

    Raises:
        InputOutputError: reading failed half way.
    """
    with reading(path), open_regular(path, max_bytes) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def written(pieces: Iterable[bytes], write: Callable[[bytes], object]) -> tuple[str, int]:
    """Hands each piece to `write`; returns the SHA-256 of all of them, in hexadecimal digits, and how many bytes."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        write(piece)
    return digest.hexdigest(), size


def sha256_of(path: Path, max_bytes: int = ANY_SIZE) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits; raises as `pieces_of` does."""
    return written(pieces_of(path, max_bytes), lambda _piece: None)[0]
