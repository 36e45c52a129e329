# SPDX-License-Identifier: Apache-2.0
"""Weights that are too many for one protobuf message lie in one file of ours, which all who work on the model map.

    tensor(data)  ->  tensor(external_data: location = the file's absolute path, offset, length)

In comes a model whose weights are together more than `MAX_EMBEDDED_BYTES`, and a private folder. The file holds copies:
nobody else writes to it, and the model's own files are looked at once. It is written at its end only, so what a tensor
names stays as it was. Law: a tensor that names a file names this one; all others are embedded.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx_ir as ir

from nndeploy.onnx_gate.limits import PROTOBUF_MAX_BYTES
from nndeploy.onnx_gate.tensor_rules import EXTERNAL

Buffer: TypeAlias = bytes | memoryview

MAX_EMBEDDED_BYTES = PROTOBUF_MAX_BYTES - (64 << 20)
"""Weights up to here travel inside the model; the rest of a message is for its nodes and names."""
MIN_STORED_BYTES = 4096
"""Smaller tensors stay in the model: shapes, axes and the like, which inference must see."""

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
                stored = ir.ExternalTensor(
                    str(self.path), offset, length, tensor.dtype, shape=shape, name=tensor.name or ""
                )
                value.const_value = stored
            mapped(value)

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


def mapped(value: ir.Value) -> None:
    """Maps the data of a stored initializer: done here once, for onnx_ir does it at first use, in whatever thread."""
    tensor = value.const_value
    if isinstance(tensor, ir.ExternalTensor) and tensor.dtype.bitwidth >= 8:
        tensor.numpy()


def has_stored_weights(model: ir.Model) -> bool:
    """Returns whether some initializer of the model's main graph lies in a file."""
    return any(isinstance(value.const_value, ir.ExternalTensor) for value in model.graph.initializers.values())
