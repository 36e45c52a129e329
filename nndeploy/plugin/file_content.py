# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file that a backend made: in memory, or mapped where they are many.

What is mapped takes no memory of its own and stays when the file is removed. For files that nobody writes to any more.
"""

import mmap
from pathlib import Path

MIN_MAPPED_BYTES = 256 << 20


def content_of(path: Path) -> bytes | memoryview:
    """Returns the bytes of a file."""
    if path.stat().st_size < MIN_MAPPED_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
