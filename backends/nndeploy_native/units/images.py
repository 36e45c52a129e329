# SPDX-License-Identifier: Apache-2.0
"""Convolution, fused separable pairs and pooling at any first shape (N, H, W), without a compiler.

Channels, kernel, strides, dilations and pads are known when an operator is opened; its weights are packed then. Inputs
are float32 (N, C, H, W) at any strides; the planes of an output are runs of floats.
"""

import ctypes
import threading
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy_native.tensors import Array
from nndeploy_native.units.rows import PYTHON_ADDRESS
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.table import MAX_ROWS, Table, table_from_memory
from nndeploy_native.units.unit_list import ACTIVATIONS

_CONVOLUTION, _DEPTHWISE, _SEPARABLE, _MAX, _MEAN = range(5)
_MOST_SIZE, _MOST_AXIS, _MOST_SHAPES = 1 << 20, 255, 1024
_FLOATS = np.dtype(np.float32)
_TWO = Struct("2P")
_REFUSALS = {
    4: "an address or a stride is not a multiple of 4 bytes",
    7: "an array is not of float32",
    8: "the output cannot be written",
    16: "the input's channels or sizes do not fit",
    17: "the output's sizes do not fit",
    18: "the rows of the output's planes do not follow each other",
    19: "the output shares memory with the input",
}
_TableMemory = ctypes.c_char * (32 + 32 * MAX_ROWS)
_size = ctypes.c_ssize_t


class _Form(ctypes.Structure):
    _fields_ = (
        ("channels", _size), ("out_channels", _size), ("groups", _size), ("kernel", _size * 2), ("stride", _size * 2),
        ("dilation", _size * 2), ("pad", _size * 4), ("activation", ctypes.c_int),
    )  # fmt: skip


class _Point(ctypes.Structure):
    _fields_ = (
        ("out_channels", _size), ("weights", ctypes.c_void_p), ("bias", ctypes.c_void_p), ("activation", ctypes.c_int),
    )  # fmt: skip


