# SPDX-License-Identifier: Apache-2.0
"""The library of delays, loaded: items begin, pass points and end on a thread."""

import ctypes

from nndeploy.errors import BundleError
from nndeploy.files.shared_object import exported_version, library_from_bytes
from nndeploy.pacing.item import PACE_VERSION


class PaceLibrary:
    """The functions of `pace.so`."""

    def __init__(self, data: bytes) -> None:
        """Loads it.

        Raises:
            UnavailableError: the system's loader refuses it.
            BundleError: it lacks a function, or is of another version.
        """
        library = library_from_bytes(data)
        if exported_version(library, "nnd_pace_version") != PACE_VERSION:
            raise BundleError("its library of delays is of another version", hint="compile it again, with --pace")
        try:
            self.begin, self.end = library.nnd_pace_begin, library.nnd_pace_end
            self.slice = library.nnd_pace_slice
            self.count_from, self.passes = library.nnd_pace_from, library.nnd_pace_pass
        except AttributeError as err:
            raise BundleError(f"the library of delays lacks a function: {err}") from err
        self.begin.argtypes, self.begin.restype = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64), None
        self.end.argtypes, self.end.restype = (), None
        self.count_from.argtypes, self.count_from.restype = (ctypes.c_int64,), None
        self.passes.argtypes, self.passes.restype = (ctypes.c_int64,), None
        self.slice.argtypes, self.slice.restype = (ctypes.c_int64,), ctypes.c_int
        self.path: str = library._name
