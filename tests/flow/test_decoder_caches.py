# SPDX-License-Identifier: Apache-2.0
"""A decoder whose cache is an input and, one part longer, an output: from the model to a loop and to a pipeline."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import nndeploy
from nndeploy.cli.main import run_command

Array = np.ndarray[Any, Any]
MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,t,8] x, float[1,past,8] before) => (float[1,t,8] y, float[1,all,8] after) {
    after = Concat<axis=1>(before, x) turned = Transpose<perm=[0,2,1]>(after) a = MatMul(x, turned)
    w = Softmax<axis=-1>(a) y = MatMul(w, after) }"""


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a bundle of attention over everything so far, on native kernels."""
    folder = tmp_path_factory.mktemp("decoder")
    model = onnx.parser.parse_model(MODEL)
    model.graph.output[1].type.tensor_type.shape.dim[1].dim_param = "past + t"
    onnx.save(model, folder / "decoder.onnx")
    bundle = folder / "decoder.nnd"
    command = ["compile", str(folder / "decoder.onnx"), "--backends", "native", "--objective", "priority"]
    assert run_command([*command, "--no-fallback", "-o", str(bundle)]) == 0
    return bundle


def expected(tokens: Array) -> Array:
    """Returns what attention of each token over itself and those before it gives."""
    rows = []
    for number in range(len(tokens)):
        seen = tokens[: number + 1].astype(np.float64)
        w = np.exp(seen @ seen[-1] - (seen @ seen[-1]).max())
        rows.append(w / w.sum() @ seen)
    return np.array(rows)


def test_a_loop_of_a_decoder_copies_no_past(decoder) -> None:
    tokens = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    cache, found, places = np.zeros((1, 0, 8), np.float32), [], set()
    with nndeploy.load_bundle(decoder) as program:
        for token in tokens:
            outputs = program.run({"x": token[None, None], "before": cache})
            cache = outputs["after"]
            places.add(cache.__array_interface__["data"][0])
            found.append(outputs["y"][0, 0])
    assert len(places) == 1
    np.testing.assert_allclose(found, expected(tokens), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cache[0], tokens)


def test_a_pipeline_carries_a_cache_that_begins_empty(decoder, tmp_path) -> None:
    tokens = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
    (tmp_path / "p.toml").write_text(f"""[source]
kind = "json-lines"
fields = ["tokens"]
[[level]]
[[level.pipeline]]
name = "decode"
model = "{decoder}"
each = "tokens"
part = "x"
carry = {{ after = "before" }}
outputs = {{ y = "y" }}
""")
    (tmp_path / "in.jsonl").write_text(json.dumps({"tokens": tokens[:, None, None].tolist()}) + "\n")
    out = tmp_path / "out.jsonl"
    command = ["run", "--pipeline", tmp_path / "p.toml", "--input", tmp_path / "in.jsonl", "--output", out]
    assert run_command([str(word) for word in command]) == 0
    record = json.loads(out.read_text())
    np.testing.assert_allclose(np.reshape(record["outputs"]["y"], (5, 8)), expected(tokens), rtol=1e-5, atol=1e-5)


SESSIONS = """[source]
kind = "json-lines"
fields = ["talk", "token"]
[[level]]
[[level.pipeline]]
name = "decode"
model = "{decoder}"
inputs = {{ x = "token" }}
outputs = {{ y = "y" }}
carry = {{ after = "before" }}
session = "talk"
{more}
[[sink]]
kind = "json-lines"
fields = ["talk", "y"]
"""


def sessions_file(folder: Path, decoder: Path, more: str = "") -> Path:
    path = folder / "p.toml"
    path.write_text(SESSIONS.format(decoder=decoder, more=more))
    return path


def test_talks_that_come_mixed_each_go_on_from_their_own_cache(decoder, tmp_path, capsys) -> None:
    random = np.random.default_rng(2)
    talks = {name: random.standard_normal((4, 8)).astype(np.float32) for name in "abc"}
    order = [(name, number) for number in range(4) for name in "abc"]
    lines = [{"talk": name, "token": talks[name][number][None, None].tolist()} for name, number in order]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for limit in (3, 2):
        pipeline, out = sessions_file(tmp_path, decoder, f"sessions = {limit}"), tmp_path / f"{limit}.jsonl"
        command = ["run", "--pipeline", pipeline, "--input", tmp_path / "in.jsonl", "--output", out]
        assert run_command([str(word) for word in command]) == 0
        records = [json.loads(line)["outputs"] for line in out.read_text().splitlines()]
        found = {name: [np.ravel(one["y"]) for one in records if one["talk"] == name] for name in "abc"}
        for name, tokens in talks.items():
            # of three talks in turn, with room for two each was forgotten when it comes again
            wanted = expected(tokens) if limit == 3 else tokens
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)
        assert ("10 sessions" in capsys.readouterr().err) == (limit == 2)


@pytest.mark.parametrize(("more", "options", "message"), [
    ("runners = 2", [], "one loader and one runner"),
    ('each = "token"\npart = "x"', [], "each and session exclude each other"),
    ("sessions = 0", [], "sessions"),
    ("", ["--resume"], "--resume and session exclude each other"),
], ids=["two runners", "parts", "no state", "resume"])  # fmt: skip
def test_what_sessions_cannot_have_is_one_line(more, options, message, decoder, tmp_path, capsys) -> None:
    (tmp_path / "in.jsonl").write_text("")
    command = ["run", "--pipeline", sessions_file(tmp_path, decoder, more), "--input", tmp_path / "in.jsonl"]
    code = run_command([str(word) for word in [*command, "--output", tmp_path / "out.jsonl", *options]])
    told = capsys.readouterr().err
    assert code in (64, 65, 2)
    assert message in told
    assert len(told.strip().splitlines()) == 1
