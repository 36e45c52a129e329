# SPDX-License-Identifier: Apache-2.0
"""The library of delays, loaded: items begin, pass points and end on a thread."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nndeploy.errors import UnavailableError
from nndeploy.files.shared_object import exported_version
from nndeploy.pacing.run.item import LIBRARY_VERSION, ItemMemory

_HINT = "install nndeploy-toolchain again: a file of it is of another version"


class PaceLibrary:
    """The functions of the library of delays, which is installed: a bundle brings none.

    It is the `Pacer` that sessions are given.
    """

    def __init__(self, path: Path) -> None:
        """Loads it.

        Raises:
            UnavailableError: the system's loader refuses it, it lacks a function, or is of another version.
        """
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as err:
            raise UnavailableError(f"the pacing library cannot be loaded: {err}") from err
        if exported_version(library, "nnd_pace_version") != LIBRARY_VERSION:
            raise UnavailableError("the pacing library has another version", where=str(path), hint=_HINT)
        try:
            self.begin, self.end = library.nnd_pace_begin, library.nnd_pace_end
            self.slice = library.nnd_pace_slice
            self.count_from, self.point = library.nnd_pace_from, library.nnd_pace_pass
            self.stretch_begin, self.stretch_end = library.nnd_stretch_begin, library.nnd_stretch_end
            self.group_take, self.group_pay = library.nnd_group_take, library.nnd_group_pay
        except AttributeError as err:
            raise UnavailableError(f"the pacing library lacks a function: {err}", hint=_HINT) from err
        self.begin.argtypes, self.begin.restype = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64), None
        self.end.argtypes, self.end.restype = (), None
        self.count_from.argtypes, self.count_from.restype = (ctypes.c_int64,), None
        self.point.argtypes, self.point.restype = (ctypes.c_int64,), None
        self.stretch_begin.argtypes, self.stretch_begin.restype = (ctypes.c_int64, ctypes.c_int64), None
        self.stretch_end.argtypes, self.stretch_end.restype = (ctypes.c_int,), ctypes.c_int64
        self.slice.argtypes, self.slice.restype = (ctypes.c_int64,), ctypes.c_int
        self.group_take.argtypes, self.group_take.restype = (ctypes.c_void_p, *(ctypes.c_int64,) * 4), ctypes.c_int
        self.group_pay.argtypes, self.group_pay.restype = (ctypes.c_void_p, ctypes.c_int64), None
        self.path: str = str(path)
        self._thread = threading.local()

    def item(self) -> int:
        """Returns the address of the item that this thread works on, 0 where there is none."""
        return getattr(self._thread, "address", 0)

    @contextmanager
    def working(self, item: ItemMemory, budget: int) -> Iterator[None]:
        """Lets this thread work on an item, which should end `budget` nanoseconds from now."""
        self._thread.address = item.address
        self.begin(item.address, 0, budget)
        try:
            yield
        finally:
            self.end()
            self._thread.address = 0

    @contextmanager
    def timed(self, num_points: int) -> Iterator[ItemMemory]:
        """Lets this thread work on an item in which nobody sleeps."""
        item = ItemMemory(num_points, 1)
        item.order[:] = -1
        with self.working(item, 0):
            yield item

    @contextmanager
    def stretched(self, due_ns: int, work_ns: int, *, is_followed: bool = True) -> Iterator[Callable[[], int]]:
        """Work of this thread that passes no points sleeps in between, and is done at `due_ns` (CLOCK_MONOTONIC).

        It takes some `work_ns` of processor time. It sleeps also at its end where it is followed by more. Gives what
        tells, behind it, for how many nanoseconds it slept.
        """
        slept = 0
        self.stretch_begin(due_ns, work_ns)
        try:
            yield lambda: slept
        finally:
            slept = self.stretch_end(is_followed)
