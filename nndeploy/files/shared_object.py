# SPDX-License-Identifier: Apache-2.0
"""A shared library that is loaded from bytes: through a file in memory where the system has them.

The loader knows a library by its path, and takes /proc/self/fd/7 for the one that it knows by that name. So the
descriptor stays open as long as the process lives, and equal bytes are loaded once. A library is never unloaded:
another thread may be inside.
"""

import ctypes
import fcntl
import hashlib
import os
import threading
from pathlib import Path

from nndeploy.errors import UnavailableError

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""What is loaded stays what was checked, whoever opens /proc/PID/fd."""

_LOADED: dict[bytes, ctypes.CDLL] = {}
_LOCK = threading.Lock()


def library_from_bytes(data: bytes) -> ctypes.CDLL:
    """Returns the loaded library; the same one for the same bytes.

    Raises:
        UnavailableError: the system's loader refuses it.
    """
    key = hashlib.sha256(data).digest()
    with _LOCK:
        if key not in _LOADED:
            _LOADED[key] = _loaded(data)
        return _LOADED[key]


def exported_version(library: ctypes.CDLL, name: str) -> int:
    """Returns the number that a library exports under a name, 0 where it exports none."""
    try:
        return ctypes.c_int.in_dll(library, name).value
    except ValueError:
        return 0


def _loaded(data: bytes) -> ctypes.CDLL:
    try:
        return _loaded_from_memory(data) if hasattr(os, "memfd_create") else _loaded_from_file(data)
    except OSError as err:
        raise UnavailableError(f"the library of kernels cannot be loaded: {err}") from err


def _loaded_from_memory(data: bytes) -> ctypes.CDLL:
    descriptor = os.memfd_create("nndeploy-kernels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError:
        os.close(descriptor)
        raise


def _loaded_from_file(data: bytes) -> ctypes.CDLL:
    import tempfile  # few systems need it

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.so"
        path.write_bytes(data)
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
