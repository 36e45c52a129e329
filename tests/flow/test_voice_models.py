# SPDX-License-Identifier: Apache-2.0
"""Three voice detectors with three front ends, compiled and run over the same recordings, say the same of most of them.

Silero 5 hears windows of samples and remembers; Silero 2 hears a quarter of a second at a time; FSMN-VAD hears filter
banks. What lies beside the models ties each front end to what its makers feed it.
"""

import json
import tomllib
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nndeploy.cli.main import run_command
from nndeploy.processors.registry import processor_from_table
from nndeploy.processors.wav_files import mono, sound_from_bytes

PIPELINES = Path(__file__).resolve().parents[2] / "configs" / "pipelines"
# Windows of 4000 samples, what it was trained on, each around the 62.5 ms that it stands for.
SILERO_2 = """
[source]
kind = "wav"
[[level]]
[[level.pipeline]]
name = "cut"
runners = 0
[[level.pipeline.loader]]
steps = [
    { use = "resample", rate = 16000 },
    { use = "windows", size = 2500, hop = 1000, context = 1500, batch = true },
]
[[level]]
[[level.pipeline]]
name = "listen"
each = "windows"
part = "window"
batch = 8
inputs = { input = "window" }
outputs = { output = "probabilities" }
[[level.pipeline.post]]
steps = [{ use = "class-probability", index = 1 }]
[[level]]
[[level.pipeline]]
name = "times"
runners = 0
[[level.pipeline.post]]
steps = [{ use = "voice-segments", in = ["probability"], hop-ms = 62.5, min-silence-ms = 200, pad-ms = 0 }]
[[sink]]
kind = "json-lines"
fields = ["segments"]
"""
# The models, and what compile must be told: Silero 2 takes no fewer samples than its longest filter.
MODELS = {"silero_vad_v5": [], "silero_vad_v2_mini": ["--shape", "input=1..8,4000"], "fsmn_vad_online": []}
LENGTHS_S = {"speech_yes.wav": 1.0, "short_speech.wav": 2.037, "singing_44k.wav": 9.098}
# Which part of the time two of them must agree; the word of one second is half at the edges of a segment.
AGREE = {"speech_yes.wav": 0.75, "short_speech.wav": 0.85, "singing_44k.wav": 0.9}


@pytest.fixture
def segments(tmp_path: Path, models_folder: Path) -> Callable[..., list[list[float]]]:
    """Returns a function: model, inputs -> segments of each in seconds, by compile and run."""
    (tmp_path / "silero_vad_v2_mini.toml").write_text(SILERO_2, encoding="utf-8")
    pipelines = {
        "silero_vad_v5": PIPELINES / "speech.toml",
        "silero_vad_v2_mini": tmp_path / "silero_vad_v2_mini.toml",
        "fsmn_vad_online": PIPELINES / "speech-fsmn.toml",
    }

    def run(model: str, *inputs: Path) -> list[list[float]]:
        bundle, output = tmp_path / f"{model}.nnd", tmp_path / f"{model}.jsonl"
        compiled = ["compile", str(models_folder / f"{model}.onnx"), "--backends", "onnxruntime", *MODELS[model]]
        assert run_command([*compiled, "-o", str(bundle)]) == 0
        given = [text for path in inputs for text in ("--input", str(path))]
        arguments = ["run", str(bundle), "--pipeline", str(pipelines[model]), *given]
        assert run_command([*arguments, "--output", str(output)]) == 0
        return [json.loads(line)["outputs"]["segments"] for line in output.read_text().splitlines()]

    return run


def speech_by_time(segments: list[list[float]], length_s: float) -> np.ndarray:
    """Returns whether there is speech, every 10 ms."""
    times = np.arange(round(length_s * 100)) / 100
    return np.array([any(begin <= time < end for begin, end in segments) for time in times])


@pytest.mark.slow
def test_three_models_agree_on_most_of_each_recording(segments, models_folder) -> None:
    inputs = [models_folder / "inputs" / name for name in LENGTHS_S]
    found = {model: segments(model, *inputs) for model in MODELS}
    for i, (name, length_s) in enumerate(LENGTHS_S.items()):
        heard = {model: speech_by_time(found[model][i], length_s) for model in MODELS}
        for one, other in combinations(MODELS, 2):
            share = (heard[one] == heard[other]).mean()
            assert share >= AGREE[name], (name, one, other, share, found)
        assert not all(map(np.all, heard.values())), (name, found)  # silence before or behind


def test_parts_of_a_second_are_heard_as_the_whole(models_folder) -> None:
    """Frames of one part behind those of the one before are those of the whole recording."""
    steps = tomllib.loads((PIPELINES / "speech-fsmn.toml").read_text(encoding="utf-8"))["level"]
    windows = processor_from_table(steps[0]["pipeline"][0]["loader"][0]["steps"][1], "test")
    front_end = [processor_from_table(table, "test") for table in steps[1]["pipeline"][0]["loader"][0]["steps"]]

    def frames(window: np.ndarray) -> np.ndarray:
        fields = {"window": window, "rate": 16000}
        for step in front_end:
            fields |= step(fields)
        return fields["frames"][0]

    sound = sound_from_bytes((models_folder / "inputs" / "short_speech.wav").read_bytes())
    samples = mono(sound.samples)
    parts = np.concatenate([frames(window) for window in windows({"samples": samples})["windows"]])
    whole = frames(samples)  # without the two frames at either end
    np.testing.assert_allclose(parts[2 : 2 + len(whole)], whole, atol=1e-5)
    assert parts.shape == (300, 400)
