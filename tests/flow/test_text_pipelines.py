# SPDX-License-Identifier: Apache-2.0
"""From text to result in one bundle, which carries the tokenizer of its model."""

import json

import numpy as np
import onnx
import onnx.parser
import pytest
from trained_tokenizers import bert_words

from nndeploy.cli.main import run_command

WORDS = ("red", "green", "blue", "very")
EMBED = """
[source]
kind = "lines"
[[level]]
[[level.pipeline]]
[[level.pipeline.loader]]
steps = [{ use = "tokenize", tokenizer = "tokenizer.json", max-length = 6 }]
[[level.pipeline.post]]
steps = [{ use = "pool" }, { use = "l2-normalise" }]
[[sink]]
kind = "json-lines"
fields = ["embedding"]
"""


def table(rows: int):
    return np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)


@pytest.fixture
def embedder(tmp_path, monkeypatch):
    """Returns what writes a network that gives each token its row of a table, beside a pipeline and a tokenizer."""

    def write(rows: int) -> None:
        model = onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 21]> g (int64[n,t] input_ids, int64[n,t] attention_mask) =>'
            f"(float[n,t,3] last_hidden_state) <float[{rows},3] rows> {{"
            "m = Cast<to=1>(attention_mask) a = Constant<value_ints=[2]>() m1 = Unsqueeze(m, a)"
            "x = Gather(rows, input_ids) last_hidden_state = Mul(x, m1) }"
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(table(rows), "rows"))
        onnx.save(model, "m.onnx")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(bert_words(WORDS))
    (tmp_path / "embed.toml").write_text(EMBED)
    return write


COMPILE = ["compile", "m.onnx", "--pipeline", "embed.toml", "--backends", "native", "-o", "m.nnd"]


def test_a_bundle_goes_from_texts_to_vectors(embedder, tmp_path) -> None:
    embedder(8)
    assert run_command([*COMPILE, "--objective", "priority"]) == 0
    (tmp_path / "tokenizer.json").unlink()  # the bundle carries it
    (tmp_path / "texts.txt").write_bytes(b"red green\nvery very very very blue\n\xff\n")
    assert run_command(["run", "m.nnd", "--input", "texts.txt", "--output", "y.jsonl"]) == 1
    found = [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]
    for one, tokens in zip(found, ([2, 4, 5, 3], [2, 7, 7, 7, 7, 3]), strict=False):
        mean = table(8)[tokens].astype(np.float64).mean(0)
        np.testing.assert_allclose(one["outputs"]["embedding"], mean / np.sqrt((mean**2).sum()), rtol=1e-5)
    assert [one.get("error", {}).get("code") for one in found] == [None, None, "bad-input"]


def test_a_tokenizer_of_another_model_is_refused_before_anything_is_built(embedder, tmp_path, capsys) -> None:
    embedder(7)
    assert run_command(COMPILE) == 65
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert all(text in error[0] for text in ("embed.toml", "'tokenize'", "up to 7", "'input_ids'", "7 rows"))
    assert not (tmp_path / "m.nnd").exists()
