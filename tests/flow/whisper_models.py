# SPDX-License-Identifier: Apache-2.0
"""Three models with the inputs and outputs of a Whisper that optimum exported, small, and what they write in numpy.

The encoder multiplies features by a matrix. A decoder scores the next token by its newest token, by the mean of all
tokens that were there (its cache), and by the mean of what the encoder heard.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from trained_tokenizers import bytes_bpe

BINS, SIZE, NUM_TOKENS = 20, 6, 264
START, ENGLISH, TRANSCRIBE, PLAIN = 260, 261, 262, 263
FILES = ("encoder_model", "decoder_model", "decoder_with_past_model")


@dataclass(frozen=True)
class Weights:
    """Weights of all three: of features, tokens, and of scores by what is new, was there and was heard."""

    listen: Any
    embed: Any
    new: Any
    past: Any
    heard: Any


def weights_of(seed: int) -> Weights:
    rng = np.random.default_rng(seed)
    shapes = (BINS, SIZE), (NUM_TOKENS, SIZE), (SIZE, NUM_TOKENS), (SIZE, NUM_TOKENS), (SIZE, NUM_TOKENS)
    return Weights(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def written_by_definition(weights: Weights, features: Any, begin: Sequence[int], **rules: Any) -> list[int]:
    """Returns the tokens behind `begin` that the models write for features (BINS, frames), in float64.

    `never` and `not_first` are tokens that are not taken, `stop` ends the text, `most` is how many it has at most.
    """
    w = Weights(*(np.asarray(getattr(weights, name), np.float64) for name in Weights.__dataclass_fields__))
    heard = (features.T.astype(np.float64) @ w.listen).mean(axis=0) @ w.heard
    tokens, found = list(begin), list[int]()
    while len(found) < rules["most"]:
        vectors = w.embed[tokens]
        scores = vectors[-1] @ w.new + vectors.mean(axis=0) @ w.past + heard
        scores[[*rules["never"], *([] if found else rules["not_first"])]] = -np.inf
        new = int(scores.argmax())
        if new == rules["stop"]:
            break
        tokens.append(new)
        found.append(new)
    return found


def write_models(folder: Path, weights: Weights, config: dict[str, Any]) -> None:
    """Writes the three models, and the files that optimum puts beside them, with `config` for the generation."""
    for name, model in zip(FILES, (_encoder(weights), _decoder(weights, False), _decoder(weights, True)), strict=True):
        onnx.save(model, folder / f"{name}.onnx")
    said = {
        "decoder_start_token_id": START, "lang_to_id": {"<|de|>": 7, "<|en|>": ENGLISH},
        "task_to_id": {"translate": 8, "transcribe": TRANSCRIBE}, "no_timestamps_token_id": PLAIN, "eos_token_id": 0,
    }  # fmt: skip
    beside = {
        "generation_config.json": said | config, "config.json": {"max_target_positions": 32},
        "preprocessor_config.json": {"feature_size": BINS, "chunk_length": 1, "hop_length": 160, "n_fft": 400},
    }  # fmt: skip
    for name, data in beside.items():
        (folder / name).write_text(json.dumps(data), encoding="utf-8")
    (folder / "tokenizer.json").write_bytes(bytes_bpe(size=NUM_TOKENS))


def _float(name: str, *sizes: "int | str") -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, sizes)


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> Any:
    kept = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, kept)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def _encoder(weights: Weights) -> Any:
    node = onnx.helper.make_node
    nodes = [
        node("Transpose", ["input_features"], ["rows"], perm=[0, 2, 1]),
        node("MatMul", ["rows", "w"], ["last_hidden_state"]),
    ]
    inputs, outputs = [_float("input_features", "b", BINS, 100)], [_float("last_hidden_state", "b", 100, SIZE)]
    return _model(nodes, inputs, outputs, {"w": weights.listen})


def _decoder(weights: Weights, is_cached: bool) -> Any:
    """Returns the decoder that takes the cache, or the one that takes what the encoder gives."""
    node, heard = onnx.helper.make_node, "past_key_values.0.encoder.key" if is_cached else "present.0.encoder.key"
    nodes = [
        node("Gather", ["embed", "input_ids"], ["vectors"]),
        node("Unsqueeze", ["vectors", "one"], ["keys"]),
        node("Concat", ["past_key_values.0.decoder.key", "keys"], ["present.0.decoder.key"], axis=2)
        if is_cached else node("Identity", ["keys"], ["present.0.decoder.key"]),
        *([] if is_cached else [node("Unsqueeze", ["encoder_hidden_states", "one"], [heard])]),
        node("ReduceMean", ["present.0.decoder.key", "axes"], ["mean"], keepdims=0),
        node("ReduceMean", [heard, "axes"], ["mean heard"], keepdims=0),
        node("MatMul", ["vectors", "new"], ["a"]), node("MatMul", ["mean", "past"], ["b"]),
        node("MatMul", ["mean heard", "heard"], ["c"]), node("Add", ["a", "b"], ["ab"]),
        node("Add", ["ab", "c"], ["logits"]),
    ]  # fmt: skip
    ids = onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["b", "t"])
    caches = [
        _float("past_key_values.0.decoder.key", "b", 1, "past", SIZE),
        _float("past_key_values.0.encoder.key", "b", 1, "s", SIZE),
    ]
    inputs = [ids, *(caches if is_cached else [_float("encoder_hidden_states", "b", "s", SIZE)])]
    outputs = [
        _float("logits", "b", "t", NUM_TOKENS),
        _float("present.0.decoder.key", "b", 1, "past + t" if is_cached else "t", SIZE),
        *([] if is_cached else [_float(heard, "b", 1, "s", SIZE)]),
    ]
    constants = {"embed": weights.embed, "new": weights.new, "past": weights.past, "heard": weights.heard}
    numbers = {"one": np.array([1]), "axes": np.array([1, 2])}
    return _model(nodes, inputs, outputs, constants | numbers)
