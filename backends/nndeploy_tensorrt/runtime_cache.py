# SPDX-License-Identifier: Apache-2.0
"""The kernels that a GPU compiled for an engine, kept in a file so that the next start does not compile them again.

One file an engine, GPU and library version. The library checks a file against library, driver and GPU and ignores it
when something differs.

Source: TensorRT-RTX 1.7, IRuntimeCache.
"""

import hashlib
from pathlib import Path

MAX_BYTES = 1 << 30
PREFIX = ".rtcache-"


def cache_path(folder: str, engine: memoryview, version: str, capability: str) -> Path:
    """Returns where the cache of an engine lies in `folder`, for a library version and a compute capability."""
    digest = hashlib.sha256(engine)
    digest.update(f"\0{version}\0{capability}".encode())
    return Path(folder) / f"{digest.hexdigest()[:32]}.rtcache"
