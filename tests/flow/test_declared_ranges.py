# SPDX-License-Identifier: Apache-2.0
"""`--shape` with ranges, from the command to the run: any size inside is right, others are refused in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from faulty_backends import changed_backend

TWO_INPUTS = """<ir_version: 8, opset_import: ["": 18]>
two (float[N,3] a, float[N] b) => (float[N,3] y) { axis = Constant<value = int64[1] {1}>()
  column = Unsqueeze(b, axis) t = Add(a, column) y = Tanh(t) }"""


@pytest.fixture
def two_inputs(tmp_path: Path) -> Path:
    path = tmp_path / "two.onnx"
    onnx.save(onnx.parser.parse_model(TWO_INPUTS), path)
    return path


def test_sizes_of_a_name_hold_for_every_input_and_others_are_error_records(nndeploy_command, two_inputs) -> None:
    bundle, lines = two_inputs.with_suffix(".nnd"), two_inputs.with_suffix(".jsonl")
    made = nndeploy_command(
        "compile", two_inputs, "-o", bundle, "--backends", "onnxruntime", "--shape", "N=2..8:3:5"
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    sizes = [(2, 2), (5, 5), (8, 8), (3, 3), (1, 1), (11, 11), (0, 0), (5, 2)]
    lines.write_text("".join(json.dumps({"a": [[0.5] * 3] * n, "b": [0.5] * m}) + "\n" for n, m in sizes))
    done = nndeploy_command("run", bundle, "--input", lines, "--output", "-")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    for record, (rows, _) in zip(records[:3], sizes, strict=False):
        np.testing.assert_allclose(record["outputs"]["y"], np.full((rows, 3), np.tanh(1.0)), rtol=1e-5)
    messages = [record["error"]["message"].partition(": ")[2] for record in records[3:]]
    assert [record["error"]["code"] for record in records[3:]] == ["bad-input"] * 5
    for message, words in zip(messages, [
        "input 'a': axis 0 (N) is 3, not 2 and a multiple of 3, as 2..8:3 says",
        "input 'a': axis 0 (N) is 1, outside 2..8:3", "input 'a': axis 0 (N) is 11, outside 2..8:3",
        "input 'a'",  # an empty list says no rank
        "input 'b': axis 0 (N) is 2, but it is 5 in input 'a'",
    ], strict=True):  # fmt: skip
        assert message.startswith(words)
        assert "\n" not in message
    shown = nndeploy_command("inspect", bundle).stdout
    assert "2..8:3, best 5" in shown


WRONG_WHEN_LARGE = 50


def wrong_when_large(outputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value + (value.shape[0] > WRONG_WHEN_LARGE) for name, value in outputs.items()}


def test_a_backend_that_is_wrong_at_some_sizes_of_a_range_is_found(tmp_path, install) -> None:
    install(changed_backend("quack", 0, wrong_when_large))
    options = {"backends": ("quack", "onnxruntime"), "keep_fallback": False}
    model = onnx.parser.parse_model(TWO_INPUTS)
    small = compile_with(model, tmp_path / "small.nnd", shapes={"N": "1..50"}, objective="priority", **options)
    assert [submodel.backend for submodel in small.submodels] == ["quack"]
    large = compile_with(model, tmp_path / "large.nnd", shapes={"N": "1..64"}, objective="priority", **options)
    assert [submodel.backend for submodel in large.submodels] == ["onnxruntime"]
    assert "quack lost" in large.dropped[0]
    assert " at " in large.dropped[0]
    assert "a[64,3]" in large.dropped[0]
    assert {"a[64,3] b[64]", "a[1,3] b[1]"} <= set(large.shapes)
    assert {check.sample for check in large.checks if check.scope == "whole"} == set(range(len(large.shapes)))


def test_a_range_with_sizes_that_the_model_itself_refuses_is_warned_of(tmp_path) -> None:
    report = compile_with(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[4,M] y) {
            shape = Constant<value = int64[2] {4, -1}>() y = Reshape(x, shape) }"""
        ),
        tmp_path / "m.nnd",
        backends=("onnxruntime",),
        shapes={"x": "4..64:32"},
    )
    assert any("does not run at N = " in warning and "inside its ranges" in warning for warning in report.warnings)
    assert report.shapes[:3] == ("x[32]", "x[4]", "x[64]")
