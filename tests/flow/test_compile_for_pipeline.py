# SPDX-License-Identifier: Apache-2.0
"""A model with open sizes and a pipeline that fixes them: what the bundle takes, what is told, what is refused."""

import io
import json

import numpy as np
import onnx.parser
import pytest
from PIL import Image

from nndeploy import load_bundle
from nndeploy.cli.main import run_command

MODEL = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,3,H,W] tensor) => (float[N,3] y) { a = Relu(tensor) y = ReduceMean<keepdims = 0>(a, axes) }"""
PIPELINE = """
[source]
kind = "images"
[[level]]
[[level.pipeline]]
{head}
[[level.pipeline.loader]]
steps = [
    {{ use = "decode" }}, {{ use = "letterbox", width = 32, height = 16 }},
    {{ use = "normalise" }}, {{ use = "layout" }},
]
[[sink]]
kind = "json-lines"
fields = ["y"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


def write(folder, head: str = "", sizes: str = "N,3,H,W") -> None:
    (folder / "p.toml").write_text(PIPELINE.format(head=head))
    text = MODEL.replace("N,3,H,W", sizes).replace("{ a", "<int64[2] axes = {2, 3}> { a")
    (folder / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())


def compiled(*options: str) -> int:
    return run_command(["compile", "m.onnx", "--pipeline", "p.toml", "-o", "m.nnd", "--backends", "native", *options])


def taken() -> tuple:
    with load_bundle("m.nnd") as program:
        return program.manifest.inputs[0].type.shape


def test_the_bundle_takes_what_the_pipeline_makes_and_says_so(here, capsys) -> None:
    assert compiled() == 0
    assert "tensor=1,?,16,32 (--shape" in capsys.readouterr().out
    assert taken() == (1, 3, 16, 32)
    assert run_command(["inspect", "m.nnd"]) == 0
    assert "made by the pipeline  tensor  1,?,16,32" in capsys.readouterr().out
    file = io.BytesIO()
    Image.fromarray(np.full((20, 40, 3), 7, np.uint8)).save(file, "PNG")
    (here / "x.png").write_bytes(file.getvalue())
    assert run_command(["run", "m.nnd", "--input", "x.png", "--output", "y.jsonl"]) == 0
    assert json.loads((here / "y.jsonl").read_text())["outputs"]["y"] == [[7, 7, 7]]


@pytest.mark.parametrize(("head", "options", "found"), [
    ("batch = 4", [], ("N", 3, 16, 32)), ("", ["--shape", "tensor=?,3,?,32"], ("N", 3, "H", 32)),
    ("", ["--shape", "N=1..8"], ("N", 3, 16, 32)), ('inputs = { tensor = "other" }', [], None),
])  # fmt: skip
def test_what_varies_or_is_asked_for_stays_open(here, head, options, found) -> None:
    write(here, head)
    assert compiled(*options) == (65 if found is None else 0)
    assert found is None or taken() == found


@pytest.mark.parametrize(("sizes", "options", "code", "told"), [
    ("N,3,64,64", [], 65, "make axis 2 of the input 'tensor' 16, the model has 64"),
    ("N,3,H,W", ["--shape", "tensor=1,3,64,64"], 2, "make axis 2 of the input 'tensor' 16, --shape says 64"),
])  # fmt: skip
def test_sizes_that_contradict_the_pipeline_are_refused_in_a_line(here, capsys, sizes, options, code, told) -> None:
    write(here, sizes=sizes)
    assert compiled(*options) == code
    assert told in capsys.readouterr().err.splitlines()[-1]
