# SPDX-License-Identifier: Apache-2.0
"""A model of `decoders` as llama.cpp reads it: GGUF of Qwen2's architecture, weights of 4 bits as Q4_0, of 8 as Q8_0.

Q4_0 has the numbers of MatMulNBits: (code - 8) times a scale of 16 bits for 32 weights, codes 0 to 15 in the low halves
of 16 bytes and 16 to 31 in the high ones. Q8_0 has 32 codes of 8 bits behind their scale.
"""

import sys
from pathlib import Path

import numpy as np
from decoder_weights import PARTS, DecoderWeights, Product
from decoders import BLOCK, DECODERS, Decoder
from gguf import GGMLQuantizationType, GGUFWriter
from interleaved import Array

_NAMES = dict(zip(PARTS, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), strict=True))
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def write_gguf_decoder(decoder: Decoder, path: Path, to: Path, context: int = 4096) -> None:
    """Writes the weights of an ONNX model as GGUF."""
    weights, file = DecoderWeights(decoder, path), GGUFWriter(to, "qwen2")
    file.add_context_length(context)
    file.add_embedding_length(decoder.width)
    file.add_block_count(decoder.layers)
    file.add_feed_forward_length(decoder.inner)
    file.add_head_count(decoder.heads)
    file.add_head_count_kv(decoder.shared)
    file.add_key_length(decoder.head_size)
    file.add_value_length(decoder.head_size)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(decoder.tokens)
    file.add_tokenizer_model("none")
    file.add_tensor("token_embd.weight", weights.array("model.embed_tokens.weight"))
    file.add_tensor("output_norm.weight", weights.array("model.norm.weight"))
    _add(file, "output.weight", weights.product("lm_head"))
    for layer in range(decoder.layers):
        of, name = f"model.layers.{layer}", f"blk.{layer}"
        for norm, other in _NORMS.items():
            file.add_tensor(f"{name}.{other}.weight", weights.array(f"{of}.{norm}.weight"))
        for part, other in _NAMES.items():
            _add(file, f"{name}.{other}.weight", weights.product(f"{of}.{part}"))
        for part, heads in zip(PARTS[:3], (decoder.heads, decoder.shared, decoder.shared), strict=True):
            file.add_tensor(f"{name}.{_NAMES[part]}.bias", weights.bias(f"{of}.{part}", heads * decoder.head_size))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def _add(file: GGUFWriter, name: str, product: Product) -> None:
    if product.codes is None or product.scales is None:
        assert product.floats is not None
        file.add_tensor(name, product.floats)
    elif product.codes.dtype == np.int8:
        file.add_tensor(name, _q8_0(product.codes, product.scales), raw_dtype=GGMLQuantizationType.Q8_0)
    else:
        file.add_tensor(name, _q4_0(product.codes, product.scales), raw_dtype=GGMLQuantizationType.Q4_0)


def _q8_0(codes: Array, scale: Array) -> Array:
    """Returns the bytes (columns, bytes of a column)."""
    blocks = codes.reshape(len(codes), -1, BLOCK).view(np.uint8)
    halves = np.broadcast_to(scale.astype("<f2").reshape(1).view(np.uint8), (*blocks.shape[:2], 2))
    return np.concatenate([halves, blocks], -1).reshape(len(codes), -1)


def _q4_0(codes: Array, scales: Array) -> Array:
    """Returns the bytes (columns, bytes of a column)."""
    half = codes.shape[2] // 2
    halves = scales.astype("<f2")[..., None].view(np.uint8)
    return np.concatenate([halves, codes[..., :half] | codes[..., half:] << 4], -1).reshape(len(codes), -1)


if __name__ == "__main__":
    write_gguf_decoder(DECODERS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]))
