# SPDX-License-Identifier: Apache-2.0
"""Decoders with a KV cache, and encoders with decoders, as optimum writes them: masks span past and new tokens."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from exporting import from_optimum, from_torch
from exporting.encoders import vocabulary
from exporting.feed import feed_of
from exporting.from_torch import settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn

_PAST = 24
_ENCODED = 20
Build = Callable[[Scale], hf.PreTrainedModel]


def cache_sizes(past: int = _PAST, new: int = 1) -> Mapping[str, int]:
    """Returns the sizes of a step: so many tokens in the cache, so many new ones."""
    return {
        "batch_size": 1,
        "sequence_length": new,
        "past_sequence_length": past,
        "past_sequence_length + sequence_length": past + new,
        "past_sequence_length + 1": past + 1,
        "decoder_sequence_length": new,
        "past_decoder_sequence_length": past,
        "past_decoder_sequence_length + sequence_length": past + new,
        "encoder_sequence_length": _ENCODED,
        "encoder_sequence_length_out": _ENCODED,
        "encoder_sequence_length / 2": _ENCODED,
    }


def _enter(name: str, build: Build, *, new: int = 1) -> None:
    @graph(name, "decoder with cache", "optimum text-generation-with-past, dynamic batch, past, sequence")
    def make(path: Path, scale: Scale) -> Inputs:
        model = settled(build(scale))
        from_optimum.export(model, "text-generation-with-past", {"model.onnx": path})
        return feed_of(path, cache_sizes(new=new), tokens=vocabulary(scale))


def _gpt2(scale: Scale) -> hf.PreTrainedModel:
    config = hf.GPT2Config(
        vocab_size=vocabulary(scale), n_embd=scale.of(128, 16), n_layer=scale.of(4, 1), n_head=scale.of(4, 2),
        n_positions=scale.of(256, 32), bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return hf.GPT2LMHeadModel(config)


def llama(scale: Scale, hidden: int = 128, layers: int = 4) -> hf.PreTrainedModel:
    """Returns a decoder with rotary positions and grouped heads."""
    config = hf.LlamaConfig(
        vocab_size=vocabulary(scale), hidden_size=scale.of(hidden, 32), intermediate_size=scale.of(3 * hidden, 32),
        num_hidden_layers=scale.of(layers, 1), num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=scale.of(256, 32), bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return hf.LlamaForCausalLM(config)


def _qwen2(scale: Scale) -> hf.PreTrainedModel:
    config = hf.Qwen2Config(
        vocab_size=vocabulary(scale), hidden_size=scale.of(192, 16), intermediate_size=scale.of(576, 24),
        num_hidden_layers=scale.of(3, 1), num_attention_heads=scale.of(6, 2), num_key_value_heads=scale.of(2, 1),
        max_position_embeddings=scale.of(256, 32), bos_token_id=1, eos_token_id=2, tie_word_embeddings=True,
    )  # fmt: skip
    return hf.Qwen2ForCausalLM(config)


def _opt(scale: Scale) -> hf.PreTrainedModel:
    config = hf.OPTConfig(
        vocab_size=vocabulary(scale), hidden_size=128, num_hidden_layers=3, ffn_dim=512, num_attention_heads=4,
        max_position_embeddings=256, word_embed_proj_dim=128, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return hf.OPTForCausalLM(config)


_enter("gpt2", _gpt2)
_enter("llama", llama)
_enter("llama_prefill", llama, new=16)
_enter("llama_wide", lambda scale: llama(scale, 384, 3))
_enter("qwen2", _qwen2)
_enter("opt", _opt)


def _t5(scale: Scale) -> hf.PreTrainedModel:
    config = hf.T5Config(
        vocab_size=vocabulary(scale), d_model=scale.of(128, 16), d_kv=scale.of(32, 8), d_ff=scale.of(512, 24),
        num_layers=scale.of(3, 1), num_decoder_layers=scale.of(3, 1), num_heads=scale.of(4, 2),
        feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return hf.T5ForConditionalGeneration(config)


_TEXT_TO_TEXT = "text2text-generation-with-past"


@graph("t5_encoder", "text encoder", f"optimum {_TEXT_TO_TEXT}, dynamic batch, sequence")
def _t5_encoder(path: Path, scale: Scale) -> Inputs:
    from_optimum.export(settled(_t5(scale)), _TEXT_TO_TEXT, {"encoder_model.onnx": path})
    sizes = {"batch_size": 1, "sequence_length": scale.of(48, 6), "encoder_sequence_length": scale.of(48, 6)}
    return feed_of(path, sizes, tokens=vocabulary(scale))


@graph("t5_decoder_merged", "decoder with cache, an If over both uses", f"optimum {_TEXT_TO_TEXT}")
def _t5_decoder(path: Path, scale: Scale) -> Inputs:
    from_optimum.export(settled(_t5(scale)), _TEXT_TO_TEXT, {"decoder_model_merged.onnx": path})
    return feed_of(path, cache_sizes(), tokens=vocabulary(scale))


@graph("t5_decoder_first", "decoder without cache", f"optimum {_TEXT_TO_TEXT}")
def _t5_first(path: Path, scale: Scale) -> Inputs:
    from_optimum.export(settled(_t5(scale)), _TEXT_TO_TEXT, {"decoder_model.onnx": path})
    return feed_of(path, cache_sizes(new=8), tokens=vocabulary(scale))


class _Step(nn.Module):
    """One step of a small decoder, its cache as plain tensors in and out."""

    def __init__(self, hidden: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads, self.width = heads, hidden // heads
        self.embed = nn.Embedding(tokens, hidden)
        self.norm, self.last = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.mix, self.back = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, tokens)

    def forward(self, ids: Tensor, past_key: Tensor, past_value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = self.embed(ids)
        query, key, new = (
            part.reshape(*ids.shape, self.heads, self.width).transpose(1, 2)
            for part in self.mix(self.norm(value)).chunk(3, -1)
        )
        key, new = torch.cat([past_key, key], 2), torch.cat([past_value, new], 2)
        seen = nn.functional.scaled_dot_product_attention(query, key, new)
        value = value + self.back(seen.transpose(1, 2).flatten(2))
        return self.head(self.last(value)), key, new


@graph("step_decoder", "decoder with cache", "torch dynamo, dynamic past")
def _step_decoder(path: Path, scale: Scale) -> Inputs:
    hidden, heads = scale.of(128, 16), scale.of(4, 2)
    past = torch.randn(1, heads, scale.of(_PAST, 5), hidden // heads)
    example = {"ids": torch.zeros(1, 1, dtype=torch.int64), "past_key": past, "past_value": past * 0.5}
    axes = {"past_key": {2: "past"}, "past_value": {2: "past"}}
    module = settled(_Step(hidden, heads, vocabulary(scale)))
    outputs = ["logits", "key", "value"]
    return from_torch.export(module, example, path, dynamo=True, outputs=outputs, axes=axes)


@graph("whisper_encoder", "speech encoder", "optimum automatic-speech-recognition-with-past")
def _whisper_encoder(path: Path, scale: Scale) -> Inputs:
    model = _whisper(scale)
    from_optimum.export(model, "automatic-speech-recognition-with-past", {"encoder_model.onnx": path})
    frames = 2 * model.config.max_source_positions
    features = np.random.default_rng(0).standard_normal((1, model.config.num_mel_bins, frames))
    return {"input_features": features.astype(np.float32)}


@graph("whisper_decoder_merged", "speech decoder with cache, an If over both uses",
       "optimum automatic-speech-recognition-with-past")  # fmt: skip
def _whisper_decoder(path: Path, scale: Scale) -> Inputs:
    model = _whisper(scale)
    from_optimum.export(model, "automatic-speech-recognition-with-past", {"decoder_model_merged.onnx": path})
    half = model.config.max_source_positions
    sizes = {**cache_sizes(), "encoder_sequence_length / 2": half, "encoder_sequence_length_out": half}
    return feed_of(path, sizes, tokens=vocabulary(scale))


def _whisper(scale: Scale) -> hf.PreTrainedModel:
    """Returns a narrow whisper; optimum traces it with thirty seconds of sound, whatever the configuration says."""
    config = hf.WhisperConfig(
        vocab_size=vocabulary(scale), num_mel_bins=scale.of(80, 8), d_model=scale.of(96, 16),
        encoder_layers=scale.of(2, 1), decoder_layers=scale.of(2, 1), encoder_attention_heads=scale.of(4, 2),
        decoder_attention_heads=scale.of(4, 2), encoder_ffn_dim=scale.of(384, 24), decoder_ffn_dim=scale.of(384, 24),
        max_source_positions=1500, max_target_positions=scale.of(64, 32), pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, begin_suppress_tokens=None, suppress_tokens=None,
    )  # fmt: skip
    return settled(hf.WhisperForConditionalGeneration(config))
