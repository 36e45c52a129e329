# SPDX-License-Identifier: Apache-2.0
"""Texts that a language model writes in the same calls, beside the same texts written one by one."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from decoders import Decoder
from whole_compile import children_seconds

NUM_TEXTS, PROMPT, TOKENS = 16, (8, 33), 48
"""How many texts are written, of how many tokens their prompts have (at least, and less than), and the texts."""
_PIPELINE = """
[source]
kind = "lines"
[[level]]
[[level.pipeline]]
batch = {batch}
carry = {{ "present.*" = "past_key_values.*" }}
[[level.pipeline.loader]]
steps = [
    {{ use = "tokenize", tokenizer = "tokenizer.json" }},
    {{ use = "prompt" }},
]
[level.pipeline.loop]
steps = [
    {{ use = "sample", tokenizer = "tokenizer.json", max-tokens = {tokens} }},
    {{ use = "next-inputs" }},
]
[[sink]]
kind = "json-lines"
fields = ["tokens"]
"""


class Written(NamedTuple):
    """Tokens a second of wall and of processor time, prompts and loading included, and what was written."""

    rate: float
    per_processor: float
    texts: list[list[int]]


def write_pipeline(decoder: Decoder, folder: Path, batch: int) -> Path:
    """Writes the pipeline that makes texts of prompts, and its tokenizer, into a folder; returns the pipeline."""
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer(decoder.tokens)))
    path = folder / "p.toml"
    path.write_text(_PIPELINE.format(batch=batch, tokens=TOKENS))
    return path


def written(decoder: Decoder, bundle: Path, batch: int, threads: int) -> Written:
    """Returns what a bundle takes to write the texts, `batch` of them at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline = write_pipeline(decoder, folder, batch)
        dice = np.random.default_rng(2)
        prompts = [dice.integers(0, decoder.tokens, size) for size in dice.integers(*PROMPT, NUM_TEXTS)]
        (folder / "x.txt").write_text("".join(" ".join(f"t{i}" for i in one) + "\n" for one in prompts))
        command = [sys.executable, "-m", "nndeploy", "run", bundle, "--pipeline", pipeline, "--input",
                   folder / "x.txt", "--output", folder / "y.jsonl", "--threads", threads, "--json"]  # fmt: skip
        before = children_seconds()
        told: dict[str, Any] = json.loads(
            subprocess.run(list(map(str, command)), stdout=-1, stderr=-3, check=True).stdout
        )
        processor = children_seconds() - before
        lines = (folder / "y.jsonl").read_text().splitlines()
    texts = [json.loads(line)["outputs"]["tokens"] for line in lines]
    count = sum(map(len, texts))
    return Written(count / told["seconds"], count / processor, texts)


def _tokenizer(count: int) -> dict[str, Any]:
    """Returns a tokenizer of words t0, t1 and so on, each a token of that number."""
    words = {f"t{i}": i for i in range(count)}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "t0"},
    }  # fmt: skip
