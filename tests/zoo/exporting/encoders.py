# SPDX-License-Identifier: Apache-2.0
"""Text encoders of transformers, by optimum and by torch's newer exporter."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import transformers as hf
from exporting import from_optimum, from_torch
from exporting.feed import feed_of
from exporting.from_torch import settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn

_VOCABULARY = 2000
_SMALL_VOCABULARY = 40
Build = Callable[[Scale], hf.PreTrainedModel]


def sizes_of(scale: Scale, length: int = 48) -> Mapping[str, int]:
    """Returns the sizes of the symbols of an encoder."""
    return {"batch_size": 1, "sequence_length": scale.of(length, 6), "num_choices": 1}


def vocabulary(scale: Scale) -> int:
    """Returns how many tokens there are."""
    return scale.of(_VOCABULARY, _SMALL_VOCABULARY)


def _enter(name: str, kind: str, task: str, build: Build, *, length: int = 48) -> None:
    @graph(name, kind, f"optimum {task}, dynamic batch, sequence")
    def make(path: Path, scale: Scale) -> Inputs:
        model = settled(build(scale))
        from_optimum.export(model, task, {"model.onnx": path})
        return feed_of(path, sizes_of(scale, length), tokens=vocabulary(scale))


def bert(scale: Scale, hidden: int = 128, layers: int = 4) -> hf.PreTrainedModel:
    """Returns a classifier of texts."""
    config = hf.BertConfig(
        vocab_size=vocabulary(scale), hidden_size=scale.of(hidden, 16), num_hidden_layers=scale.of(layers, 1),
        num_attention_heads=scale.of(4, 2), intermediate_size=scale.of(4 * hidden, 24), num_labels=3,
        max_position_embeddings=scale.of(256, 16),
    )  # fmt: skip
    return hf.BertForSequenceClassification(config)


def _minilm(scale: Scale) -> hf.PreTrainedModel:
    config = hf.BertConfig(
        vocab_size=vocabulary(scale), hidden_size=scale.of(384, 16), num_hidden_layers=scale.of(6, 1),
        num_attention_heads=scale.of(12, 2), intermediate_size=scale.of(1536, 24), max_position_embeddings=256,
    )  # fmt: skip
    return hf.BertModel(config)


def _distilbert(scale: Scale) -> hf.PreTrainedModel:
    config = hf.DistilBertConfig(
        vocab_size=vocabulary(scale), dim=scale.of(192, 16), n_layers=scale.of(3, 1), n_heads=scale.of(6, 2),
        hidden_dim=scale.of(768, 24), max_position_embeddings=scale.of(256, 16),
    )  # fmt: skip
    return hf.DistilBertForSequenceClassification(config)


def _roberta(scale: Scale) -> hf.PreTrainedModel:
    config = hf.RobertaConfig(
        vocab_size=vocabulary(scale), hidden_size=scale.of(192, 16), num_hidden_layers=scale.of(3, 1),
        num_attention_heads=scale.of(6, 2), intermediate_size=scale.of(768, 24), max_position_embeddings=130,
    )  # fmt: skip
    return hf.RobertaForTokenClassification(config)


def _deberta(scale: Scale) -> hf.PreTrainedModel:
    config = hf.DebertaV2Config(
        vocab_size=vocabulary(scale), hidden_size=scale.of(128, 16), num_hidden_layers=scale.of(3, 1),
        num_attention_heads=scale.of(4, 2), intermediate_size=scale.of(512, 24), max_position_embeddings=128,
        relative_attention=True, position_buckets=32, pos_att_type=["p2c", "c2p"], share_att_key=True,
        norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0,
    )  # fmt: skip
    return hf.DebertaV2ForSequenceClassification(config)


def _albert(scale: Scale) -> hf.PreTrainedModel:
    config = hf.AlbertConfig(
        vocab_size=vocabulary(scale), embedding_size=scale.of(64, 8), hidden_size=scale.of(192, 16),
        num_hidden_layers=scale.of(4, 2), num_attention_heads=scale.of(4, 2), intermediate_size=scale.of(768, 24),
        max_position_embeddings=scale.of(128, 16),
    )  # fmt: skip
    return hf.AlbertForSequenceClassification(config)


def _electra(scale: Scale) -> hf.PreTrainedModel:
    config = hf.ElectraConfig(
        vocab_size=vocabulary(scale), embedding_size=64, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=128,
    )  # fmt: skip
    return hf.ElectraForTokenClassification(config)


def _mpnet(scale: Scale) -> hf.PreTrainedModel:
    config = hf.MPNetConfig(
        vocab_size=vocabulary(scale), hidden_size=192, num_hidden_layers=3, num_attention_heads=6,
        intermediate_size=768, max_position_embeddings=130,
    )  # fmt: skip
    return hf.MPNetModel(config)


_enter("bert", "text encoder", "text-classification", bert)
_enter("minilm", "text encoder", "feature-extraction", _minilm)
_enter("distilbert", "text encoder", "text-classification", _distilbert)
_enter("roberta", "text encoder", "token-classification", _roberta)
_enter("deberta_v2", "text encoder", "text-classification", _deberta)
_enter("albert", "text encoder", "text-classification", _albert)
_enter("electra", "text encoder", "token-classification", _electra)
_enter("mpnet", "text encoder", "feature-extraction", _mpnet)


class _TwoInputs(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def _enter_dynamo(name: str, build: Build, *, dynamic: bool, hidden: int = 128) -> None:
    @graph(name, "text encoder", f"torch dynamo, {'dynamic batch, sequence' if dynamic else 'fixed'}")
    def make(path: Path, scale: Scale) -> Inputs:
        model = _TwoInputs(settled(build(scale)))
        length = scale.of(48, 6)
        ids = torch.randint(0, vocabulary(scale), (2 if dynamic else 1, length))
        example = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        axes = {key: {0: "batch", 1: "sequence"} for key in example} if dynamic else None
        inputs = from_torch.export(model, example, path, dynamo=True, outputs=["logits"], axes=axes)
        return {key: value[:1] for key, value in inputs.items()}


_enter_dynamo("bert_dynamo", bert, dynamic=True)
_enter_dynamo("bert_fixed", lambda scale: bert(scale, 256, 3), dynamic=False)
_enter_dynamo("distilbert_fixed", _distilbert, dynamic=False)
