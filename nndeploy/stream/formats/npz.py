# SPDX-License-Identifier: Apache-2.0
"""Reads and writes values by name as .npz, and single values as .npy.

An npz holds arrays alone, so other values are taken apart: the elements of a sequence `s` are `s[0]`, `s[1]`, ...;
an empty one is the empty array `s`; a map `m` is the two arrays `m.keys` and `m.values`; an optional that is absent
has no entry. What is read may have
been written by anybody: an archive that would unpack to far more than it weighs is refused before it is unpacked.

Law: what `write_npz` writes, `read_npz` gives back for the same types (maps become maps of arrays).
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from nndeploy.errors import DataError, InputError
from nndeploy.files.whole_files import open_regular
from nndeploy.stream.formats.npy import read_npy, write_npy
from nndeploy.values.types import (
    ML_DTYPES,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    numpy_dtype,
)

MAX_MEMBERS = 4096
MAX_UNPACKED_BYTES = 2 << 30
MAX_RATIO = 100
"""How many times its own weight an archive may unpack to, once that is more than `RATIO_FREE_BYTES`."""
RATIO_FREE_BYTES = 64 << 20

_Array: TypeAlias = np.ndarray[Any, Any]

_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, OSError,
)  # fmt: skip


def read_npy_file(path: Path, value_type: ValueType) -> Value:
    """Returns the array of an .npy file, as an input of type `value_type`.

    Raises:
        InputError: the file is no array; it names the file.
        MissingInputError: there is no such file.
    """
    with open_regular(path) as file:
        size = file.seek(0, 2)
        file.seek(0)
        try:
            return values_from_arrays({"": read_npy(file.read, size)}, {"": value_type})[""]
        except InputError as err:
            err.within(str(path))
            raise


def read_npz_file(path: Path, types: Mapping[str, ValueType]) -> dict[str, Value]:
    """Returns the values of an .npz file by name; `types` says which names are sequences or maps.

    Raises:
        InputError: the file is no such archive; it names the file.
        MissingInputError: there is no such file.
    """
    with open_regular(path) as file:
        try:
            return values_from_arrays(_read_arrays(file), types)
        except InputError as err:
            err.within(str(path))
            raise


def write_npz(file: BinaryIO, values: Mapping[str, Value]) -> None:
    """Writes values by name; the same values give the same bytes.

    Raises:
        DataError: two values would have one name once they are taken apart.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        written: set[str] = set()
        for name, array in _arrays_of(values):
            if name in written:
                raise DataError(f"two values are both called {name!r} in an npz", hint="use --output - instead")
            written.add(name)
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980
            with archive.open(entry, "w", force_zip64=True) as member:
                write_npy(member, array)  # type: ignore[arg-type]  # a zip member is a binary file


def values_from_arrays(arrays: Mapping[str, _Array], types: Mapping[str, ValueType]) -> dict[str, Value]:
    """Returns the values that were taken apart into `arrays`; names that no type knows stay as they are."""
    left = dict(arrays)
    found = {name: _take(name, value_type, left) for name, value_type in types.items()}
    return {name: value for name, value in found.items() if value is not None} | left


def _take(name: str, value_type: ValueType, arrays: dict[str, _Array]) -> Value:
    """Takes the parts of a value out of `arrays` and returns it, or None where there are none."""
    match value_type:
        case OptionalType(element):
            return _take(name, element, arrays)
        case SequenceType(element):
            items: list[Value] = []
            while (item := _take(f"{name}[{len(items)}]", element, arrays)) is not None:
                items.append(item)
            if items or name not in arrays:
                return items or None
            whole = arrays.pop(name)
            return whole if whole.size else []
        case MapType(_, element):
            return _take_map(name, element, arrays)
        case TensorType():
            return _as_declared(arrays.pop(name), value_type) if name in arrays else None


def _take_map(name: str, element: ValueType, arrays: dict[str, _Array]) -> Value:
    keys, values = arrays.get(f"{name}.keys"), arrays.get(f"{name}.values")
    if keys is None or values is None or keys.ndim != 1 or keys.shape != values.shape[:1]:
        return None
    del arrays[f"{name}.keys"], arrays[f"{name}.values"]
    return {key: _as_declared(value, element) for key, value in zip(keys.tolist(), values, strict=True)}


def _as_declared(array: _Array, value_type: ValueType) -> _Array:
    """Returns raw bytes as the small element type that was declared; numpy writes those types as bytes."""
    if array.dtype.kind != "V" or not isinstance(value_type, TensorType) or value_type.dtype not in ML_DTYPES:
        return array
    dtype = numpy_dtype(value_type.dtype)
    return np.ascontiguousarray(array).view(dtype) if array.dtype.itemsize == dtype.itemsize else array


def _arrays_of(values: Mapping[str, Value]) -> Iterator[tuple[str, _Array]]:
    for name, value in values.items():
        yield from _taken_apart(name, value)


def _taken_apart(name: str, value: Value) -> Iterator[tuple[str, _Array]]:
    if value is None:
        return
    if isinstance(value, list | tuple) and value:
        for i, item in enumerate(value):
            yield from _taken_apart(f"{name}[{i}]", item)
    elif isinstance(value, Mapping):
        yield f"{name}.keys", np.asarray(list(value))
        yield f"{name}.values", _stacked(name, value)
    else:
        yield name, np.asarray(value)


def _stacked(name: str, entries: Mapping[Any, Value]) -> _Array:
    try:
        return np.asarray(list(entries.values()))
    except ValueError as err:
        raise DataError(f"the entries of the map {name!r} differ in shape", hint="use --output - instead") from err


def _read_arrays(file: BinaryIO) -> dict[str, _Array]:
    size = file.seek(0, 2)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, size)
            return {entry.filename.removesuffix(".npy"): _read_member(archive, entry) for entry in entries}
    except InputError:
        raise
    except _ZIP_ERRORS as err:
        raise InputError(f"is no npz archive: {err}") from err


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > MAX_MEMBERS:
        raise InputError(f"has {len(entries)} members, more than {MAX_MEMBERS}")
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise InputError("has two members of one name")
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            raise InputError(f"holds {entry.filename!r:.80}, which is no npy array")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"holds {entry.filename!r:.80}, packed in an unknown way")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED_BYTES:
        raise InputError(f"unpacks to {unpacked} bytes, more than {MAX_UNPACKED_BYTES}")
    if unpacked > RATIO_FREE_BYTES and unpacked > MAX_RATIO * size:
        raise InputError(
            f"unpacks from {size} to {unpacked} bytes, more than {MAX_RATIO} times its size",
            hint="save it with np.savez, which does not pack",
        )


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> _Array:
    with archive.open(entry) as member:  # zipfile compares the checksum when the last byte is read
        try:
            return read_npy(member.read, entry.file_size)
        except InputError as err:
            err.within(entry.filename)
            raise
