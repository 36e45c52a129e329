# SPDX-License-Identifier: Apache-2.0
"""The library of delays, loaded: items begin, pass points and end on a thread."""

import ctypes

from nndeploy.errors import BundleError, UnavailableError
from nndeploy.files.shared_object import exported_version, library_from_bytes
from nndeploy.pacing.item import LIBRARY_VERSION, PACE_VERSION


class PaceLibrary:
    """The functions of `pace.so`."""

    def __init__(self, data: bytes) -> None:
        """Loads it.

        Raises:
            UnavailableError: the system's loader refuses it.
            BundleError: it lacks a function, or is of another version.
        """
        library = library_from_bytes(data)
        version = exported_version(library, "nnd_pace_version")
        if version not in (PACE_VERSION, LIBRARY_VERSION):  # the former of bundles from before there were terms
            raise BundleError("its library of delays is of another version", hint="compile it again, with --pace")
        try:
            self.begin, self.end = library.nnd_pace_begin, library.nnd_pace_end
            self.slice = library.nnd_pace_slice
            self.count_from, self.passes = library.nnd_pace_from, library.nnd_pace_pass
            if version == LIBRARY_VERSION:
                self.group_take, self.group_pay = library.nnd_group_take, library.nnd_group_pay
        except AttributeError as err:
            raise BundleError(f"the library of delays lacks a function: {err}") from err
        self.begin.argtypes, self.begin.restype = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64), None
        self.end.argtypes, self.end.restype = (), None
        self.count_from.argtypes, self.count_from.restype = (ctypes.c_int64,), None
        self.passes.argtypes, self.passes.restype = (ctypes.c_int64,), None
        self.slice.argtypes, self.slice.restype = (ctypes.c_int64,), ctypes.c_int
        self.path: str = library._name
        self.has_terms = version == LIBRARY_VERSION
        """Whether it knows delays that are set, and groups."""
        if self.has_terms:
            self.group_take.argtypes = (ctypes.c_void_p, *(ctypes.c_int64,) * 4)
            self.group_take.restype = ctypes.c_int
            self.group_pay.argtypes, self.group_pay.restype = (ctypes.c_void_p, ctypes.c_int64), None

    def check_terms(self, what: str) -> None:
        """Checks that it knows terms, for the sake of `what`.

        Raises:
            UnavailableError: it comes from a bundle of before.
        """
        if not self.has_terms:
            raise UnavailableError(
                f"the bundle's library of delays knows no {what}", hint="compile it again, with --pace"
            )
