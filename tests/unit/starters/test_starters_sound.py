# SPDX-License-Identifier: Apache-2.0
"""`new vad`: names are those of the model, and what is written is the pipeline that is shipped."""

import tomllib
from pathlib import Path

import onnx
import pytest

from nndeploy.cli.main import run_command

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
PIPELINES = Path(__file__).resolve().parents[3] / "configs" / "pipelines"
VAD = {"x": (FLOAT, ["n", "t"]), "s": (FLOAT, [2, "n", 128]), "sr": (INT, [])}
SAYS = {"y": (FLOAT, ["n", 1]), "after": (FLOAT, [2, "n", 128])}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_model(inputs, outputs, path="m.onnx"):
    """Writes a model of one node with these inputs and outputs; what it computes does not matter."""
    values = [
        [onnx.helper.make_tensor_value_info(name, *kind) for name, kind in ends.items()] for ends in (inputs, outputs)
    ]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Op", [*inputs], [*outputs], domain="any")], "g", *values)
    sets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("any", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=10), path)


def written(*arguments, code=0):
    assert run_command(["new", *arguments, "-o", "p.toml"]) == code
    return None if code else tomllib.loads(Path("p.toml").read_text())


@pytest.mark.parametrize(("rate", "value"), [({"sr": (INT, [])}, 16000), ({"sr": (INT, [1])}, [16000]), ({}, None)])
def test_a_voice_detector_is_fed_as_its_model_says(rate, value) -> None:
    write_model({name: VAD[name] for name in ("s", "x")} | rate, SAYS)
    cut, listen, times = (level["pipeline"][0] for level in written("vad", "--model", "m.onnx")["level"])
    constants = [step["value"] for step in cut["loader"][0]["steps"] if step["use"] == "constant"]
    assert constants == ([] if value is None else [value])
    assert listen["inputs"] == {"x": "window"} | dict.fromkeys(rate, "sr")
    assert (listen["outputs"], listen["carry"]) == ({"y": "probability"}, {"after": "s"})
    assert times["post"][0]["steps"][0]["hop-ms"] == 32


@pytest.mark.parametrize(("inputs", "outputs"), [
    ({"x": VAD["x"]}, SAYS), (VAD | {"s": (FLOAT, [2, "n", 64])}, SAYS), (VAD | {"x": (FLOAT, ["n", 512])}, SAYS),
    (VAD | {"sr": (FLOAT, [])}, SAYS), (VAD | {"more": (INT, [])}, SAYS), (VAD, {"y": SAYS["y"]}),
    (VAD, SAYS | {"y": (FLOAT, ["n", 2])}),
])  # fmt: skip
def test_another_kind_of_model_is_one_line_and_no_file(capsys, inputs, outputs) -> None:
    write_model(inputs, outputs)
    written("vad", "--model", "m.onnx", code=65)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not Path("p.toml").exists()


def test_what_is_written_for_a_real_detector_is_the_pipeline_that_is_shipped(models_folder) -> None:
    Path("m.onnx").symlink_to(models_folder / "silero_vad_v5.onnx")
    assert written("vad", "--model", "m.onnx") == tomllib.loads((PIPELINES / "speech.toml").read_text())
