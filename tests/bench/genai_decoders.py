# SPDX-License-Identifier: Apache-2.0
"""The language models of `decoders` as ONNX Runtime GenAI's model builder writes them: a folder with its configuration.

The weights are the same numbers, drawn in the same order; the operators are ONNX Runtime's own, GroupQueryAttention
with rotary positions and SkipSimplifiedLayerNormalization among them, and attention_mask is all that tells positions.
"""

import json
from pathlib import Path

import numpy as np
from decoders import Decoder, DecoderGraph
from onnx import TensorProto, helper, save

CONTEXT = 4096
"""The most tokens of a text: rows of the tables of angles."""


def write_genai_decoder(decoder: Decoder, weights: str, folder: Path) -> None:
    """Writes model.onnx, its data and genai_config.json into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "model.data").open("wb") as data:
        save(_GenaiGraph(decoder, weights, data).whole(), folder / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(_configuration(decoder)), encoding="utf-8")


def _configuration(decoder: Decoder) -> dict[str, object]:
    inputs = {
        "input_ids": "input_ids", "attention_mask": "attention_mask",
        "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value",
    }  # fmt: skip
    outputs = {
        "logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"
    }  # fmt: skip
    network = {
        "session_options": {"log_id": "genai", "provider_options": []}, "filename": "model.onnx",
        "head_size": decoder.head_size, "hidden_size": decoder.width, "inputs": inputs, "outputs": outputs,
        "num_attention_heads": decoder.heads, "num_hidden_layers": decoder.layers,
        "num_key_value_heads": decoder.shared,
    }  # fmt: skip
    end = decoder.tokens - 1
    return {
        "model": {
            "bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "context_length": CONTEXT,
            "decoder": network, "type": "qwen2", "vocab_size": decoder.tokens,
        },
        "search": {"do_sample": False, "max_length": CONTEXT, "past_present_share_buffer": True},
    }  # fmt: skip


class _GenaiGraph(DecoderGraph):
    """The same weights; normalisation, rotation and attention are operators of ONNX Runtime."""

    takes_places = False

    def _rotary(self) -> tuple[str, str]:
        size = self._decoder.head_size
        turns = (10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)
        angles = np.arange(CONTEXT, dtype=np.float32)[:, None] * turns
        cosine, sine = (self._stored(name, f(angles)) for name, f in (("cosine", np.cos), ("sine", np.sin)))
        return cosine, sine

    def _mask(self) -> str:
        """Returns the last places; the number of all is `self._total`."""
        every = self._op("ReduceSum", "attention_mask", self._whole(1), keepdims=0)
        self._total = self._op("Cast", self._last("attention_mask"), to=TensorProto.INT32)
        return self._op("Cast", self._op("Sub", every, self._whole(1)), to=TensorProto.INT32)

    def _layer(self, name: str, number: str, x: str, cosine: str, sine: str, mask: str) -> str:
        one, rows = self._decoder, self._normalised(f"{name}.input_layernorm", x)
        own, shared = one.heads * one.head_size, one.shared * one.head_size
        attention = f"{name}.self_attn"
        parts = [
            self._biased(f"{attention}.{part}_proj", rows, columns)
            for part, columns in (("q", own), ("k", shared), ("v", shared))
        ]
        caches = [f"past_key_values.{number}.{kind}" for kind in ("key", "value")]
        made = [f"mixed_{number}", f"present.{number}.key", f"present.{number}.value"]
        node = helper.make_node(
            "GroupQueryAttention", [*parts, *caches, mask, self._total, cosine, sine], made,
            name=f"attention_{number}", domain="com.microsoft", num_heads=one.heads, kv_num_heads=one.shared,
            do_rotary=1,
        )  # fmt: skip
        self._nodes.append(node)
        return self._behind_attention(name, x, made[0])

    def _normalised(self, name: str, x: str) -> str:
        gamma = self._stored(f"{name}.weight", np.ones(self._decoder.width, self._kind))
        return self._op("SimplifiedLayerNormalization", x, gamma, axis=-1, epsilon=1e-6, stash_type=1)
