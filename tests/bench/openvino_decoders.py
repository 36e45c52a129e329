# SPDX-License-Identifier: Apache-2.0
"""A model of `decoders` as OpenVINO GenAI reads it: a graph with its caches inside, as optimum's exporter writes it.

Normalisation in parts, rotary positions from `position_ids`, caches as states that `beam_idx` picks from, heads that
share keys by Broadcast, ScaledDotProductAttention; weights of 4 and of 8 bits as nncf compresses them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from decoder_weights import DecoderWeights
from decoders import BLOCK, DECODERS, Decoder
from interleaved import Array
from openvino import opset13 as ops


def write_openvino_decoder(decoder: Decoder, path: Path, folder: Path) -> None:
    """Writes openvino_model.xml, its weights and the configurations of an ONNX model into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = _Graph(decoder, path)
    openvino.save_model(graph.whole(), folder / "openvino_model.xml", compress_to_fp16=False)
    end = decoder.tokens - 1
    told = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    (folder / "generation_config.json").write_text(json.dumps(told), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", **told}), encoding="utf-8")


class _Graph:
    """The graph while it is built."""

    def __init__(self, decoder: Decoder, path: Path) -> None:
        self._decoder, self._weights = decoder, DecoderWeights(decoder, path)
        self._ids, self._mask, self._places = (_input(name, [-1, -1], np.int64) for name in _INPUTS)
        self._beams = _input("beam_idx", [-1], np.int32)
        self._batch = ops.gather(ops.shape_of(self._ids), _ints(0), _ints(0))
        self._kept = list[Any]()
        self._held = list[Array]()  # what constants read until the graph is saved

    def whole(self) -> openvino.Model:
        decoder = self._decoder
        table = ops.constant(self._weights.array("model.embed_tokens.weight"))
        x = ops.gather(_wide(table), ops.convert(self._ids, "i32"), ops.constant(0))
        cosine, sine, mask = *self._angles(), self._hidden()
        for layer in range(decoder.layers):
            x = self._layer(f"model.layers.{layer}", layer, x, cosine, sine, mask)
        logits = self._product("lm_head", self._normalised("model.norm", x))
        result = ops.result(logits)
        logits.output(0).set_names({"logits"})
        inputs = [self._ids, self._mask, self._places, self._beams]
        return openvino.Model([result], self._kept, inputs, "decoder")

    def _angles(self) -> tuple[Any, Any]:
        size = self._decoder.head_size
        turns = (10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, -1, 1)
        places = ops.convert(ops.unsqueeze(self._places, _ints(1)), "f32")
        angles = ops.transpose(ops.matmul(ops.constant(turns), places, False, False), _ints(0, 2, 1))
        angles = ops.concat([angles, angles], -1)
        return ops.unsqueeze(ops.cos(angles), _ints(1)), ops.unsqueeze(ops.sin(angles), _ints(1))

    def _hidden(self) -> Any:
        """Returns 0 where a token may look and the least number elsewhere, (batch, 1, length, all)."""
        every, length = (ops.gather(ops.shape_of(one), ops.constant(1), ops.constant(0)) for one in
                         (self._mask, self._ids))  # fmt: skip
        keys = ops.unsqueeze(ops.range(ops.constant(np.int64(0)), every, ops.constant(np.int64(1)), "i64"), _ints(0))
        rows = ops.range(ops.subtract(every, length), every, ops.constant(np.int64(1)), "i64")
        seen = ops.unsqueeze(ops.less_equal(keys, ops.unsqueeze(rows, _ints(1))), _ints(0, 1))
        there = ops.convert(ops.unsqueeze(self._mask, _ints(1, 2)), "boolean")
        least = np.finfo(np.float32).min
        return ops.select(ops.logical_and(seen, there), ops.constant(np.float32(0)), ops.constant(least))

    def _layer(self, name: str, layer: int, x: Any, cosine: Any, sine: Any, mask: Any) -> Any:
        one, rows = self._decoder, self._normalised(f"{name}.input_layernorm", x)
        q, k, v = (
            self._heads(f"{name}.self_attn.{part}_proj", rows, heads)
            for part, heads in (("q", one.heads), ("k", one.shared), ("v", one.shared))
        )
        q, k = _turned(q, cosine, sine, one.head_size), _turned(k, cosine, sine, one.head_size)
        k, v = (
            self._of_all_heads(self._behind_past(f"{layer}.{kind}", new)) for kind, new in (("key", k), ("value", v))
        )
        mixed = ops.transpose(ops.scaled_dot_product_attention(q, k, v, mask), _ints(0, 2, 1, 3))
        mixed = ops.reshape(mixed, _ints(0, 0, one.heads * one.head_size), True)
        x = ops.add(x, self._product(f"{name}.self_attn.o_proj", mixed))
        rows = self._normalised(f"{name}.post_attention_layernorm", x)
        gate = ops.swish(self._product(f"{name}.mlp.gate_proj", rows))
        return ops.add(
            x, self._product(f"{name}.mlp.down_proj", ops.multiply(gate, self._product(f"{name}.mlp.up_proj", rows)))
        )

    def _heads(self, name: str, x: Any, heads: int) -> Any:
        x = self._product(name, x)
        if self._decoder.biases:
            x = ops.add(x, ops.constant(self._weights.bias(name, 0).reshape(1, 1, -1)))
        x = ops.reshape(x, _ints(0, 0, heads, self._decoder.head_size), True)
        return ops.transpose(x, _ints(0, 2, 1, 3))

    def _behind_past(self, name: str, new: Any) -> Any:
        one, variable = self._decoder, f"past_key_values.{name}present.{name}"
        sizes = ops.concat([self._batch, _ints(one.shared), _ints(0), _ints(one.head_size)], 0)
        begin = ops.broadcast(ops.constant(np.float32(0)), sizes)
        past = ops.read_value(
            begin, variable, openvino.Type.f32, openvino.PartialShape([-1, one.shared, -1, one.head_size])
        )
        present = ops.concat([ops.gather(past, self._beams, ops.constant(0)), new], 2)
        self._kept.append(ops.assign(present, variable))
        return present

    def _of_all_heads(self, x: Any) -> Any:
        one = self._decoder
        times = one.heads // one.shared
        if times == 1:
            return x
        sizes = ops.shape_of(x)
        parts = [ops.gather(sizes, _ints(*which), _ints(0)) for which in ((0, 1), (2, 3))]
        wide = ops.broadcast(
            ops.unsqueeze(x, _ints(2)), ops.concat([parts[0], _ints(times), parts[1]], 0), "BIDIRECTIONAL"
        )
        return ops.reshape(wide, _ints(0, one.heads, -1, one.head_size), True)

    def _normalised(self, name: str, x: Any) -> Any:
        mean = ops.reduce_mean(ops.power(x, ops.constant(np.float32(2))), _ints(-1), True)
        root = ops.sqrt(ops.add(mean, ops.constant(np.float32(1e-6))))
        x = ops.multiply(x, ops.divide(ops.constant(np.float32(1)), root))
        return ops.multiply(ops.constant(self._weights.array(f"{name}.weight").reshape(1, 1, -1)), x)

    def _product(self, name: str, x: Any) -> Any:
        found = self._weights.product(name)
        if found.codes is None or found.scales is None:
            return ops.matmul(x, ops.constant(found.floats), False, True)
        if found.codes.dtype == np.int8:
            scales = np.full((len(found.codes), 1), found.scales, np.float16)
            weights = ops.multiply(ops.convert(ops.constant(found.codes), "f16"), ops.constant(scales))
            return ops.matmul(x, ops.convert(weights, "f32"), False, True)
        columns, blocks = found.scales.shape
        code = self._of_4_bits(found.codes[..., ::2] | found.codes[..., 1::2] << 4, columns, blocks, BLOCK)
        of_zero = self._of_4_bits(np.array([8], np.uint8), 1, 1, 1)
        scales = ops.constant(found.scales.astype(np.float16)[..., None])
        weights = ops.multiply(ops.subtract(code, of_zero), scales)
        weights = ops.convert(ops.reshape(weights, _ints(columns, blocks * BLOCK), False), "f32")
        return ops.matmul(x, weights, False, True)

    def _of_4_bits(self, pairs: Array, *sizes: int) -> Any:
        self._held.append(pairs)
        return ops.convert(ops.constant(openvino.Tensor(pairs, list(sizes), openvino.Type.u4)), "f16")


_INPUTS = ("input_ids", "attention_mask", "position_ids")


def _input(name: str, sizes: list[int], kind: Any) -> Any:
    made = ops.parameter(sizes, kind, name=name)
    made.output(0).set_names({name})
    return made


def _ints(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def _wide(x: Any) -> Any:
    return x if x.get_element_type() == openvino.Type.f32 else ops.convert(x, "f32")


def _turned(x: Any, cosine: Any, sine: Any, size: int) -> Any:
    first, second = (
        ops.slice(x, _ints(begin), _ints(end), _ints(1), _ints(3)) for begin, end in ((0, size // 2), (size // 2, size))
    )
    other = ops.concat([ops.multiply(second, ops.constant(np.float32(-1))), first], -1)
    return ops.add(ops.multiply(x, cosine), ops.multiply(other, sine))


if __name__ == "__main__":
    write_openvino_decoder(DECODERS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]))
