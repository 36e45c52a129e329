# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/guide/sound.md that need models which are not part of nndeploy, where such models are."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from page_examples import ROOT, examples, run_example

sys.path.insert(0, str(ROOT / "tests" / "flow"))
PAGE = ROOT / "docs" / "guide" / "sound.md"


def run_examples_about(text: str, folder: Path, home: Path) -> None:
    """Runs the examples in which `text` stands, whatever the page says of them."""
    found = [one for one in examples(PAGE) if text in one.text]
    assert found
    for one in found:
        run_example(one, folder, home)


def test_a_recording_becomes_times_of_speech(tmp_path, models_folder) -> None:
    (tmp_path / "recordings").mkdir()
    shutil.copy(models_folder / "inputs" / "short_speech.wav", tmp_path / "recordings" / "hello.wav")
    (tmp_path / "silero_vad.onnx").symlink_to(models_folder / "silero_vad_v5.onnx")
    run_examples_about("vad", tmp_path, tmp_path)


def test_recordings_become_texts(tmp_path) -> None:
    pytest.importorskip("tokenizers", reason="the extra text is not installed")
    from whisper_models import weights_of, write_models

    for name in ("whisper", "recordings"):
        (tmp_path / name).mkdir()
    write_models(tmp_path / "whisper", weights_of(1), {})
    run_examples_about('tone.wav", "wb', tmp_path / "recordings", tmp_path)
    run_examples_about("new transcribe", tmp_path, tmp_path)
    (line,) = (tmp_path / "texts.jsonl").read_text().splitlines()
    found = json.loads(line)["outputs"]
    assert found["text"]
    assert len(found["segments"]) == len(found["texts"]) > 0
