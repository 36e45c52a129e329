# SPDX-License-Identifier: Apache-2.0
"""The weights of a model of `decoders`, read from its file: what other formats are written from."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from decoders import BLOCK, Decoder
from interleaved import Array

PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
         "mlp.up_proj", "mlp.down_proj")  # fmt: skip
"""The products of a layer, by name."""


class Product(NamedTuple):
    """Weights by columns: float32 (columns, rows), or codes of 4 bits in blocks or of 8 bits, where `scales` are.

    Of 4 bits `codes` are uint8 (columns, blocks, BLOCK) of 0 to 15, a weight is (code - 8) * scale, and `scales` are
    (columns, blocks). Of 8 bits `codes` are int8 (columns, rows), a weight is code * scale, and there is one scale ().
    """

    floats: Array | None
    codes: Array | None = None
    scales: Array | None = None


class DecoderWeights:
    """The arrays of a model; large ones are read when they are asked for."""

    def __init__(self, decoder: Decoder, path: Path) -> None:
        """`path` is the ONNX file, its data beside it."""
        self._decoder, self._path = decoder, path
        self._tensors = {one.name: one for one in onnx.load(path, load_external_data=False).graph.initializer}

    def array(self, name: str) -> Array:
        """Returns a table, a bias or the weights of a normalisation (`name` as in the file)."""
        tensor = self._tensors[name]
        told = {one.key: one.value for one in tensor.external_data}
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        count, data = int(np.prod(tensor.dims)), self._path.with_name(told["location"])
        return np.fromfile(data, kind, count, offset=int(told["offset"])).reshape(tuple(tensor.dims))

    def bias(self, name: str, columns: int) -> Array:
        """Returns a bias, zeros where the model has none."""
        is_there = f"{name}.bias" in self._tensors
        return self.array(f"{name}.bias") if is_there else np.zeros(columns, np.float32)

    def product(self, name: str) -> Product:
        if name in self._tensors:
            return Product(np.ascontiguousarray(self.array(name).T))
        if f"{name}_quantized" in self._tensors:
            codes = np.ascontiguousarray(self.array(f"{name}_quantized").T)
            return Product(None, codes, self.array(f"{name}_scale"))
        pairs = self.array(f"{name}_Q4")
        codes = np.stack((pairs & 15, pairs >> 4), -1).reshape(*pairs.shape[:2], BLOCK)
        return Product(None, codes, self.array(f"{name}_scales").reshape(codes.shape[:2]))
