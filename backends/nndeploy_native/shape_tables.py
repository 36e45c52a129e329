# SPDX-License-Identifier: Apache-2.0
"""Shapes of the inputs of a call -> the table of sizes that the kernels read, made by the library's nnd_compose.

A table is made in a microsecond or so, without a compiler, and kept for later calls with the same shapes. Before it is
made every symbol is checked against its range, and after that every input's shape against the table: whatever comes,
the kernels read and write only what the shapes say.
"""

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import BundleError, InputError, OtherSizesError
from nndeploy.values.solving import check_shapes
from nndeploy_native.plan import LIBRARY_FILE, MAX_BYTES, NativePlan, Shapes

MAX_KEPT = 1024
"""Tables of a session; each is a few hundred bytes to some kilobytes."""

_Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTable:
    """What one set of input shapes comes to; `sizes` is None where all shapes are fixed."""

    outputs: _Shapes
    arena_bytes: int
    scratch_bytes: int
    sizes: Any = None


class ShapeTables:
    """The tables of one session. Threads may ask at once: two may make the same table, one of which is kept."""

    def __init__(self, plan: NativePlan, library: ctypes.CDLL) -> None:
        """Finds nnd_compose where shapes are not fixed.

        Raises:
            BundleError: the library lacks it, or shapes are said to be fixed that are not.
        """
        self._plan = plan
        self._names = [border.name for border in plan.inputs]
        self._kept: dict[_Shapes, ShapeTable] = {}
        self._lock = threading.Lock()
        self._fixed: ShapeTable | None = None
        if plan.shapes is None:
            outputs = tuple(border.sizes(()) for border in plan.outputs)
            self._fixed = ShapeTable(outputs, plan.arena_bytes, plan.scratch_bytes)
            return
        try:
            self._compose = library.nnd_compose
        except AttributeError as err:
            raise BundleError(f"{LIBRARY_FILE} lacks a function: {err}") from err
        self._compose.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_ssize_t)
        self._compose.restype = ctypes.c_int

    def table_for(self, shapes: _Shapes) -> ShapeTable:
        """Returns the table of the shapes of the inputs, which have the plan's ranks.

        Raises:
            OtherSizesError: a shape is none that the kernels were made for.
        """
        if self._fixed is not None:
            return self._fixed
        found = self._kept.get(shapes)
        if found is None:
            assert self._plan.shapes is not None
            try:
                found = self._made(shapes, self._plan.shapes)
            except InputError as err:
                raise OtherSizesError(err.what, where=err.where, hint=err.hint) from err
            with self._lock:
                while len(self._kept) >= MAX_KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[shapes] = found
        return found

    def _made(self, shapes: _Shapes, how: Shapes) -> ShapeTable:
        values = [one.value(self._names, shapes) for one in how.symbols]
        symbols = (ctypes.c_ssize_t * len(values))(*values)
        sizes = (ctypes.c_ssize_t * how.num_entries)()
        if not self._compose(symbols, len(symbols), sizes, len(sizes)):
            raise BundleError(f"{LIBRARY_FILE} has another table than the plan says")
        entries = list(sizes)
        check_shapes(self._names, shapes, [border.sizes(entries) for border in self._plan.inputs])
        table = ShapeTable(
            tuple(border.sizes(entries) for border in self._plan.outputs),
            sizes[how.arena_entry],
            sizes[how.scratch_entry],
            sizes,
        )
        if not (0 <= table.arena_bytes <= MAX_BYTES and 0 <= table.scratch_bytes <= MAX_BYTES):
            raise BundleError(f"{LIBRARY_FILE} asks for {table.arena_bytes} and {table.scratch_bytes} bytes")
        return table
