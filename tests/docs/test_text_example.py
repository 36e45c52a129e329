# SPDX-License-Identifier: Apache-2.0
"""The models of examples/text fit their tokenizers, and the writer recites: by ONNX Runtime and `tokenizers` alone.

Its own tokens are fed back by hand, so this holds without any code of ours.
"""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

TEXT = Path(__file__).resolve().parents[2] / "examples" / "text"
RHYMES = [rhyme.strip("\n") + "\n" for rhyme in (TEXT.parent / "rhymes" / "rhymes.txt").read_text().split("\n\n")]
LARGEST_MODEL_BYTES = 200_000
tokenizers = pytest.importorskip("tokenizers", reason="the extra text is not installed")


@pytest.fixture(params=["writer", "embedder"])
def folder(request):
    return TEXT / request.param


def test_each_token_has_a_row(folder) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    graph = onnx.load(folder / "model.onnx").graph
    (rows,) = [one.dims[0] for one in graph.initializer if one.name in ("embedding_weight", "table")]
    assert sorted(tokenizer.get_vocab().values()) == list(range(rows))
    assert (folder / "model.onnx").stat().st_size < LARGEST_MODEL_BYTES


@pytest.mark.parametrize("prompt", ["Twinkle", "Baa, baa", "Jack and"])
def test_onnxruntime_recites_the_rhyme_of_a_prompt(prompt) -> None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the first import; its wheels report by default
    onnxruntime = pytest.importorskip("onnxruntime")
    tokenizer = tokenizers.Tokenizer.from_file(str(TEXT / "writer" / "tokenizer.json"))
    session = onnxruntime.InferenceSession(TEXT / "writer" / "model.onnx", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    caches = {one.name: np.zeros((1, 2, 0, 16), np.float32) for one in session.get_inputs()[3:]}
    tokens, new = list[int](), tokenizer.encode(prompt).ids
    while new != [0]:
        begin, tokens = len(tokens), tokens + new
        inputs = {
            "input_ids": np.array([new]),
            "attention_mask": np.ones((1, len(tokens)), np.int64),
            "position_ids": np.arange(begin, len(tokens))[None],
        }
        found = dict(zip(names, session.run(names, inputs | caches), strict=True))
        caches = {name: found[name.replace("past_key_values", "present")] for name in caches}
        new = [int(found["logits"][0, -1].argmax())]
    assert tokenizer.decode(tokens) in RHYMES
