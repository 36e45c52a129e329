# SPDX-License-Identifier: Apache-2.0
"""Large weights lie in one file of ours, which all who work on the model map: no message repeats them.

    tensor(data)  ->  tensor(external_data: location = the file's absolute path, offset, length)

In comes a model whose weights are together more than `MIN_MODEL_BYTES`, and a private folder. The file holds copies:
nobody else writes to it, and the model's own files are looked at once. It is written at its end only, so what a tensor
names stays as it was. Law: a tensor that names a file names this one; all others are embedded.

Who maps no files gets `embedded`, if one protobuf message holds all.
"""

import mmap
import shutil
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from nndeploy.files.file_content import file_map
from nndeploy.frontend.traversal import bodies_of, nodes_of
from nndeploy.onnx_gate.limits import PROTOBUF_MAX_BYTES
from nndeploy.onnx_gate.tensor_rules import EXTERNAL

if TYPE_CHECKING:
    import numpy.typing as npt

Buffer: TypeAlias = bytes | memoryview

MAX_EMBEDDED_BYTES = PROTOBUF_MAX_BYTES - (64 << 20)
"""Weights up to here can travel inside the model; the rest of a message is for its nodes and names."""
MIN_MODEL_BYTES = 16 << 20
"""Weights up to here do: a message of so many is written and read in some ten milliseconds."""
MIN_STORED_BYTES = 4096
"""Smaller tensors stay in the model: shapes, axes and the like, which inference must see."""

MEMORY_OF_WEIGHTS, DISK_OF_WEIGHTS, MEMORY_BESIDE = 2.5, 6.0, 300 << 20
"""What a compile may take of both, in times the weights, and bytes beside these: the most that was measured."""

_ALIGNMENT = 4096  # Source: ONNX, ExternalData.md: a multiple of the page size can be mapped
_CHUNK_BYTES = 1 << 24
_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data", "external_data",
)  # fmt: skip


