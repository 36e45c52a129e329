# SPDX-License-Identifier: Apache-2.0
"""Element-wise chains, softmax, layer normalisation and reductions at any first shape, without a compiler.

A chain is a list of steps: the value begins as operand 0, each step makes a new one of it, in one pass over the data.
Operands may have any rank up to 8 and any strides; they are broadcast as in NumPy, to at most three axes that no two
neighbours of can be walked as one.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy_native.tensors import Array
from nndeploy_native.units.row_list import ALONG, KEEPS_ROWS, MOST_OPERANDS, ROW_UNITS, TWO_OPERANDS
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.table import MAX_ROWS, Table, table_from_memory

RowStep = str | tuple[str, int]
"""A unit's name; where it takes two operands, with the number of the second."""

_MOST_RANK = 8
_MOST_SHAPES = 1024
_FLOATS = np.dtype(np.float32)
_empty = np.empty
_REFUSALS = {
    1: "sizes cannot be broadcast",
    2: "more than three axes are walked differently: make one operand contiguous",
    3: "the output shares memory with an operand that is not the same array",
    4: "an address or a stride is not a multiple of 4 bytes",
    5: "no memory for a row",
    6: "the output is not contiguous along its last axis",
    7: "an operand is not of float32",
    8: "the output cannot be written",
}
_PYTHON = (ctypes.c_void_p * 6)(
    *(
        ctypes.cast(getattr(ctypes.pythonapi, f"Py{name}"), ctypes.c_void_p)
        for name in (
            "Object_GetBuffer", "Buffer_Release", "Eval_SaveThread", "Eval_RestoreThread", "Long_AsVoidPtr",
            "Long_FromLong",
        )
    )
)  # fmt: skip
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
PYTHON_ADDRESS = ctypes.addressof(_PYTHON)


class _Bound(ctypes.Structure):
    """struct nnd_bound_rows of c/units/python_call.h."""

    _fields_ = (("rows", ctypes.c_void_p), ("epsilon", ctypes.c_float))


class RowUnits:
    """A chain of element-wise steps, or one step along the last axis; threads may share it.

    RowUnits(library, ["sigmoid", ("mul", 0)])            x * sigmoid(x)
    RowUnits(library, [("add", 1), ("max", 2)])           max(x + operand 1, operand 2)
    RowUnits(library, ["layer_norm"], epsilon=1e-5)       operands x, scale, shift; the last two may be left out
    RowUnits(library, ["mean"])                           (..., N) -> (..., 1)
    """

    def __init__(self, library: UnitLibrary, steps: Sequence[RowStep], epsilon: float = 0.0) -> None:
        """Makes the tables of all first shapes.

        Raises:
            InputError: there is no such unit, or the steps do not make one pass.
        """
        pairs = [(step, 0) if isinstance(step, str) else step for step in steps]
        for step, (name, operand) in zip(steps, pairs, strict=True):
            if name not in ROW_UNITS:
                raise InputError(f"no unit {name!r}", hint=f"there are {', '.join(ROW_UNITS)}")
            if (name in TWO_OPERANDS) != isinstance(step, tuple) or not 0 <= operand < MOST_OPERANDS:
                those = ", ".join(TWO_OPERANDS)
                raise InputError(f"step {step!r}: a second operand, 0 to {MOST_OPERANDS - 1}, for {those} alone")
        names = [name for name, _ in pairs]
        if not 1 <= len(names) <= MAX_ROWS or (len(names) > 1 and any(name in ALONG for name in names)):
            raise InputError(f"steps {names}: 1 to {MAX_ROWS} element-wise ones, or one along the last axis")
        self._is_along = names[0] in ALONG
        self._keeps_rows = names[0] in KEEPS_ROWS
        least = 1 + max(operand for _, operand in pairs)
        self._num_operands = (1, 3 if names[0] == "layer_norm" else 1) if self._is_along else (least, least)
        operations = (ctypes.c_int32 * (2 * len(pairs)))(*(x for name, at in pairs for x in (ROW_UNITS[name], at)))
        self._functions = library.functions
        for function, arguments, result in (
            ("open", (ctypes.c_void_p, ctypes.c_int), ctypes.c_void_p),
            ("close", (ctypes.c_void_p,), None),
            ("table", (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int), ctypes.c_void_p),
            ("method", (ctypes.c_void_p,), ctypes.c_void_p),
        ):
            entry = getattr(self._functions, f"nnd_units_rows_{function}")
            entry.argtypes, entry.restype = arguments, result
        self._handle = self._functions.nnd_units_rows_open(operations, len(pairs))
        if not self._handle:
            raise MemoryError("no memory for tables")
        self._bound = _Bound(self._handle, epsilon)
        method = self._functions.nnd_units_rows_method(_PYTHON)
        self._call = _new_function(method, ctypes.addressof(self._bound), None)
        self._shapes: dict[Any, tuple[int, ...]] = {}

    def __del__(self) -> None:
        """Frees the tables."""
        if getattr(self, "_handle", None):
            self._functions.nnd_units_rows_close(self._handle)

    def __call__(self, *operands: Array, out: Array | None = None, table: int = 0) -> Array:
        """Returns the result, in `out` where it is given: float32, its last axis contiguous.

        `out` may be an operand itself, of the full shape. `table` is an address of `table_memory`; 0: the one of the
        first shape.

        Raises:
            InputError: number, types, sizes or strides do not fit; nothing is written.
        """
        shapes = (operands[0].shape,) if len(operands) == 1 else tuple([one.shape for one in operands])
        shape = self._shapes.get(shapes)
        if shape is None:
            shape = self._shape_of(shapes)
        if out is None:
            out = _empty(shape, _FLOATS)
        elif out.shape != shape:
            raise InputError(f"out {out.shape}: {shape} expected")
        refusal = self._call(table, out, *operands)
        if refusal:
            raise InputError(f"operands {', '.join(map(str, shapes))}: {_REFUSALS[refusal]}")
        return out

    def table_memory(self, n: int, single: bool = False, in_place: bool = False) -> int:
        """Returns the address of a bucket's table: `n` of the last axis after axes are joined.

        `single`: the output's rows are one or do not follow each other.
        """
        address: int = self._functions.nnd_units_rows_table(self._handle, n, single, in_place)
        return address

    def table(self, n: int, single: bool = False, in_place: bool = False) -> Table:
        """Returns the table of a bucket."""
        return table_from_memory(ctypes.string_at(self.table_memory(n, single, in_place), 32 + 32 * MAX_ROWS))

    def _shape_of(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        least, most = self._num_operands
        if not least <= len(shapes) <= most or max(map(len, shapes)) > _MOST_RANK:
            raise InputError(f"operands {shapes}: {least} to {most} of at most {_MOST_RANK} axes expected")
        try:
            shape: tuple[int, ...] = np.broadcast_shapes(*shapes)
        except ValueError as err:
            raise InputError(f"operands {shapes}: {_REFUSALS[1]}") from err
        if self._is_along:
            if shape != shapes[0] or not shape or (0 in shape[-1:] and 0 not in shape[:-1]):
                raise InputError(f"operands {shapes}: the first has to have the whole shape, and a last axis")
            shape = shape if self._keeps_rows else (*shape[:-1], 1)
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        self._shapes[shapes] = shape
        return shape
