# SPDX-License-Identifier: Apache-2.0
"""Each file of configs/pipelines through `run`, as its first lines say: bundles in, results out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests_flow_bundles import write_model

from nndeploy.cli.main import run_command

REPOSITORY = Path(__file__).resolve().parents[2]
PIPELINES = REPOSITORY / "configs" / "pipelines"
DIGITS = REPOSITORY / "examples" / "digits"
# Pipeline: the model of each pipeline in it ("": the only one, named as the bundle), and inputs.
EXAMPLES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "faces": ({"": "ultraface_rfb320"}, ("face_16.jpg", "face_group.jpg")),
    "objects": ({"": "fastestdet"}, ("objects_street.jpg",)),
    "faces-and-objects": ({"faces": "ultraface_rfb320", "objects": "fastestdet"}, ("objects_street.jpg",)),
    "read-text": ({"find": "ppocr_det_mobile_v2", "read": "ppocr_rec_en_mobile_v2"}, ("text_photo.jpg",)),
    "speech": ({"": "silero_vad_v5"}, ("speech_yes.wav",)),
    "speech-fsmn": ({"": "fsmn_vad_online"}, ("speech_yes.wav",)),
    "file-type": (
        {"": "magika_standard_v3_3"},
        ("file_code.py", "face_16.jpg", "file_magika_test.pdf", "short_speech.wav"),
    ),
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in PIPELINES.glob("*.toml")} == {"digits", *EXAMPLES}


def test_digits(tmp_path) -> None:
    bundle = tmp_path / "digits.nnd"
    options = ["--backends", "onnxruntime", "--objective", "priority"]
    assert run_command(["compile", str(DIGITS / "digits.onnx"), *options, "-o", str(bundle)]) == 0
    arguments = ["run", str(bundle), "--pipeline", str(PIPELINES / "digits.toml"), "--input", str(DIGITS / "png")]
    assert run_command([*arguments, "--output", str(tmp_path / "out.jsonl")]) == 0
    records = lines(tmp_path / "out.jsonl")
    assert len(records) == len(list((DIGITS / "png").glob("*.png")))
    assert all(record["outputs"]["labels"] == [Path(record["origin"]).stem[-1]] for record in records)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name, tmp_path, models_folder) -> None:
    models, inputs = EXAMPLES[name]
    arguments = ["run", "--pipeline", str(PIPELINES / f"{name}.toml")]
    for pipeline, model in models.items():
        bundle = write_model(tmp_path / f"{model}.nnd", models_folder / f"{model}.onnx")
        arguments += ["--model", f"{pipeline}={bundle}"] if pipeline else [str(bundle)]
    for file in inputs:
        arguments += ["--input", str(models_folder / "inputs" / file)]
    output = tmp_path / "out.jsonl"
    if name in ("objects", "faces-and-objects"):  # several sinks, in a folder
        assert run_command([*arguments, "--output", str(tmp_path / "out")]) == 0
        output = tmp_path / "out" / "json-lines.jsonl"
        assert len(list((tmp_path / "out" / "images").iterdir())) == len(inputs)
    else:
        assert run_command([*arguments, "--output", str(output)]) == 0
    found = [record["outputs"] for record in lines(output)]
    assert len(found) == len(inputs)
    match name:
        case "faces":
            assert [len(outputs["boxes"]) for outputs in found] == [9, 44]
        case "objects":
            assert found[0]["labels"] == ["person"] * 4
        case "faces-and-objects":
            assert found[0]["labels"] == ["person"] * 4
            assert len(found[0]["faces"]) == 4
        case "read-text":
            assert any("AGRICULTURALBANK" in text.replace(" ", "") for text in found[0]["text"])
        case "speech" | "speech-fsmn":  # one word, 0.1 to 0.8 s above -50 dB
            np.testing.assert_allclose(found[0]["segments"], [(0.1, 0.8)], atol=0.1 if name == "speech" else 0.3)
        case "file-type":
            assert [outputs["labels"][0] for outputs in found] == ["python", "jpeg", "pdf", "wav"]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
