# SPDX-License-Identifier: Apache-2.0
"""The reader of external tensors: weights that lie in files of their own beside the model.

In comes a parsed model and its folder; afterwards every tensor holds its own data, or the data lie in a file of ours
(`stored_weights.py`), so that no library ever resolves a path that the model names. Files are opened below the folder,
one path component at a time, following no link; each is opened once, read at the ranges that the tensors name, and must
not change meanwhile.

Law: no file outside the model's folder is opened, and nothing is read before its size is known to fit.

Source: ONNX ExternalData.md; 9-reliability, T3.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from nndeploy.errors import InputOutputError, MissingInputError, ModelError, NndeployError, PolicyError
from nndeploy.frontend.stored_weights import MIN_STORED_BYTES, StoredWeights
from nndeploy.frontend.traversal import graphs_of, nodes_of
from nndeploy.onnx_gate.tensor_rules import ELEMENT_TYPES, EXTERNAL

_KEYS = ("location", "offset", "length", "checksum")
_MEMORY_MARKER = "_ORT_MEM_ADDR_"
_CHUNK_BYTES = 1 << 24
_AS_PLAIN_FILE = "copy the file itself into the model's folder"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor's data lie; `num_bytes` is what its type and sizes need, `store` where they go, if not inside."""

    tensor: onnx.TensorProto
    location: str
    offset: int
    length: int | None
    checksum: str
    num_bytes: int
    store: StoredWeights | None


def embed_external_data(
    model: onnx.ModelProto, folder: Path | None, store: StoredWeights | None = None
) -> list[onnx.TensorProto]:
    """Puts the data of every external tensor into the tensor; returns these tensors, in the model's order.

    With `store` those of the main graph's large initializers go there instead.

    The model has passed the gate, which held the sizes of its tensors against `Limits`. `folder` is the model's own,
    None where it has none.

    Raises:
        PolicyError: a location leaves the folder, or is no plain file of its own.
        ModelError: an entry is malformed, the file does not fit the tensors, or it changed while it was read.
        MissingInputError: a file does not exist.
        InputOutputError: a file cannot be read.
    """
    num_weights = len(model.graph.initializer)  # `tensors_of` begins with them
    found = [(i, tensor) for i, tensor in enumerate(tensors_of(model)) if tensor.data_location == EXTERNAL]
    tensors = [tensor for _, tensor in found]
    if not tensors:
        return []
    if folder is None:
        raise ModelError(
            "the model has external data, but no folder to find it in", hint="load it from its file, or embed the data"
        )
    by_location: dict[str, list[_Place]] = {}
    for i, tensor in found:
        place = _place_of(tensor, store if i < num_weights else None)
        by_location.setdefault(place.location, []).append(place)
    root = _open_folder(folder)
    try:
        for location, places in by_location.items():
            _read_file(root, location, places)
    finally:
        os.close(root)
    return tensors


