# SPDX-License-Identifier: Apache-2.0
"""Python can do what the command can, with the same defaults: run_pipeline, verify, inspect."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_with import compile_with

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.errors import InputError, UsageError

TEXT = """<ir_version: 8, opset_import: ["": 18]>
network (float[1,3] x) => (float[1,3] y) { a = Relu(x) y = Add(a, x) }"""


@pytest.fixture(name="bundle", scope="module")
def bundle_of_a_small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for ONNX Runtime."""
    path = tmp_path_factory.mktemp("bundle") / "m.nnd"
    compile_with(onnx.parser.parse_model(TEXT), path, backends=("onnxruntime",))
    return path


@pytest.fixture(name="lines")
def items_as_json_lines(tmp_path: Path) -> Path:
    """Three items, the second of which does not fit."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"x": [[1, 2, 3]]}\n{"x": [[1, 2]]}\n{"x": [[-1, 0, 1]]}\n')
    return path


def test_a_stream_is_that_of_the_command(bundle, lines, tmp_path) -> None:
    seen: list[int] = []
    summary = nndeploy.run_pipeline(
        bundle, [lines], tmp_path / "a.jsonl", on_outcome=lambda outcome: seen.append(outcome.index)
    )
    assert (summary.num_items, summary.num_failed) == (3, 1)
    assert seen == [0, 1, 2]
    assert run_command(["run", str(bundle), "--input", str(lines), "--output", str(tmp_path / "b.jsonl")]) == 1
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()


def test_the_error_of_a_single_item_is_raised(bundle, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    with pytest.raises(InputError, match="axis 1 is 2 instead of 3"):
        nndeploy.run_pipeline(bundle, [f"x=@{tmp_path / 'x.npy'}"])


def test_a_verdict_is_that_of_the_command(bundle, capsys) -> None:
    found = nndeploy.verify(bundle)
    assert found.ok
    assert [choice.backend for choice in found.choices] == ["onnxruntime"]
    assert run_command(["verify", str(bundle), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [output["max_abs"] for output in said["outputs"]] == [one.comparison.max_abs for one in found.outputs]
    assert said["members"] == found.num_members
    bytes_alone = nndeploy.verify(bundle, run=False)
    assert bytes_alone.outputs == ()
    assert not bytes_alone.ok
    with pytest.raises(UsageError, match="no effect"):
        nndeploy.verify(bundle, run=False, rtol=1e-3)


def test_what_is_inspected_is_that_of_the_command(bundle, capsys) -> None:
    found = nndeploy.inspect(bundle, here=True)
    assert [submodel.backend for submodel in found.report.submodels] == ["onnxruntime"]
    assert [choice.backend for choice in found.choices] == ["onnxruntime"]
    assert run_command(["inspect", str(bundle), "--here", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == found.report_data
    assert said["here"]["choices"][0]["variant"] == found.choices[0].variant
    assert nndeploy.inspect(bundle).chain is None
