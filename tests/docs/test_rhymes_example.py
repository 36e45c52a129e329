# SPDX-License-Identifier: Apache-2.0
"""The generator of examples/rhymes recites what it learned, and its requests and its pipeline fit it.

The model is run by ONNX Runtime as the file is, and its own tokens are fed back by hand; so this holds without any code
of ours.
"""

import itertools
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

RHYMES = Path(__file__).resolve().parents[2] / "examples" / "rhymes"
LARGEST_MODEL_BYTES = 200_000
GO_ON = -1
TEXTS = [rhyme.strip("\n") + "\n" for rhyme in (RHYMES / "rhymes.txt").read_text().split("\n\n")]
PIPELINE = tomllib.loads((RHYMES / "rhymes.toml").read_text())["level"][0]["pipeline"][0]
LABELS: list[str] = PIPELINE["post"][0]["steps"][0]["labels"]


def requests() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RHYMES / "talks.jsonl").read_text().splitlines()]


def prompts() -> dict[str, str]:
    return {
        one["talk"]: "".join(LABELS[token] for token in one["token"]) for one in requests() if one["token"] != [GO_ON]
    }


def test_the_pipeline_carries_each_input_but_the_token() -> None:
    graph = onnx.load(RHYMES / "rhymes.onnx").graph
    assert ["token", *PIPELINE["carry"].values()] == [one.name for one in graph.input]
    assert {*PIPELINE["carry"], "taken", "logits"} == {one.name for one in graph.output}
    assert (RHYMES / "rhymes.onnx").stat().st_size < LARGEST_MODEL_BYTES


def test_each_token_has_a_text_of_its_own() -> None:
    (logits,) = [one for one in onnx.load(RHYMES / "rhymes.onnx").graph.output if one.name == "logits"]
    assert logits.type.tensor_type.shape.dim[1].dim_value == len(LABELS) == len(set(LABELS))
    assert sorted(LABELS) == ["", *sorted(set("".join(TEXTS)))]
    assert not LABELS[0]


def test_talks_are_mixed_and_ask_for_a_whole_rhyme_each() -> None:
    order = [one["talk"] for one in requests()]
    assert sum(one != after for one, after in itertools.pairwise(order)) > len(order) / 2
    for talk, prompt in prompts().items():
        (rhyme,) = [text for text in TEXTS if text.startswith(prompt)]
        assert order.count(talk) == 1 + len(rhyme) - len(prompt)


def test_onnxruntime_recites_the_rhyme_of_each_prompt() -> None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the first import; its wheels report by default
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(RHYMES / "rhymes.onnx", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    empty = {one.name: np.zeros((2, 0, 16), np.float32) for one in session.get_inputs()[2:]}
    for prompt in prompts().values():
        token, caches, said = [LABELS.index(character) for character in prompt], empty, prompt
        while True:
            outputs = session.run(names, {"token": np.int64(token), "predicted": np.int64([0]), **caches})
            found = dict(zip(names, outputs, strict=True))
            caches = {name: found[f"{name}_after"] for name in empty}
            token = found["next"].tolist()
            if token == [0]:
                break
            said += LABELS[token[0]]
        assert said in TEXTS
