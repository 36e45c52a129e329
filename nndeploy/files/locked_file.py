# SPDX-License-Identifier: Apache-2.0
"""A file that one process at a time holds; the system lets go of it however that process ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from nndeploy.files.whole_files import let_go


@contextlib.contextmanager
def locked_file(path: Path) -> Iterator[int]:
    """Opens or makes a file, waits until nobody else holds it, and yields its descriptor.

    On a file system without locks nobody waits.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        let_go(descriptor)
