# SPDX-License-Identifier: Apache-2.0
"""Language models with random weights, of any size, in the form in which exporters write them: a file and its data.

The operators are those of optimum's export of Qwen2 and Llama with a cache (transformers 4.57): normalisation in parts,
rotary positions from `position_ids`, heads that share keys and values by Expand, a mask from `attention_mask`. Weights
are written tensor by tensor, so that a model may be larger than the memory. Weights of 8 bits are what
`onnxruntime.quantization.quantize_dynamic` makes of a product, those of 4 what its `MatMulNBitsQuantizer` does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from interleaved import Array
from onnx import TensorProto, helper

WEIGHTS = ("float32", "float16", "int8", "int4")
BLOCK, ALIGNMENT = 32, 4096


@dataclass(frozen=True, slots=True)
class Decoder:
    """The sizes of a language model; `biases`: of queries, keys and values, as Qwen2 has them."""

    layers: int
    width: int
    inner: int
    heads: int
    shared: int
    tokens: int
    biases: bool = False
    head_size: int = 64


DECODERS = {
    "tiny": Decoder(2, 128, 256, 4, 2, 1000, True, 32),
    "qwen-0.5b": Decoder(24, 896, 4864, 14, 2, 151936, True),
    "llama-1b": Decoder(16, 2048, 8192, 32, 8, 128256),
    "llama-7b": Decoder(32, 4096, 11008, 32, 32, 32000, head_size=128),
}


def write_decoder(decoder: Decoder, weights: str, path: Path) -> int:
    """Writes a model and, beside it, NAME.data; returns the bytes of its weights."""
    with path.with_suffix(".data").open("wb") as data:
        graph = DecoderGraph(decoder, weights, data)
        onnx.save(graph.whole(), path)
        return data.tell()


def decoder_inputs(decoder: Decoder, weights: str, batch: int, length: int, past: int) -> dict[str, Array]:
    """Returns inputs of `length` tokens behind a cache of `past`."""
    dice, kind = np.random.default_rng(1), np.float16 if weights == "float16" else np.float32
    inputs = {
        "input_ids": dice.integers(0, decoder.tokens, (batch, length)),
        "attention_mask": np.ones((batch, past + length), np.int64),
        "position_ids": np.tile(np.arange(past, past + length), (batch, 1)),
    }
    for name, _ in _caches(decoder):
        inputs[f"past_key_values.{name}"] = dice.standard_normal(
            (batch, decoder.shared, past, decoder.head_size), np.float32
        ).astype(kind)
    return inputs


def _caches(decoder: Decoder) -> Iterator[tuple[str, int]]:
    for layer in range(decoder.layers):
        for kind in ("key", "value"):
            yield f"{layer}.{kind}", layer


class DecoderGraph:
    """The graph as it is written: nodes in order, weights in the data file."""

    takes_places = True
    """Whether `position_ids` are an input."""

    def __init__(self, decoder: Decoder, weights: str, data: BinaryIO) -> None:
        self._decoder, self._weights, self._data = decoder, weights, data
        self._dice = np.random.default_rng(0)
        self._nodes = list[onnx.NodeProto]()
        self._initialisers = list[TensorProto]()
        self._kind = np.float16 if weights == "float16" else np.float32
        self._element = TensorProto.FLOAT16 if weights == "float16" else TensorProto.FLOAT

    def whole(self) -> onnx.ModelProto:
        """Returns the model, whose weights have been written then."""
        decoder = self._decoder
        table = self._stored("model.embed_tokens.weight", self._drawn(decoder.tokens, decoder.width, 1.0))
        x = self._op("Gather", table, "input_ids")
        if self._weights != "float16":
            x = self._op("Cast", x, to=TensorProto.FLOAT)
        cosine, sine = self._rotary()
        mask = self._mask()
        for layer in range(decoder.layers):
            x = self._layer(f"model.layers.{layer}", str(layer), x, cosine, sine, mask)
        x = self._normalised("model.norm", x)
        self._product("lm_head", x, decoder.width, decoder.tokens, out="logits")
        return self._model()

    def _model(self) -> onnx.ModelProto:
        decoder, tensor = self._decoder, helper.make_tensor_value_info
        all_tokens = "past_sequence_length + sequence_length"
        tokens = ["batch_size", "sequence_length"]
        inputs = [
            tensor("input_ids", TensorProto.INT64, tokens),
            tensor("attention_mask", TensorProto.INT64, ["batch_size", all_tokens]),
            *([tensor("position_ids", TensorProto.INT64, tokens)] if self.takes_places else []),
        ]
        outputs = [tensor("logits", self._element, [*tokens, decoder.tokens])]
        for name, _ in _caches(decoder):
            for ends, kind, length in (
                (inputs, "past_key_values", "past_sequence_length"),
                (outputs, "present", all_tokens),
            ):
                sizes: list[str | int | None] = ["batch_size", decoder.shared, length, decoder.head_size]
                ends.append(tensor(f"{kind}.{name}", self._element, sizes))
        graph = helper.make_graph(self._nodes, "decoder", inputs, outputs, self._initialisers)
        sets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9)

    def _layer(self, name: str, number: str, x: str, cosine: str, sine: str, mask: str) -> str:
        one, rows = self._decoder, self._normalised(f"{name}.input_layernorm", x)
        own, shared = one.heads * one.head_size, one.shared * one.head_size
        attention = f"{name}.self_attn"
        q = self._heads(f"{attention}.q_proj", rows, own)
        k = self._heads(f"{attention}.k_proj", rows, shared)
        v = self._heads(f"{attention}.v_proj", rows, shared)
        q, k = self._turned(q, cosine, sine), self._turned(k, cosine, sine)
        k = self._op("Concat", f"past_key_values.{number}.key", k, axis=2, out=f"present.{number}.key")
        v = self._op("Concat", f"past_key_values.{number}.value", v, axis=2, out=f"present.{number}.value")
        k, v = (self._of_all_heads(value) for value in (k, v))
        scores = self._op("MatMul", q, self._op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self._op("Mul", scores, self._number(one.head_size**-0.5))
        shares = self._op("Softmax", self._op("Add", scores, mask), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self._behind_attention(name, x, self._reshaped(mixed, 0, 0, own))

    def _behind_attention(self, name: str, x: str, mixed: str) -> str:
        one = self._decoder
        own = one.heads * one.head_size
        x = self._op("Add", x, self._product(f"{name}.self_attn.o_proj", mixed, own, one.width))
        rows = self._normalised(f"{name}.post_attention_layernorm", x)
        gate = self._product(f"{name}.mlp.gate_proj", rows, one.width, one.inner)
        gate = self._op("Mul", gate, self._op("Sigmoid", gate))
        gate = self._op("Mul", gate, self._product(f"{name}.mlp.up_proj", rows, one.width, one.inner))
        return self._op("Add", x, self._product(f"{name}.mlp.down_proj", gate, one.inner, one.width))

    def _heads(self, name: str, x: str, columns: int) -> str:
        x = self._biased(name, x, columns)
        return self._op("Transpose", self._reshaped(x, 0, 0, -1, self._decoder.head_size), perm=[0, 2, 1, 3])

    def _biased(self, name: str, x: str, columns: int) -> str:
        x = self._product(name, x, self._decoder.width, columns)
        if not self._decoder.biases:
            return x
        bias = (self._dice.standard_normal(columns, np.float32) * np.float32(0.1)).astype(self._kind)
        return self._op("Add", x, self._stored(f"{name}.bias", bias))

    def _turned(self, x: str, cosine: str, sine: str) -> str:
        half = self._decoder.head_size // 2
        first, second = (
            self._op("Slice", x, self._whole(begin), self._whole(end), self._whole(3))
            for begin, end in ((0, half), (half, 2 * half))
        )
        other = self._op("Concat", self._op("Neg", second), first, axis=-1)
        return self._op("Add", self._op("Mul", x, cosine), self._op("Mul", other, sine))

    def _of_all_heads(self, x: str) -> str:
        one = self._decoder
        times = one.heads // one.shared
        if times == 1:
            return x
        sizes = self._op("Shape", x)
        parts = [self._op("Slice", sizes, self._whole(i), self._whole(i + 1)) for i in range(4)]
        wide = self._op("Concat", *parts[:2], self._whole(times), *parts[2:], axis=0)
        joined = self._op("Concat", parts[0], self._whole(one.heads), *parts[2:], axis=0)
        return self._op("Reshape", self._op("Expand", self._op("Unsqueeze", x, self._whole(2)), wide), joined)

    def _rotary(self) -> tuple[str, str]:
        size = self._decoder.head_size
        turns = (10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, -1, 1)
        places = self._op("Cast", self._op("Unsqueeze", "position_ids", self._whole(1)), to=TensorProto.FLOAT)
        angles = self._op("MatMul", self._constant(turns), places)
        angles = self._op("Transpose", angles, perm=[0, 2, 1])
        angles = self._op("Concat", angles, angles, axis=-1)
        found = (self._op("Cast", self._op(kind, angles), to=self._element) for kind in ("Cos", "Sin"))
        cosine, sine = (self._op("Unsqueeze", one, self._whole(1)) for one in found)
        return cosine, sine

    def _mask(self) -> str:
        """Returns 0 where a token may look, and the least number elsewhere: [batch, 1, length, past + length].

        Places are those of the cache, as `cache_position` of transformers, which `position_ids` are not where a text
        begins behind places that the mask leaves out.
        """
        every, zero, one = self._last("attention_mask"), self._constant(np.array(0)), self._constant(np.array(1))
        keys = self._op("Unsqueeze", self._op("Range", zero, every, one), self._constant(np.array([0, 1, 2])))
        queries = self._op("Range", self._op("Sub", every, self._last("input_ids")), every, one)
        queries = self._op("Unsqueeze", queries, self._constant(np.array([0, 1, 3])))
        seen = self._op("LessOrEqual", keys, queries)
        there = self._op("Cast", self._op("Unsqueeze", "attention_mask", self._constant(np.array([1, 2]))), to=9)
        least = np.finfo(self._kind).min
        return self._op("Where", self._op("And", seen, there), self._number(0.0), self._number(float(least)))

    def _last(self, x: str) -> str:
        return self._op("Gather", self._op("Shape", x), self._constant(np.array(1)))

    def _normalised(self, name: str, x: str) -> str:
        wide = self._op("Cast", x, to=TensorProto.FLOAT) if self._weights == "float16" else x
        square = self._op("Pow", wide, self._constant(np.array(2.0, np.float32)))
        mean = self._op("ReduceMean", square, self._whole(-1), keepdims=1)
        root = self._op("Sqrt", self._op("Add", mean, self._constant(np.array(1e-6, np.float32))))
        x = self._op("Mul", wide, self._op("Div", self._constant(np.array(1.0, np.float32)), root))
        if self._weights == "float16":
            x = self._op("Cast", x, to=TensorProto.FLOAT16)
        ones = np.ones(self._decoder.width, self._kind)
        return self._op("Mul", self._stored(f"{name}.weight", ones), x)

    def _product(self, name: str, x: str, rows: int, columns: int, out: str = "") -> str:
        if self._weights == "int4":
            return self._of_4_bits(name, x, rows, columns, out)
        if self._weights == "int8":
            return self._of_8_bits(name, x, rows, columns, out)
        return self._op("MatMul", x, self._stored(name, self._drawn(rows, columns, rows**-0.5)), out=out)

    def _of_4_bits(self, name: str, x: str, rows: int, columns: int, out: str) -> str:
        blocks = rows // BLOCK
        codes = self._dice.integers(0, 256, (columns, blocks, BLOCK // 2), np.uint8)
        scales = np.full((columns, blocks), rows**-0.5 / 4.6, np.float32)  # the deviation of 0 to 15 is 4.6
        scales *= self._dice.random(scales.shape, np.float32) + np.float32(0.5)
        scales = scales.astype(np.float16).astype(np.float32)  # so that formats with scales of 16 bits hold the same
        inputs = x, self._stored(f"{name}_Q4", codes), self._stored(f"{name}_scales", scales.reshape(-1))
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        return self._op("MatMulNBits", *inputs, out=out, domain="com.microsoft", **sizes)

    def _of_8_bits(self, name: str, x: str, rows: int, columns: int, out: str) -> str:
        codes = self._dice.integers(-127, 128, (rows, columns), np.int8)
        # the deviation of -127 to 127 is 73.3; formats with scales of 16 bits hold the same
        scale = self._stored(f"{name}_scale", np.array(np.float16(rows**-0.5 / 73.3), np.float32))
        bytes_of_x, x_scale, x_zero = self._op_of_three("DynamicQuantizeLinear", x)
        zero = self._constant(np.array(0, np.int8))
        sums = self._op("MatMulInteger", bytes_of_x, self._stored(f"{name}_quantized", codes), x_zero, zero)
        both = self._op("Mul", x_scale, scale)
        return self._op("Mul", self._op("Cast", sums, to=TensorProto.FLOAT), both, out=out)

    def _op_of_three(self, kind: str, x: str) -> list[str]:
        made = [f"v{len(self._nodes)}_{i}" for i in range(3)]
        self._nodes.append(helper.make_node(kind, [x], made, name=f"{kind}_{len(self._nodes)}"))
        return made

    def _op(self, kind: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        made = out or f"v{len(self._nodes)}"
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [made], name=name, domain=domain, **attributes))
        return made

    def _reshaped(self, x: str, *sizes: int) -> str:
        return self._op("Reshape", x, self._constant(np.array(sizes)))

    def _whole(self, number: int) -> str:
        return self._constant(np.array([number]))

    def _number(self, number: float) -> str:
        return self._constant(np.array(number, self._kind))

    def _constant(self, array: Array) -> str:
        return self._op("Constant", value=onnx.numpy_helper.from_array(array))

    def _drawn(self, rows: int, columns: int, scale: float) -> Array:
        """Random weights; of a table of tokens in half precision where products have 4 bits."""
        drawn = self._dice.standard_normal((rows, columns), np.float32) * np.float32(scale)
        halves = self._kind is np.float16 or self._weights == "int4"
        return drawn.astype(np.float16 if halves else np.float32)

    def _stored(self, name: str, array: Array) -> str:
        self._data.write(bytes(-self._data.tell() % ALIGNMENT))
        tensor = TensorProto(
            name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            data_location=TensorProto.EXTERNAL,
        )  # fmt: skip
        where = {"location": Path(self._data.name).name, "offset": self._data.tell(), "length": array.nbytes}
        for key, value in where.items():
            tensor.external_data.add(key=key, value=str(value))
        self._data.write(np.ascontiguousarray(array).view(np.uint8).data)
        self._initialisers.append(tensor)
        return name
