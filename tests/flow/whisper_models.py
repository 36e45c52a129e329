# SPDX-License-Identifier: Apache-2.0
"""Models with the inputs and outputs of a Whisper that optimum exported, small, and what they write in numpy.

The encoder multiplies features by a matrix. A decoder scores the next token by its newest token, by the mean of all
tokens that were there (its cache), and by the mean of what the encoder heard.
"""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from trained_tokenizers import bytes_bpe

BINS, SIZE, NUM_TOKENS = 20, 6, 264
START, ENGLISH, TRANSCRIBE, PLAIN = 260, 261, 262, 263
TIMES = 264
"""The first token that is a time; the tokenizer has none of these."""
WINDOW = 100
"""Frames of a second, which these models hear at once."""
NUM_SCORES = TIMES + WINDOW // 2 + 1
FILES = ("encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged")


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
    shapes = (BINS, SIZE), (NUM_SCORES, SIZE), (SIZE, NUM_SCORES), (SIZE, NUM_SCORES), (SIZE, NUM_SCORES)
    return Weights(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def said_by_definition(weights: Weights, features: Any, **rules: Any) -> tuple[list[int], list[int], list[list[int]]]:
    """Returns what the models write for features (BINS, frames): how it begins, its tokens, and times of segments.

    In float64, window by window. `never` and `not_first` are tokens that are not taken, `stop` ends a window, `most` is
    how many it has at most, `latest` the latest first time, `languages` are those among which is chosen.
    """
    w = Weights(*(np.asarray(getattr(weights, name), np.float64) for name in Weights.__dataclass_fields__))
    begin, spoken, segments, heard = [START], list[int](), list[list[int]](), 0
    while heard < features.shape[1]:
        window = np.zeros((BINS, WINDOW))
        part = features[:, heard : heard + WINDOW]
        window[:, : part.shape[1]] = part
        encoded = (window.T @ w.listen).mean(axis=0) @ w.heard
        if len(begin) == 1:
            scores = _scores(w, begin, encoded)
            begin += [max(rules["languages"], key=lambda token: scores[token]), TRANSCRIBE]
        tokens: list[int] = []
        while len(tokens) < rules["most"]:
            new = _likeliest(_scores(w, begin + tokens, encoded), tokens, rules)
            if new == rules["stop"]:
                break
            tokens.append(new)
        used, times, moved = _split(tokens, part.shape[1])
        spoken += used
        segments += [[heard + 2 * time for time in both] for both in times]
        heard += moved
    return begin, spoken, segments


def _scores(w: Weights, tokens: Sequence[int], heard: Any) -> Any:
    vectors = w.embed[list(tokens)]
    return vectors[-1] @ w.new + vectors.mean(axis=0) @ w.past + heard


def _likeliest(scores: Any, tokens: Sequence[int], rules: Any) -> int:
    """Returns the next token, by the rules that openai/whisper has for times."""
    never = {*rules["never"], PLAIN, *([] if tokens else rules["not_first"])}
    may = [token not in never for token in range(NUM_SCORES)]
    times = [token for token in tokens if token >= TIMES]
    begins = bool(tokens) and tokens[-1] >= TIMES and (len(tokens) < 2 or tokens[-2] >= TIMES)
    ends = bool(tokens) and tokens[-1] >= TIMES and not begins
    for token in range(NUM_SCORES):
        is_time = token >= TIMES
        if not tokens and not TIMES <= token <= TIMES + rules["latest"]:
            may[token] = False
        if (begins and is_time) or (ends and token < rules["stop"]):
            may[token] = False
        if times and is_time and (token < times[-1] or (token == times[-1] and not ends)):
            may[token] = False
    shares = [math.exp(score) if one else 0.0 for score, one in zip(scores, may, strict=True)]
    if sum(shares[TIMES:]) > max(shares[:TIMES]):
        shares[:TIMES] = [0.0] * TIMES
    return max(range(NUM_SCORES), key=lambda token: shares[token])


def _split(tokens: list[int], frames: int) -> tuple[list[int], list[tuple[int, int]], int]:
    """Returns the tokens that count, begin and end of each segment in times, and the frames that are done with."""
    pairs = [i for i in range(1, len(tokens)) if tokens[i] >= TIMES and tokens[i - 1] >= TIMES]
    if not pairs:
        times = [token - TIMES for token in tokens if token >= TIMES]
        return tokens, [(0, times[-1] if times and times[-1] else frames // 2)] if tokens else [], frames
    is_open = not (tokens[-1] >= TIMES and tokens[-2] < TIMES)
    edges = [0, *pairs] + ([] if is_open else [len(tokens)])
    found = [(tokens[i] - TIMES, tokens[j - 1] - TIMES) for i, j in itertools.pairwise(edges)]
    if not is_open:
        return tokens, found, frames
    return tokens[: pairs[-1] + 1], found, min(2 * found[-1][1], frames)


def write_models(folder: Path, weights: Weights, config: dict[str, Any]) -> None:
    """Writes the four models, and the files that optimum puts beside them, with `config` for the generation."""
    models = _encoder(weights), _decoder(weights, False), _decoder(weights, True), _merged(weights)
    for name, model in zip(FILES, models, strict=True):
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
    inputs = [_IDS, *(_caches("past_key_values", "past") if is_cached else [_HIDDEN])]
    outputs = [_LOGITS, *_caches("present", "past + t")[: 1 if is_cached else 2]]
    return _model(_nodes(is_cached), inputs, outputs, _constants(weights))


def _merged(weights: Weights) -> Any:
    """Returns both in one, which does as `use_cache_branch` says; with a cache it gives no rows of what was heard."""
    none = onnx.numpy_helper.from_array(np.zeros((0, 1, 1, SIZE), np.float32))
    ends = [_LOGITS, *_caches("present", "past + t")]
    branches = [
        onnx.helper.make_graph(nodes, name, [], ends)
        for name, nodes in (
            ("with", [*_nodes(True), onnx.helper.make_node("Constant", [], [ends[2].name], value=none)]),
            ("without", _nodes(False)),
        )
    ]
    names = [one.name for one in ends]
    either = onnx.helper.make_node("If", [MERGED], names, then_branch=branches[0], else_branch=branches[1])
    inputs = [_IDS, _HIDDEN, *_caches("past_key_values", "past")]
    inputs.append(onnx.helper.make_tensor_value_info(MERGED, onnx.TensorProto.BOOL, [1]))
    return _model([either], inputs, ends, _constants(weights))


def _nodes(is_cached: bool) -> list[Any]:
    node, heard = onnx.helper.make_node, "past_key_values.0.encoder.key" if is_cached else "present.0.encoder.key"
    return [
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


def _caches(which: str, length: str) -> list[Any]:
    return [
        _float(f"{which}.0.decoder.key", "b", 1, length, SIZE), _float(f"{which}.0.encoder.key", "b", 1, "s", SIZE),
    ]  # fmt: skip


def _constants(weights: Weights) -> dict[str, Any]:
    numbers = {"one": np.array([1]), "axes": np.array([1, 2])}
    return {"embed": weights.embed, "new": weights.new, "past": weights.past, "heard": weights.heard} | numbers


MERGED = "use_cache_branch"
_IDS = onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["b", "t"])
_HIDDEN = _float("encoder_hidden_states", "b", "s", SIZE)
_LOGITS = _float("logits", "b", "t", NUM_SCORES)
