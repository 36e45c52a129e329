# SPDX-License-Identifier: Apache-2.0
"""Checks the values of a call against the inputs of a program, before anything is computed.

In: {name: value} as a caller gives it. Out: the same values as sessions may take them: arrays of the declared dtype,
native byte order, aligned and C-contiguous (but for those that sessions take with any strides), converted only where
nothing is lost. The checks are put together once, when the program is loaded; a value that is already right costs one
attribute comparison or two.

Law: what passes has the declared names, dtypes, ranks, static sizes and sizes inside the declared ranges and on
their steps, and a symbolic size is the same wherever it stands.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import InputError, did_you_mean
from nndeploy.runtime.plain_data import tensor_from_plain, value_from_plain
from nndeploy.values.types import (
    DimRange,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    dtype_name,
    numpy_dtype,
)

Sizes: TypeAlias = dict[str, tuple[int, str]]
"""A symbolic size -> the size in this call, and the input that said so."""

Check: TypeAlias = Callable[[Value, Sizes], Value]

_Array: TypeAlias = np.ndarray[Any, Any]

_OBJECT = np.dtype(object)
_ONLY_TEXT = {str}


class InputChecks:
    """The checks of all inputs of a program."""

    def __init__(
        self, inputs: Sequence[NamedType], ranges: Mapping[str, DimRange], strided: Collection[str] = ()
    ) -> None:
        """`strided` are tensors that may lie in memory with any strides."""
        self._types = {item.name: item.type for item in inputs}
        self._strided = frozenset(item.name for item in inputs if item.name in strided and _is_tensor(item.type))
        self._checks = [
            (item.name, check_of(item.type, f"input {item.name!r}", ranges, is_strided=item.name in self._strided))
            for item in inputs
        ]
        self._has_only_tensors = all(isinstance(check, _TensorCheck) for _, check in self._checks)
        self._passed: tuple[tuple[str, Any, tuple[int, ...], _StringCheck | None], ...] | None = None

    def __call__(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the checked values of one call, in a dict of its own.

        Arrays like those of the call before, which most are, are only compared with those.

        Raises:
            InputError: a name is unknown or missing, or a value does not fit; nothing was computed.
        """
        passed = self._passed
        if passed is None or len(inputs) != len(passed):
            return self._checked(inputs)
        found: dict[str, Value] = {}
        for name, dtype, shape, text in passed:
            value = inputs.get(name)
            if type(value) is not np.ndarray or value.shape != shape:
                break
            if text is not None:  # looked at each time: an array of objects may hold anything
                is_text = value.dtype is _OBJECT and value.flags.carray and _holds_only_text(value)
                found[name] = value if is_text else text.as_text(value)
                continue
            flags = value.flags  # the first question is all three of the second, of an array that may be written
            is_plain = flags.carray or (flags.aligned and (flags.c_contiguous or name in self._strided))
            if value.dtype is not dtype or not is_plain:
                break
            found[name] = value
        else:
            return found
        return self._checked(inputs)

    def _remember(self, inputs: Mapping[str, Value], checked: Mapping[str, Value]) -> None:
        """Keeps the types and shapes of a call whose numbers came as sessions take them."""
        passed = []
        for name, check in self._checks:
            text = check if isinstance(check, _StringCheck) else None
            if text is None and checked[name] is not inputs.get(name):
                return
            passed.append((name, checked[name].dtype, checked[name].shape, text))
        self._passed = tuple(passed)

    def _checked(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        sizes: Sizes = {}
        checked: dict[str, Value] = {}
        for name, check in self._checks:
            try:
                value = inputs[name]
            except KeyError:
                value = self._absent(name, inputs)
            checked[name] = check(value, sizes)
        if len(inputs) > len(checked):
            self._refuse_unknown(inputs)
        if self._has_only_tensors:
            self._remember(inputs, checked)
        return checked

    def _absent(self, name: str, inputs: Mapping[str, Value]) -> Value:
        self._refuse_unknown(inputs)
        if isinstance(self._types[name], OptionalType):
            return None
        raise InputError(f"input {name!r} is missing", hint=f"the program needs {name!r}: {self._types[name]}")

    def _refuse_unknown(self, inputs: Mapping[str, Value]) -> None:
        for name in inputs:
            if name not in self._types:
                raise InputError(f"no input is named {name!r}", hint=did_you_mean(str(name), self._types))


def check_of(value_type: ValueType, label: str, ranges: Mapping[str, DimRange], *, is_strided: bool = False) -> Check:
    """Returns the check for one value; `label` names it in messages."""
    match value_type:
        case TensorType("string", _):
            return _StringCheck(value_type, label, ranges)
        case TensorType():
            return _TensorCheck(value_type, label, ranges, is_strided=is_strided)
        case OptionalType(element):
            return _optional_check(check_of(element, label, ranges))
        case SequenceType(element):
            return _sequence_check(element, label, ranges)
        case MapType():
            return _map_check(value_type, label)


class _TensorCheck:
    def __init__(
        self, tensor: TensorType, label: str, ranges: Mapping[str, DimRange], *, is_strided: bool = False
    ) -> None:
        self._is_strided = is_strided
        self._type = tensor
        self._label = label
        self._dtype = numpy_dtype(tensor.dtype)
        self._shape = tensor.shape
        self._ranges = ranges

    def __call__(self, value: Value, sizes: Sizes) -> Value:
        if type(value) is not np.ndarray or value.dtype != self._dtype or not self._is_plain(value):
            value = self._as_array(value)
        if value.shape != self._shape and self._shape is not None:
            self._check_shape(value.shape, sizes)
        return value

    def _as_array(self, value: Value) -> _Array:
        if isinstance(value, list | tuple | bool | int | float | complex | str) and not isinstance(value, np.generic):
            return self._from_plain(value)
        array = _as_numpy(value, self._label)
        if array.dtype.newbyteorder("=") != self._dtype:
            self._refuse_dtype(array)
        return np.require(array, self._dtype, ["A"] if self._is_strided else ["C", "A"])

    def _is_plain(self, array: _Array) -> bool:
        return _is_plain_memory(array) or (self._is_strided and array.flags.aligned)

    def _from_plain(self, value: Value) -> _Array:
        array = _as_numpy(value, self._label)  # rows may be arrays already
        if array.dtype == self._dtype and self._dtype.kind not in "OV":
            return array
        return tensor_from_plain(_as_lists(value), self._type.dtype, self._label)

    def _refuse_dtype(self, array: _Array) -> None:
        got, want = _dtype_text(array), self._type.dtype
        raise InputError(f"{self._label} must be {want}, got {got}", hint=f"convert it to {want}")

    def _check_shape(self, shape: tuple[int, ...], sizes: Sizes) -> None:
        want = self._shape or ()
        if len(shape) != len(want):
            raise InputError(f"{self._label} must have rank {len(want)} ({self._type}), got {_text(shape)}")
        for axis, (size, dim) in enumerate(zip(shape, want, strict=True)):
            if isinstance(dim, str):
                self._check_symbol(axis, size, dim, sizes)
            elif dim is not None and size != dim:
                raise InputError(
                    f"{self._label} must be {self._type}, got {_text(shape)}: axis {axis} is {size} instead of {dim}"
                )

    def _check_symbol(self, axis: int, size: int, symbol: str, sizes: Sizes) -> None:
        known, other = sizes.setdefault(symbol, (size, self._label))
        if known != size:
            raise InputError(
                f"{self._label}: axis {axis} ({symbol}) is {size}, but it is {known} in {other}",
                hint="a size of one name must be the same everywhere",
            )
        limits = self._ranges.get(symbol)
        if limits is not None and not limits.holds(size):
            raise InputError(
                f"{self._label}: axis {axis} ({symbol}) is {size}, {_misfit(size, limits)}",
                hint=f"compile with --shape for another range of {symbol}",
            )


def _misfit(size: int, limits: DimRange) -> str:
    if limits.min <= size <= limits.max:
        return f"not {limits.min} and a multiple of {limits.step}, as {limits} says"
    return f"outside {limits}"


class _StringCheck(_TensorCheck):
    def __call__(self, value: Value, sizes: Sizes) -> Value:
        return super().__call__(self.as_text(value) if type(value) is np.ndarray else value, sizes)

    def as_text(self, array: _Array) -> _Array:
        """Returns an array as one of objects that are all str.

        Raises:
            InputError: it holds something else.
        """
        kind = array.dtype.kind
        if kind == "O" and _is_plain_memory(array):
            return self._with_text(array)
        if kind not in "OSUT":
            self._refuse_dtype(array)
        try:
            objects = array.astype(_OBJECT, "C")
        except (SystemError, ValueError) as err:  # memory that was read as text may hold any number
            raise InputError(f"{self._label} contains numbers that are not Unicode characters") from err
        return objects if kind == "U" else self._with_text(objects)

    def _as_array(self, value: Value) -> _Array:
        if isinstance(value, list | tuple | str):
            return self._from_plain(value)
        return self.as_text(_as_numpy(value, self._label))

    def _with_text(self, array: _Array) -> _Array:
        if _holds_only_text(array):
            return array
        kinds = {*map(type, array.ravel().tolist())}
        if not kinds <= {str, bytes, np.str_, np.bytes_}:
            odd = sorted(kind.__name__ for kind in kinds - {str})
            raise InputError(f"{self._label} must be string, got an array of {', '.join(odd)}")
        texts = np.empty(array.size, dtype=object)
        texts[:] = [self._text_of(item) for item in array.ravel().tolist()]
        return texts.reshape(array.shape)

    def _text_of(self, item: str | bytes) -> str:
        try:
            return item.decode("utf-8") if isinstance(item, bytes) else str(item)
        except UnicodeDecodeError as err:
            raise InputError(f"{self._label} contains bytes that are not UTF-8") from err


def _optional_check(check: Check) -> Check:
    def checked(value: Value, sizes: Sizes) -> Value:
        return None if value is None else check(value, sizes)

    return checked


def _sequence_check(element: ValueType, label: str, ranges: Mapping[str, DimRange]) -> Check:
    check = check_of(element, f"an element of {label}", ranges)

    def checked(value: Value, sizes: Sizes) -> Value:  # noqa: ARG001 - elements may differ in size
        if not isinstance(value, list | tuple):
            raise InputError(f"{label} must be a list, not {type(value).__name__}")
        return [check(item, {}) for item in value]

    return checked


def _map_check(map_type: MapType, label: str) -> Check:
    def checked(value: Value, sizes: Sizes) -> Value:  # noqa: ARG001 - a map has no sizes
        if not isinstance(value, Mapping):
            raise InputError(f"{label} must be a dict, not {type(value).__name__}")
        plain = {_plain_scalar(key): _plain_scalar(item) for key, item in value.items()}
        entries: dict[int | str, Value] = value_from_plain(plain, map_type, label)
        return {key: item.item() if _is_scalar(item) else item for key, item in entries.items()}

    return checked


def _is_scalar(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0


def _plain_scalar(value: Value) -> Value:
    return value.item() if isinstance(value, np.generic) or _is_scalar(value) else _as_lists(value)


def _as_lists(value: Value) -> Value:
    return [_as_lists(item) for item in value] if isinstance(value, tuple | list) else value


def _as_numpy(value: Value, label: str) -> _Array:
    try:
        return np.asarray(value)
    except Exception as err:  # another library's array may fail to convert in any way
        raise InputError(f"{label} is not a tensor: {type(value).__name__}: {err}") from err


def _dtype_text(array: _Array) -> str:
    if array.dtype.kind != "O":
        return dtype_name(array.dtype)
    return type(array.flat[0]).__name__ if array.size else "object"


def _holds_only_text(array: _Array) -> bool:
    return {*map(type, array.ravel().tolist())} <= _ONLY_TEXT


def _is_tensor(value_type: ValueType) -> bool:
    return isinstance(value_type, TensorType) and value_type.dtype != "string"


def _is_plain_memory(array: _Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"
