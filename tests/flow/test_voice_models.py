# SPDX-License-Identifier: Apache-2.0
"""Three voice detectors with three front ends, compiled and run over the same recordings, say the same of most of them.

Silero 5 hears windows of samples and remembers; Silero 2 hears a quarter of a second at a time; FSMN-VAD hears filter
banks. What lies beside the models ties each front end to what its makers feed it.
"""

import json
import re
import tomllib
import wave
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
[[level.pipeline.post.steps]]
use = "voice-segments"
in = ["probability", "samples", "rate"]
hop-ms = 62.5
min-silence-ms = 150
pad-ms = 0
[[sink]]
kind = "json-lines"
fields = ["segments"]
"""
# The models, and what compile must be told: Silero 2 takes no fewer samples than its longest filter.
MODELS = {"silero_vad_v5": [], "silero_vad_v2_mini": ["--shape", "input=1..8,4000"], "fsmn_vad_online": []}
SPOKEN = ("speech_yes.wav", "short_speech.wav")
LENGTHS_S = {"speech_yes.wav": 1.0, "short_speech.wav": 2.037, "singing_44k.wav": 9.098}
# Which part of the time two of them must agree; short sounds are mostly edges of segments, and end too soon after the
# speech for Silero 2 to hear it end.
AGREE = {"speech_yes.wav": 0.7, "short_speech.wav": 0.8, "singing_44k.wav": 0.9}


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


# silero_vad 6.2.3, with the model in its own package: get_speech_timestamps(sound, model, **PARAMETERS), in samples
SILERO = {
    (): [[1056, 12768], [23072, 48608], [53792, 63197]],
    ("threshold = 0.9", "end-threshold = 0.8", "min-speech-ms = 0", "min-silence-ms = 32", "pad-ms = 0"): [
        [2048, 9728], [23552, 48128], [55296, 63197],
    ],
    ("threshold = 0.3", "end-threshold = 0.15", "min-speech-ms = 800", "min-silence-ms = 400", "pad-ms = 150"): [
        [20640, 63197],
    ],
}  # fmt: skip


def test_the_pipeline_of_new_vad_finds_the_segments_of_silero_s_package(tmp_path, models_folder, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    word, speech = (mono(sound_from_bytes((models_folder / "inputs" / name).read_bytes()).samples) for name in SPOKEN)
    joined = np.concatenate([word, np.zeros(4800), speech, np.zeros(800), word[:9000]])  # ends within the word
    write_wav("joined.wav", joined)
    write_wav("silence.wav", np.zeros(40000))
    write_wav("empty.wav", np.zeros(0))
    Path("text.wav").write_text("no sound")
    model = str(models_folder / "silero_vad_v5.onnx")
    assert run_command(["new", "vad", "--model", model, "-o", "vad.toml"]) == 0
    assert run_command(["compile", model, "--pipeline", "vad.toml", "--backends", "onnxruntime", "-o", "vad.nnd"]) == 0
    made = Path("vad.toml").read_text()
    for lines, want in SILERO.items():
        text = made
        for line in lines:
            text = re.sub(rf"^{line.split()[0]} = .*$", line, text, flags=re.MULTILINE)
        Path("other.toml").write_text(text)
        command = ["run", "vad.nnd", "--pipeline", "other.toml", "--output", "out.jsonl"]
        names = ["joined.wav", "silence.wav", "empty.wav", "text.wav"]
        assert run_command([*command, *(text for name in names for text in ("--input", name))]) == 1
        found, silence, empty, error = map(json.loads, Path("out.jsonl").read_text().splitlines())
        assert np.round(16000 * np.array(found["outputs"]["segments"]), 3).tolist() == want
        assert silence["outputs"] == empty["outputs"] == {"segments": []}
        assert error["error"]["code"] == "bad-input"


def write_wav(path: str, samples: np.ndarray) -> None:
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((samples * 32768).astype("<i2").tobytes())


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
