# SPDX-License-Identifier: Apache-2.0
"""The run half of units: a library of units is loaded, and products run at any first shape.

`UnitLibrary` is one library with the costs that its tables are composed by; `Product` is a matrix product whose K and N
are constant, or whose three dimensions are all known only when it is called. Structures repeat c/units/*.h.
"""

import ctypes
import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy.files.shared_object import library_from_bytes
from nndeploy.target.target import host_target
from nndeploy_native.tensors import Array
from nndeploy_native.units.cost_cache import CostCache, costs_key
from nndeploy_native.units.form import Form
from nndeploy_native.units.table import MAX_ROWS, Table, table_from_memory
from nndeploy_native.units.unit_list import ACTIVATIONS, NAMES

_MOST_ROWS = 14
_BIAS_PAD = 64
_MOST = 2**31 - 1


class _Bound(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("stride", ctypes.c_ssize_t * 2))


class Matmul(ctypes.Structure):
    """struct nnd_matmul: a product's memory."""

    _fields_ = (
        ("x", _Bound), ("weights", _Bound), ("y", _Bound), ("packed", ctypes.c_void_p), ("bias", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
    )  # fmt: skip


class _Form(ctypes.Structure):
    _fields_ = (
        ("n", ctypes.c_ssize_t), ("k", ctypes.c_ssize_t), ("activation", ctypes.c_int),
        ("in_is_strided", ctypes.c_int), ("weights_are_packed", ctypes.c_int), ("weights_are_strided", ctypes.c_int),
    )  # fmt: skip


_TableMemory = ctypes.c_char * (32 + 32 * MAX_ROWS)
_Costs = ctypes.c_float * (2 * (max(NAMES) + 1) * (_MOST_ROWS + 1))
_ImageCosts = ctypes.c_float * (10 * (_MOST_ROWS + 1))


class UnitLibrary:
    """A loaded library of units."""

    def __init__(self, data: bytes) -> None:
        """Loads the library.

        Raises:
            UnavailableError: the system's loader refuses it.
        """
        self.functions: Any = library_from_bytes(data)
        self._digest = hashlib.sha256(data).digest()
        size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
        for name, arguments, result in (
            ("pack", (pointer, size, size, pointer), size),
            ("default_costs", (pointer,), None),
            ("measure_costs", (pointer,), ctypes.c_int),
            ("open", (pointer, pointer), pointer),
            ("close", (pointer,), None),
            ("table", (pointer, size, size, size, pointer), None),
            ("quick", (pointer, size, pointer), None),
            ("run", (pointer, pointer, size, size), size),
            ("call", (pointer, pointer, size, size, size, size), size),
        ):
            function = getattr(self.functions, f"nnd_units_{name}")
            function.argtypes, function.restype = arguments, result
        self.costs = _Costs()
        self.functions.nnd_units_default_costs(self.costs)
        self.image_costs = _ImageCosts()
        for kind in ("default", "measure"):
            function = getattr(self.functions, f"nnd_units_{kind}_image_costs")
            function.argtypes, function.restype = (pointer,), None
        self.functions.nnd_units_default_image_costs(self.image_costs)

    def measure_costs(self, folder: Path | None = None) -> bool:
        """Measures units on this machine, about ten milliseconds; products opened later are composed by it.

        Where a cache's `folder` is given, the costs are taken from it if they are there, else kept in it. Returns
        whether they were measured.
        """
        num_costs = len(self.costs)
        cache = folder and CostCache(folder, costs_key(self._digest, host_target()), num_costs + len(self.image_costs))
        if cache and (kept := cache.load()):
            self.costs[:], self.image_costs[:] = list(kept[:num_costs]), list(kept[num_costs:])
            return False
        self.functions.nnd_units_measure_costs(self.costs)
        self.functions.nnd_units_measure_image_costs(self.image_costs)
        if cache:
            cache.store([*self.costs, *self.image_costs])
        return True


class Product:
    """y = activation(x @ weights + bias) for x (M, K) of any M; threads may share it."""

    def __init__(
        self, library: UnitLibrary, form: Form, weights: Array | None = None, bias: Array | None = None
    ) -> None:
        """Packs constant `weights` (K, N) and opens the product's cache of tables.

        Raises:
            InputError: weights and bias do not fit the form.
        """
        self._library, self.form = library, form
        self._packed, self._bias = None, None
        if weights is not None:
            if weights.shape != (form.k, form.n) or weights.dtype != np.float32 or 0 in weights.shape:
                raise InputError(f"weights {weights.shape} of {weights.dtype}, float32 {(form.k, form.n)} expected")
            self._packed = self._pack(weights)
        if bias is not None:
            if bias.shape != (form.n,):
                raise InputError(f"bias {bias.shape}, {(form.n,)} expected")
            self._bias = np.zeros(form.n + _BIAS_PAD, np.float32)
            self._bias[: form.n] = bias
        self.handle = library.functions.nnd_units_open(ctypes.byref(self._c_form(form.n, form.k)), library.costs)
        if not self.handle:
            raise MemoryError("no memory for a product's tables")
        self._local = threading.local()

    def __del__(self) -> None:
        """Frees the cache."""
        if getattr(self, "handle", None):
            self._library.functions.nnd_units_close(self.handle)

    def __call__(self, x: Array, weights: Array | None = None, out: Array | None = None, *, table: Any = None) -> Array:
        """Returns x @ weights, into `out` where it is given: (M, N), its columns side by side.

        `table` is one of `table_memory` or `quick_memory`; None: the product's own for this shape.

        Raises:
            InputError: sizes, types or strides do not fit.
        """
        k, n = self._checked(x, weights)
        m = x.shape[0]
        if out is None:
            out = np.empty((m, n), np.float32)
        elif out.shape != (m, n) or out.dtype != np.float32 or (n > 1 and out.strides[1] != 4):
            raise InputError(
                f"out {out.shape} of {out.dtype}, strides {out.strides}; float32 {(m, n)} in rows expected"
            )
        if m == 0:
            return out
        op = self.operation(x, weights, out)
        functions, at = self._library.functions, ctypes.byref(op)
        scratch = self._scratch(0)
        while True:
            op.scratch = scratch.ctypes.data
            if table is None:
                needed = functions.nnd_units_call(self.handle, at, m, n, k, scratch.size)
            else:
                needed = functions.nnd_units_run(at, table, m, scratch.size)
            if not needed:
                return out
            scratch = self._scratch(needed)

    def operation(self, x: Array, weights: Array | None, out: Array) -> Matmul:
        """Returns the C structure of a call; it keeps none of the arrays."""
        return Matmul(
            _bound(x), _bound(weights) if self._packed is None and weights is not None else _Bound(), _bound(out),
            self._packed.ctypes.data if self._packed is not None else None,
            self._bias.ctypes.data if self._bias is not None else None,
        )  # fmt: skip

    def table_memory(self, m: int, n: int, k: int) -> Any:
        """Returns the bytes of the optimal table of a first shape, from the cache where it is there."""
        memory = _TableMemory()
        self._library.functions.nnd_units_table(self.handle, m, n, k, memory)
        return memory

    def quick_memory(self, m: int, n: int, k: int) -> Any:
        """Returns the bytes of the quick table of a first shape."""
        memory = _TableMemory()
        self._library.functions.nnd_units_quick(ctypes.byref(self._c_form(n, k)), m, memory)
        return memory

    def table(self, m: int, n: int = 0, k: int = 0) -> Table:
        """Returns the optimal table of a first shape."""
        return table_from_memory(bytes(self.table_memory(m, n or self.form.n, k or self.form.k)))

    def _checked(self, x: Array, weights: Array | None) -> tuple[int, int]:
        """Returns (K, N)."""
        if self._packed is not None:
            shape = (self.form.k, self.form.n)
        elif weights is None or weights.ndim != 2 or weights.dtype != np.float32:
            raise InputError("a product without constant weights needs float32 weights (K, N)")
        else:
            shape = weights.shape
            if not _fits(weights, strided=self.form.weights_are_strided):
                raise InputError(f"strides {weights.strides} of the weights do not fit the product's form")
        fits = x.ndim == 2 and x.dtype == np.float32 and x.shape[1] == shape[0]
        if not fits or 0 in shape or max(*x.shape, *shape) > _MOST:
            raise InputError(f"x {x.shape} of {x.dtype} by weights {shape}: float32 (M, {shape[0]}) expected")
        if not _fits(x, strided=self.form.input_is_strided):
            raise InputError(f"strides {x.strides} of x do not fit the product's form")
        return shape

    def _c_form(self, n: int, k: int) -> _Form:
        form = self.form
        return _Form(
            n, k, ACTIVATIONS.index(form.activation), form.input_is_strided, self._packed is not None,
            form.weights_are_strided,
        )  # fmt: skip

    def _pack(self, weights: Array) -> Array:
        bound, pack = _bound(weights), self._library.functions.nnd_units_pack
        packed = _aligned(pack(ctypes.byref(bound), *weights.shape, None))
        pack(ctypes.byref(bound), *weights.shape, packed.ctypes.data)
        return packed

    def _scratch(self, floats: int) -> Array:
        """Returns memory of this thread, at least so much."""
        memory: Array | None = getattr(self._local, "scratch", None)
        if memory is None or memory.size < floats:
            memory = self._local.scratch = _aligned(floats)
        return memory


def _fits(matrix: Array, *, strided: bool) -> bool:
    """Returns whether whole floats lie apart, and side by side along the last axis where it is not `strided`."""
    side_by_side = matrix.shape[1] <= 1 or matrix.strides[1] == matrix.itemsize
    whole = matrix.flags.aligned and not any(stride % matrix.itemsize for stride in matrix.strides)
    return matrix.size == 0 or (whole and (strided or side_by_side))


def _bound(matrix: Array) -> _Bound:
    return _Bound(matrix.ctypes.data, (ctypes.c_ssize_t * 2)(*(stride // 4 for stride in matrix.strides)))


def _aligned(floats: int) -> Array:
    """Returns so many floats that begin at a cache line."""
    raw = np.empty(floats + 16, np.float32)
    start = -(raw.ctypes.data // 4) % 16
    return raw[start : start + floats]