def tensors_of(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yields every stored tensor of a model: of its graph, of all bodies and of its functions, in a fixed order."""
    for graph in graphs_of(model.graph):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    attributes = [attribute for function in model.functions for attribute in function.attribute_proto]
    attributes += [attribute for node in nodes_of(model) for attribute in node.attribute]
    for attribute in attributes:
        yield from ([attribute.t] if attribute.HasField("t") else [])
        yield from attribute.tensors
        sparse_tensors = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
        for sparse in (*sparse_tensors, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)


def _place_of(tensor: onnx.TensorProto, store: StoredWeights | None) -> _Place:
    try:
        entries = _entries(tensor)
        num_elements = 1
        for dim in tensor.dims:
            num_elements *= dim
        num_bytes = (num_elements * ELEMENT_TYPES[tensor.data_type].bits + 7) // 8
        place = _Place(
            tensor=tensor,
            location=entries["location"],
            offset=_number("offset", entries.get("offset", "0")),
            length=_number("length", entries["length"]) if "length" in entries else None,
            checksum=entries.get("checksum", ""),
            num_bytes=num_bytes,
            store=store if num_bytes >= MIN_STORED_BYTES else None,
        )
        if place.length not in (None, place.num_bytes):
            raise ModelError(f"the external data have {place.length} bytes, but the tensor needs {place.num_bytes}")
        _check_location(place.location)
    except NndeployError as err:
        err.within(f"tensor {tensor.name!r:.80}")
        raise
    return place


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key not in _KEYS:
            raise ModelError(f"unknown key {entry.key!r:.80} of external data", hint=f"known: {', '.join(_KEYS)}")
        if entry.key in entries:
            raise ModelError(f"the external data have the key {entry.key!r} twice")
        entries[entry.key] = entry.value
    if "location" not in entries:
        raise ModelError("the external data name no file", hint="the key 'location' is missing")
    return entries


def _number(key: str, text: str) -> int:
    """Returns a size in bytes; what no file can have is refused before it becomes a large integer."""
    if not text.isascii() or not text.isdecimal() or len(text) > 20:
        raise ModelError(f"{key} of external data is {text!r:.40}", hint="a number of bytes, 0 or more")
    if int(text) >= 1 << 63:
        raise ModelError(f"{key} of external data is {text}, past the end of any file")
    return int(text)


def _check_location(location: str) -> None:
    if _MEMORY_MARKER in location:
        raise PolicyError("the external data name an address in memory instead of a file")
    if "\\" in location or "\0" in location:
        raise PolicyError(f"the external file {location!r:.120} has a backslash or a NUL in its name")
    if location.startswith("/"):
        raise PolicyError(
            f"the external file {location!r:.120} is an absolute path", hint="name it relative to the model's folder"
        )
    parts = location.split("/")
    if ".." in parts:
        raise PolicyError(f"the external file {location!r:.120} leaves the model's folder", hint=_AS_PLAIN_FILE)
    if not location or "" in parts or parts[-1] == ".":
        raise PolicyError(f"the external file {location!r:.120} is not a file name")


def _open_folder(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise InputOutputError(f"the model's folder cannot be read: {err.strerror}", where=str(folder)) from err


def _read_file(root: int, location: str, places: list[_Place]) -> None:
    try:
        fd = _open_beneath(root, location)
        try:
            before = os.fstat(fd)
            _check_plain(before)
            for place in places:
                _embed(fd, place, before.st_size)
            _check_checksums(fd, places, before.st_size)
            if _version(os.fstat(fd)) != _version(before):
                raise ModelError("the file changed while it was read", hint="compile again when nobody writes to it")
        finally:
            os.close(fd)
    except NndeployError as err:
        err.within(f"external file {location!r:.120}")
        raise


def _open_beneath(root: int, location: str) -> int:
    """Returns the descriptor of a file below `root`, opened without following a link in any component."""
    parts = [part for part in location.split("/") if part != "."]
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            _check_entry(folder, part, stat.S_ISDIR, "a folder")
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        _check_entry(folder, parts[-1], stat.S_ISREG, "a regular file")
        return os.open(parts[-1], flags, dir_fd=folder)
    except OSError as err:
        raise _cannot_open(err) from err
    finally:
        os.close(folder)


def _check_entry(folder: int, name: str, is_kind: Callable[[int], bool], kind: str) -> None:
    """Looks before it opens: opening a device can have effects of its own."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise PolicyError(f"{name!r:.80} is a symbolic link", hint=_AS_PLAIN_FILE)
    if not is_kind(mode):
        raise PolicyError(f"{name!r:.80} is not {kind}", hint=_AS_PLAIN_FILE)


def _cannot_open(err: OSError) -> NndeployError:
    if err.errno == errno.ENOENT:
        return MissingInputError("no such file", hint="the model keeps weights there; it must lie beside the model")
    if err.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
        return PolicyError("the file was replaced while it was opened")
    if err.errno == errno.ENAMETOOLONG:
        return ModelError("the name of the file is too long")
    return InputOutputError(f"the file cannot be opened: {err.strerror}")


def _check_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise PolicyError("not a regular file", hint=_AS_PLAIN_FILE)
    if status.st_nlink != 1:
        raise PolicyError("the file is a hard link, so it may be anybody's", hint=_AS_PLAIN_FILE)


def _embed(fd: int, place: _Place, file_bytes: int) -> None:
    end = place.offset + place.num_bytes
    if end > file_bytes:
        raise ModelError(f"tensor {place.tensor.name!r:.80} ends at byte {end} of a file of {file_bytes}")
    if place.length is None and end != file_bytes:
        raise ModelError(
            f"tensor {place.tensor.name!r:.80} names no length, and {file_bytes - place.offset} bytes follow its "
            f"offset where it needs {place.num_bytes}"
        )
    if place.store is not None:
        place.store.add(place.tensor, _chunks(fd, place.offset, end))
        return
    place.tensor.raw_data = _read(fd, place.offset, place.num_bytes)
    place.tensor.ClearField("external_data")
    place.tensor.ClearField("data_location")


def _chunks(fd: int, begin: int, end: int) -> Iterator[bytes]:
    for offset in range(begin, end, _CHUNK_BYTES):
        yield _read(fd, offset, min(_CHUNK_BYTES, end - offset))


def _read(fd: int, offset: int, num_bytes: int) -> bytes:
    """Returns exactly `num_bytes`; the usual single read is not copied."""
    try:
        parts = [os.pread(fd, num_bytes, offset)]
        while (num_read := sum(map(len, parts))) < num_bytes:
            parts.append(os.pread(fd, num_bytes - num_read, offset + num_read))
            if not parts[-1]:
                raise ModelError("the file became shorter while it was read")
    except OSError as err:
        raise InputOutputError(f"the file cannot be read: {err.strerror}") from err
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_checksums(fd: int, places: list[_Place], file_bytes: int) -> None:
    wanted = {place.checksum.lower() for place in places if place.checksum}
    if not wanted:
        return
    digest = hashlib.sha1(usedforsecurity=False)  # the format says SHA-1; it finds damage, it proves nothing
    for chunk in _chunks(fd, 0, file_bytes):
        digest.update(chunk)
    if wanted != {digest.hexdigest()}:
        raise ModelError(f"the file's checksum is {digest.hexdigest()}, the model says {min(wanted):.80}")


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
