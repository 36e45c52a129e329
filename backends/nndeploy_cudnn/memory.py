# SPDX-License-Identifier: Apache-2.0
"""The state of an emission: which buffers there are, and where each value lies.

Values between operations are dense, in the order in which cuDNN wants them: channels last for halves, whose tensor-core
kernels need it (cuDNN would convert in its workspace, twice for each convolution), row-major for float32, whose kernels
are for that. Law: a view never changes once it is given.
"""

import hashlib
from collections.abc import KeysView, Sequence

import numpy as np

from nndeploy_cudnn.buffers import Buffer, Places, num_bytes
from nndeploy_cudnn.operations import Array, Join, Value
from nndeploy_cudnn.patterns.translation import in_dtype
from nndeploy_cudnn.views import (
    Dims,
    View,
    channels_last_order,
    memory_order,
    reshaped,
    row_major,
    sliced,
    strides_in_order,
)


class Memory:
    """Buffers, constants and views; `inputs` are the submodel's inputs, dense and row-major."""

    def __init__(self, inputs: Sequence[Value], outputs: Sequence[Value], places: Places) -> None:
        self.buffers: list[Buffer] = []
        self.constants: dict[int, Array] = {}
        self._places = places
        self._views: dict[Value, View] = {}
        self._joined: dict[Value, View] = {}
        self._constants_known: dict[tuple[Value, tuple[int, ...]], View] = {}
        self._buffers_known: dict[tuple[str, bytes], int] = {}
        self._ones: dict[tuple[Dims, str], Value] = {}
        for index, value in enumerate(inputs):
            self._views[value] = self._new("input", value.dims, value.dtype, row_major(value.dims), index)
        self._outputs = [
            self._new("output", value.dims, value.dtype, row_major(value.dims), index)
            for index, value in enumerate(outputs)
        ]

    @property
    def ready(self) -> KeysView[Value]:
        """The values that are written, constants left out."""
        return self._views.keys()

    def view_of(self, value: Value) -> View:
        """Returns where a value lies; a constant is put down row-major when it is first asked for."""
        if value not in self._views and value.constant is not None:
            return self.constant_in(value, tuple(range(len(value.dims))))
        return self._views[value]

    def constant_in(self, value: Value, order: Sequence[int]) -> View:
        """Returns a constant, dense in the given order of axes."""
        key = (value, tuple(order))
        if key not in self._constants_known:
            assert value.constant is not None
            laid_out = np.ascontiguousarray(np.transpose(in_dtype(value.constant, value.dtype), tuple(order)))
            buffer = self._constant_buffer(laid_out, value.dtype)
            strides = strides_in_order(value.dims, order)
            self._constants_known[key] = View(buffer, 0, value.dims, strides, value.dtype)
        return self._constants_known[key]

    def _constant_buffer(self, laid_out: Array, dtype: str) -> int:
        """Returns the number of a buffer with these elements; equal ones share it."""
        content = (dtype, hashlib.sha256(laid_out.tobytes()).digest())
        if content not in self._buffers_known:
            view = self._new("constant", laid_out.shape, dtype, row_major(laid_out.shape))
            self.constants[view.buffer] = laid_out
            self._buffers_known[content] = view.buffer
        return self._buffers_known[content]

    def ones(self, dims: Dims, dtype: str) -> View:
        """Returns a constant of ones."""
        if (dims, dtype) not in self._ones:
            self._ones[dims, dtype] = Value("ones", dims, dtype, np.ones(dims))
        return self.constant_in(self._ones[dims, dtype], range(len(dims)))

    def know(self, value: Value, view: View) -> None:
        """Remembers where a value lies that is written now."""
        self._views[value] = view

    def fixed_place(self, value: Value) -> View | None:
        """Returns where a value must be written because its reader is known: an output or a joined value."""
        if (index := self._places.homes.get(value)) is not None:
            found = reshaped(self._outputs[index], value.dims)
            assert found is not None
            return found
        slot = self._places.slots.get(value)
        if slot is None:
            return None
        joined = self.joined(slot.join)
        return sliced(joined, slot.join.axis, slot.start, value.dims[slot.join.axis])

    def joined(self, join: Join) -> View:
        """Returns where a joined value lies; it gets its place when the first of its parts is made."""
        if join.y not in self._joined:
            self._joined[join.y] = self.place(join.y)
        return self._joined[join.y]

    def place(self, value: Value, order: Sequence[int] | None = None) -> View:
        """Returns where a value will be written: its fixed place, or new memory in the given or the usual order."""
        fixed = self.fixed_place(value)
        if fixed is not None:
            return fixed
        return self.temporary(value.dims, value.dtype, usual_order(value.dims, value.dtype) if order is None else order)

    def temporary(self, dims: Dims, dtype: str, order: Sequence[int]) -> View:
        """Returns new memory of the arena, dense in the given order of axes."""
        return self._new("arena", dims, dtype, strides_in_order(dims, order))

    def output(self, index: int) -> View:
        """Returns where the caller looks for an output."""
        return self._outputs[index]

    def _new(self, kind: str, dims: Dims, dtype: str, strides: Dims, index: int = 0) -> View:
        assert kind in ("input", "output", "constant", "arena")
        self.buffers.append(Buffer(kind, num_bytes(dims, dtype), index))  # type: ignore[arg-type]
        return View(len(self.buffers) - 1, 0, dims, strides, dtype)


def usual_order(dims: Dims, dtype: str) -> tuple[int, ...]:
    """Returns the order of axes in which cuDNN's best kernels for the type want images."""
    is_image = 3 <= len(dims) <= 5
    return channels_last_order(len(dims)) if is_image and dtype != "float32" else tuple(range(len(dims)))


def is_channels_last(view: View) -> bool:
    """Returns whether channels are the fastest axis of an image; where sizes leave it open, the usual order counts."""
    rank = len(view.dims)
    if view.dims[1] == 1 or all(size == 1 for size in view.dims[2:]):
        return usual_order(view.dims, view.dtype) != tuple(range(rank))
    return memory_order(view.dims, view.strides)[-1] == 1 or view.strides[1] == 1
