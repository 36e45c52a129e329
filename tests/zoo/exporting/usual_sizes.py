# SPDX-License-Identifier: Apache-2.0
"""Transformers of the sizes that people deploy, cut to six layers: all layers are alike, and so is each one's share.

They are no part of the zoo, whose graphs are small so that all can be compiled in an hour.
"""

from collections.abc import Callable
from pathlib import Path

import transformers as hf
from exporting import from_optimum
from exporting.decoders import cache_sizes
from exporting.feed import feed_of
from exporting.from_torch import settled
from exporting.graphs import Inputs, Scale, graph

_LAYERS, _TOKENS, _POSITIONS = 6, 4000, 640
_LENGTH = 128

Build = Callable[[], hf.PreTrainedModel]


def _enter(name: str, kind: str, task: str, build: Build, file: str = "model.onnx") -> None:
    @graph(name, kind, f"optimum {task}, dynamic sizes")
    def make(path: Path, scale: Scale) -> Inputs:  # there is one size
        from_optimum.export(settled(build()), task, {file: path})
        sizes = {**cache_sizes(_LENGTH), "sequence_length": 1 if "past" in task else _LENGTH, "num_choices": 1}
        images = {"num_channels": 3, "height": 224, "width": 224, "feature_size": 80, "nb_max_frames": 3000}
        return feed_of(path, {**sizes, **images}, tokens=_TOKENS)


def _bert(hidden: int, heads: int) -> hf.PreTrainedModel:
    config = hf.BertConfig(
        vocab_size=_TOKENS, hidden_size=hidden, num_hidden_layers=_LAYERS, num_attention_heads=heads,
        intermediate_size=4 * hidden, max_position_embeddings=_POSITIONS,
    )  # fmt: skip
    return hf.BertModel(config)


def _distilbert() -> hf.PreTrainedModel:
    config = hf.DistilBertConfig(
        vocab_size=_TOKENS, dim=768, n_layers=_LAYERS, n_heads=12, hidden_dim=3072, max_position_embeddings=_POSITIONS
    )
    return hf.DistilBertForSequenceClassification(config)


def _deberta() -> hf.PreTrainedModel:
    config = hf.DebertaV2Config(
        vocab_size=_TOKENS, hidden_size=384, num_hidden_layers=_LAYERS, num_attention_heads=6, intermediate_size=1536,
        max_position_embeddings=_POSITIONS, relative_attention=True, position_buckets=256,
        pos_att_type=["p2c", "c2p"], share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
        type_vocab_size=0,
    )  # fmt: skip
    return hf.DebertaV2ForSequenceClassification(config)


def _t5() -> hf.PreTrainedModel:
    config = hf.T5Config(
        vocab_size=_TOKENS, d_model=512, d_kv=64, d_ff=1024, num_layers=_LAYERS, num_decoder_layers=_LAYERS,
        num_heads=8, feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return hf.T5ForConditionalGeneration(config)


def _gpt2() -> hf.PreTrainedModel:
    config = hf.GPT2Config(
        vocab_size=_TOKENS, n_embd=768, n_layer=_LAYERS, n_head=12, n_positions=_POSITIONS, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    return hf.GPT2LMHeadModel(config)


def _rotary(config: type[hf.PretrainedConfig], model: type[hf.PreTrainedModel], shared: int) -> hf.PreTrainedModel:
    """Returns a decoder with rotary positions, whose heads share so many of keys and values."""
    sizes = config(
        vocab_size=_TOKENS, hidden_size=768, intermediate_size=2048, num_hidden_layers=_LAYERS, num_attention_heads=12,
        num_key_value_heads=shared, max_position_embeddings=_POSITIONS, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return model(sizes)


def _vit() -> hf.PreTrainedModel:
    config = hf.ViTConfig(
        hidden_size=384, num_hidden_layers=_LAYERS, num_attention_heads=6, intermediate_size=1536, image_size=224
    )
    return hf.ViTForImageClassification(config)


def _whisper() -> hf.PreTrainedModel:
    config = hf.WhisperConfig(
        vocab_size=_TOKENS, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, max_source_positions=1500,
        max_target_positions=_POSITIONS, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return hf.WhisperForConditionalGeneration(config)


_enter("bert_768", "text encoder", "feature-extraction", lambda: _bert(768, 12))
_enter("distilbert_768", "text encoder", "text-classification", _distilbert)
_enter("minilm_384", "text encoder", "feature-extraction", lambda: _bert(384, 12))
_enter("deberta_384", "text encoder", "text-classification", _deberta)
_enter("t5_encoder_512", "text encoder", "text2text-generation-with-past", _t5, "encoder_model.onnx")
_enter("gpt2_768", "decoder with cache", "text-generation-with-past", _gpt2)
_enter("llama_768", "decoder with cache", "text-generation-with-past",
       lambda: _rotary(hf.LlamaConfig, hf.LlamaForCausalLM, 4))  # fmt: skip
_enter("qwen2_768", "decoder with cache", "text-generation-with-past",
       lambda: _rotary(hf.Qwen2Config, hf.Qwen2ForCausalLM, 2))  # fmt: skip
_enter("vit_384", "image classifier", "image-classification", _vit)
_enter("whisper_encoder_384", "speech encoder", "automatic-speech-recognition-with-past", _whisper,
       "encoder_model.onnx")  # fmt: skip