class StoredWeights:
    """The file of one model's weights; it goes with the folder it lies in."""

    def __init__(self, folder: Path) -> None:
        """Makes an empty file in `folder`, which is private; backends look whether it is a `HeldFolder`."""
        self.path = folder.absolute() / "weights.data"
        self.path.touch(exist_ok=False)
        self._end = 0

    @property
    def num_bytes(self) -> int:
        """How many bytes the weights have."""
        return self._end

    @property
    def is_beyond_a_message(self) -> bool:
        """Whether the weights are too many for one protobuf message."""
        return self._end > MAX_EMBEDDED_BYTES

    def lacking(self, memory_bytes: int) -> list[str]:
        """Returns a line for each of memory and disk that a compile of these weights may have too little of."""
        memory, disk = round(MEMORY_OF_WEIGHTS * self._end) + MEMORY_BESIDE, round(DISK_OF_WEIGHTS * self._end)
        free = shutil.disk_usage(self.path.parent).free
        of = f"a compile of {_gigabytes(self._end)} of weights may take"
        found = []
        if memory > memory_bytes:
            found.append(
                f"{of} {_gigabytes(memory)} of memory; the limit is {_gigabytes(memory_bytes)}: --memory-limit"
            )
        if disk > free:
            found.append(f"{of} {_gigabytes(disk)} of temporary files; {_gigabytes(free)} are free: set TMPDIR")
        return found

    def add(self, tensor: onnx.TensorProto, pieces: Iterable[Buffer]) -> None:
        """Puts the data of a tensor, in pieces, into the file, and their place into the tensor."""
        offset, length = self._append(pieces)
        for name in _DATA_FIELDS:
            tensor.ClearField(name)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self.path), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))

    def add_large(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Puts the large initializers of the main graph into the file; returns the model without their memory."""
        for tensor in model.graph.initializer:
            is_embedded = tensor.data_location != EXTERNAL and tensor.data_type != onnx.TensorProto.STRING
            if is_embedded and tensor.ByteSize() >= MIN_STORED_BYTES:
                self.add(tensor, [ir.serde.deserialize_tensor(tensor).tobytes()])
        compact = onnx.ModelProto()  # a message keeps the memory of what it lost
        compact.CopyFrom(model)
        return compact

    def add_made(self, model: ir.Model) -> None:
        """Puts the large initializers that passes made into the file, in place."""
        for value in model.graph.initializers.values():
            tensor = value.const_value
            if tensor is None or isinstance(tensor, ir.ExternalTensor) or tensor.dtype == ir.DataType.STRING:
                continue
            if tensor.nbytes >= MIN_STORED_BYTES:
                offset, length = self._append([tensor.tobytes()])
                shape = ir.Shape(tensor.shape.numpy())
                value.const_value = StoredTensor(
                    str(self.path), offset, length, tensor.dtype, shape=shape, name=tensor.name or ""
                )

    def pieces_of(self, tensor: onnx.TensorProto) -> Iterator[bytes]:
        """Yields the data of a tensor that was external, wherever they lie now."""
        if tensor.data_location != EXTERNAL:
            yield tensor.raw_data
            return
        place = {entry.key: entry.value for entry in tensor.external_data}
        left = int(place["length"])
        with self.path.open("rb") as file:
            file.seek(int(place["offset"]))
            while left:
                piece = file.read(min(left, _CHUNK_BYTES))
                left -= len(piece)
                yield piece

    def _append(self, pieces: Iterable[Buffer]) -> tuple[int, int]:
        """Returns (offset, length) of what was written."""
        offset = -(-self._end // _ALIGNMENT) * _ALIGNMENT
        with self.path.open("r+b") as file:
            file.seek(offset)
            length = sum(file.write(piece) for piece in pieces)
        self._end = offset + length
        return offset, length


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"


class StoredTensor(ir.ExternalTensor):
    """A tensor in a file that is mapped once for all: an `ir.ExternalTensor` keeps it open by itself."""

    def numpy(self) -> "npt.NDArray[Any]":
        """Returns the data; those of fewer than 8 bits an element are unpacked."""
        if self.dtype.bitwidth < 8 or not self.size:
            return super().numpy()
        kind = np.dtype(self.dtype.numpy())
        offset, num_bytes = self.offset or 0, self.size * kind.itemsize
        data = _map_of(self.path, offset + num_bytes)
        return np.frombuffer(data, kind, self.size, offset).reshape(self.shape.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "npt.NDArray[Any]":
        return np.array(self.numpy(), dtype, copy=copy)

    def tobytes(self) -> bytes:
        """Returns the data as they are stored."""
        return super().tobytes() if self.dtype.bitwidth < 8 else self.numpy().tobytes()


_maps: "weakref.WeakValueDictionary[str, mmap.mmap]" = weakref.WeakValueDictionary()


def _map_of(path: str, end: int) -> mmap.mmap:
    """Returns the map of a file; one that has grown beyond what is mapped of it is mapped anew."""
    known = _maps.get(path)
    if known is None or len(known) < end:
        with Path(path).open("rb") as file:
            known = _maps[path] = file_map(file.fileno())
    return known


def mapped(value: ir.Value) -> None:
    """Makes a stored initializer one whose file is mapped once."""
    tensor = value.const_value
    if isinstance(tensor, ir.ExternalTensor) and not isinstance(tensor, StoredTensor):
        value.const_value = StoredTensor(
            tensor.location, tensor.offset, tensor.length, tensor.dtype, shape=tensor.shape, name=tensor.name
        )


def model_from_bytes(data: bytes) -> ir.Model:
    """Returns the model of a message of ours, whose tensors may be stored."""
    model = ir.from_proto(onnx.load_from_string(data))
    for value in model.graph.initializers.values():
        mapped(value)
    return model


def is_worth_a_file(model: onnx.ModelProto, num_bytes: int) -> bool:
    """Returns whether the weights of a model, `num_bytes` of them, go to a file.

    ONNX Runtime finds none in memory that bodies (of If, Loop, Scan) read: those of such a model do where they must.
    """
    has_bodies = any(True for node in nodes_of(model) for _ in bodies_of(node))
    return num_bytes > (MAX_EMBEDDED_BYTES if has_bodies else MIN_MODEL_BYTES)


def stored_bytes(model: ir.Model) -> int:
    """Returns the bytes of the initializers of the model's main graph that lie in a file."""
    return sum(tensor.nbytes for _, tensor in _stored(model))


def embedded(model: ir.Model) -> ir.Model:
    """Returns the model with all weights in it: over the mapped file, until it is made into a message.

    A model that names no file is returned as it is.
    """
    if not any(_stored(model)):
        return model
    whole = model.clone()
    for value, tensor in _stored(whole):
        value.const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, shape=tensor.shape, name=tensor.name)
    return whole


def _stored(model: ir.Model) -> Iterator[tuple[ir.Value, ir.ExternalTensor]]:
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            yield value, value.const_value