class _Scratch(threading.local):
    """Memory of a thread, which all operators share: none is at work while another one is."""

    def __init__(self) -> None:
        self.floats: Array = np.empty(0, np.float32)
        self.address = 0

    def grow(self, floats: int) -> None:
        raw = np.empty(floats + 16, np.float32)
        self.floats = raw[-(raw.ctypes.data // 4) % 16 :]
        self.address = self.floats.ctypes.data


_scratch = _Scratch()


class ImageUnits:
    """What the operators share: opened with a form, called with an array. Threads may share an operator."""

    _handle: Any = None

    def _open(
        self, library: UnitLibrary, kind: int, form: _Form, weights: Array | None, bias: Array | None,
        point: _Point | None = None, *, counts_padding: bool = False,
    ) -> None:  # fmt: skip
        functions, pointer = library.functions, ctypes.c_void_p
        functions.nnd_units_images_open.restype = pointer
        functions.nnd_units_images_open.argtypes = (
            ctypes.c_int, pointer, pointer, pointer, pointer, ctypes.c_int, pointer,
        )  # fmt: skip
        functions.nnd_units_images_close.argtypes = (pointer,)
        functions.nnd_units_images_close.restype = None
        functions.nnd_units_images_table.argtypes = (pointer, _size, _size, *(ctypes.c_int,) * 3, pointer)
        functions.nnd_units_images_table.restype = None
        entry = ctypes.PYFUNCTYPE(_size, pointer, pointer, pointer, ctypes.c_char_p, pointer, _size)
        self._call = entry(ctypes.cast(functions.nnd_units_images_call, pointer).value or 0)
        self._functions, self._form, self._shapes = functions, form, dict[Any, tuple[int, ...]]()
        self.out_channels: int = point.out_channels if point else form.out_channels
        self._handle = functions.nnd_units_images_open(
            kind, ctypes.byref(form), _address(weights), _address(bias), ctypes.byref(point) if point else None,
            counts_padding, library.image_costs,
        )  # fmt: skip
        if not self._handle:
            raise MemoryError("no memory for an operator's weights")

    def __del__(self) -> None:
        """Frees weights and tables."""
        if self._handle:
            self._functions.nnd_units_images_close(self._handle)

    def __call__(self, x: Array, out: Array | None = None) -> Array:
        """Returns the result for x (N, C, H, W), in `out` where it is given: float32, its planes runs of floats.

        Raises:
            InputError: sizes, types or strides do not fit; nothing is written.
        """
        return self.run(None, x, out)

    def run(self, table: Any, x: Array, out: Array | None = None) -> Array:
        """Runs by a table of `table_memory` for each image or window, None: those of the first shape."""
        shape = self._shapes.get(x.shape)
        if shape is None:
            shape = self._out_shape(x.shape)
        if out is None:
            out = np.empty(shape, _FLOATS)
        objects = _TWO.pack(id(out), id(x))
        result = self._call(self._handle, table, PYTHON_ADDRESS, objects, _scratch.address, _scratch.floats.size)
        if result > 0:
            _scratch.grow(result)
            result = self._call(self._handle, table, PYTHON_ADDRESS, objects, _scratch.address, _scratch.floats.size)
        if result < 0:
            raise InputError(f"x {x.shape} to {out.shape}, {shape} expected: {_REFUSALS[-result]}")
        return out

    def table_memory(
        self, length: int, rows: int = 1, *, columns: bool = False, in_place: bool = False, quick: bool = False
    ) -> Any:
        """Returns a table's bytes; `length`: vectors of positions of an image or a window, rows of a window.

        `rows`: of a separable pair's window; `columns`: `length` is the pixels of a row, of a pair's window;
        `in_place`: of a convolution that packs nothing.
        """
        memory = _TableMemory()
        self._functions.nnd_units_images_table(self._handle, length, rows, columns, in_place, quick, memory)
        return memory

    def table(
        self, length: int, rows: int = 1, *, columns: bool = False, in_place: bool = False, quick: bool = False
    ) -> Table:
        """Returns the table of `table_memory`."""
        return table_from_memory(
            bytes(self.table_memory(length, rows, columns=columns, in_place=in_place, quick=quick))
        )

    def _out_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        form = self._form
        if len(shape) != 4 or shape[1] != form.channels or max(shape) > _MOST_SIZE:
            raise InputError(f"x {shape}: (N, {form.channels}, H, W) expected, sizes up to {_MOST_SIZE}")
        sizes = []
        for axis in (0, 1):
            reach = (form.kernel[axis] - 1) * form.dilation[axis] + 1
            over = shape[2 + axis] + form.pad[axis] + form.pad[axis + 2] - reach
            if over < 0 or not shape[2 + axis]:
                raise InputError(f"x {shape}: a window of {reach} does not fit into axis {2 + axis} with its pads")
            sizes.append(over // form.stride[axis] + 1)
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        found = self._shapes[shape] = (shape[0], self.out_channels, *sizes)
        return found


class Convolution(ImageUnits):
    """activation(convolution(x) + bias) by weights (O, C / groups, kernel rows, kernel columns)."""

    def __init__(
        self,
        library: UnitLibrary,
        weights: Array,
        bias: Array | None = None,
        *,
        strides: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilations: Sequence[int] = (1, 1),
        groups: int = 1,
        activation: str = "none",
    ) -> None:
        """Packs the weights. Strides, dilations and pads (y, x before; y, x behind) are those of ONNX's Conv.

        Raises:
            InputError: what is given does not fit together.
        """
        weights = _constant(weights, 4, "weights")
        out_channels, depth = weights.shape[:2]
        if groups < 1 or out_channels % groups:
            raise InputError(f"{groups} groups of {out_channels} output channels")
        bias = _bias(bias, out_channels)
        form = _form(depth * groups, out_channels, groups, weights.shape[2:], strides, pads, dilations, activation)
        kind = _DEPTHWISE if depth == 1 and groups == out_channels else _CONVOLUTION
        self._open(library, kind, form, weights, bias)


class Separable(ImageUnits):
    """A depthwise convolution by weights (C, 1, kernel rows, kernel columns), then a pointwise one by (O, C)."""

    def __init__(
        self,
        library: UnitLibrary,
        weights: Array,
        bias: Array | None,
        point_weights: Array,
        point_bias: Array | None = None,
        *,
        strides: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilations: Sequence[int] = (1, 1),
        activation: str = "none",
        point_activation: str = "none",
    ) -> None:
        """Packs both weights; `activation` is that of the depthwise part. What it returns lies in no memory but `out`.

        Raises:
            InputError: what is given does not fit together.
        """
        weights, point_weights = _constant(weights, 4, "weights"), _constant(point_weights, 2, "point_weights")
        channels, out_channels = weights.shape[0], point_weights.shape[0]
        if weights.shape[1] != 1 or point_weights.shape[1] != channels:
            raise InputError(f"weights {weights.shape}, then {point_weights.shape}: (C, 1, rows, columns), (O, C)")
        bias, point_bias = _bias(bias, channels), _bias(point_bias, out_channels)
        form = _form(channels, channels, channels, weights.shape[2:], strides, pads, dilations, activation)
        point = _Point(out_channels, _address(point_weights), _address(point_bias), _activation(point_activation))
        self._open(library, _SEPARABLE, form, weights, bias, point)


class Pooling(ImageUnits):
    """The largest ("max") or the mean ("mean") of each window of each channel."""

    def __init__(
        self,
        library: UnitLibrary,
        how: str,
        channels: int,
        kernel: Sequence[int],
        *,
        strides: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilations: Sequence[int] = (1, 1),
        counts_padding: bool = False,
    ) -> None:
        """Makes the operator; `counts_padding` is `count_include_pad` of ONNX's AveragePool.

        Raises:
            InputError: what is given does not fit together, or a window may lie in the padding alone.
        """
        if how not in ("max", "mean"):
            raise InputError(f"pooling {how!r}: max or mean")
        form = _form(channels, channels, channels, kernel, strides, pads, dilations, "none")
        if any(form.pad[i] > (form.kernel[i % 2] - 1) * form.dilation[i % 2] for i in range(4)):
            raise InputError(f"pads {tuple(pads)} of a window {tuple(kernel)}: smaller ones expected")
        self._open(library, _MAX if how == "max" else _MEAN, form, None, None, counts_padding=counts_padding)


def _form(
    channels: int, out_channels: int, groups: int, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], activation: str,
) -> _Form:  # fmt: skip
    """Returns the form in C.

    Raises:
        InputError: a number is out of its range.
    """
    for name, values, count, least in (
        ("kernel", kernel, 2, 1), ("strides", strides, 2, 1), ("dilations", dilations, 2, 1), ("pads", pads, 4, 0),
    ):  # fmt: skip
        if len(values) != count or not all(least <= value <= _MOST_AXIS for value in values):
            raise InputError(f"{name} {tuple(values)}: {count} numbers from {least} to {_MOST_AXIS} expected")
    if not 1 <= channels <= _MOST_SIZE or not 1 <= out_channels <= _MOST_SIZE:
        raise InputError(f"{channels} channels to {out_channels}: 1 to {_MOST_SIZE} expected")
    return _Form(
        channels, out_channels, groups, (_size * 2)(*kernel), (_size * 2)(*strides), (_size * 2)(*dilations),
        (_size * 4)(*pads), _activation(activation),
    )  # fmt: skip


def _activation(name: str) -> int:
    if name not in ACTIVATIONS:
        raise InputError(f"no activation {name!r}", hint=f"there are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS.index(name)


def _constant(array: Array, rank: int, what: str) -> Array:
    if array.ndim != rank or array.dtype != np.float32 or 0 in array.shape:
        raise InputError(f"{what} {array.shape} of {array.dtype}: float32 of {rank} axes expected")
    return np.ascontiguousarray(array)


def _bias(bias: Array | None, channels: int) -> Array | None:
    if bias is None:
        return None
    bias = _constant(bias, 1, "bias")
    if bias.shape != (channels,):
        raise InputError(f"bias {bias.shape}: {(channels,)} expected")
    return bias


def _address(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data
