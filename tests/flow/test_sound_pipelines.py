# SPDX-License-Identifier: Apache-2.0
"""Sounds through whole pipelines, from WAV files to WAV files and texts."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import whisper_models

from nndeploy.cli.main import run_command
from nndeploy.processors.builtin.log_mel import LogMel

THERE_AND_BACK = """
[source]
kind = "wav"
[[level]]
[[level.pipeline]]
runners = 0
[[level.pipeline.loader]]
steps = [
    { use = "stft", size = 512, hop = 128 },
    { use = "istft", size = 512, hop = 128, out = ["again"] },
]
[[sink]]
kind = "wav"
fields = ["again", "rate"]
format = "float32"
"""


def wav_of(samples: np.ndarray, rate_hz: int = 16000) -> bytes:
    """Returns a WAV file of whole numbers of 16 bits."""
    body = np.asarray(samples, "<i2").tobytes()
    about = struct.pack("<HHIIHH", 1, 1, rate_hz, 2 * rate_hz, 2, 16)
    return struct.pack("<4sI8sI16s4sI", b"RIFF", 36 + len(body), b"WAVEfmt ", 16, about, b"data", len(body)) + body


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_sound_comes_back_from_its_spectrum(capsys) -> None:
    samples = np.random.default_rng(0).integers(-32768, 32768, 16001)
    Path("p.toml").write_text(THERE_AND_BACK)
    Path("a.wav").write_bytes(wav_of(samples, 22050))
    Path("b.wav").write_bytes(wav_of(samples[:0]))
    Path("c.wav").write_text("no sound")
    inputs = [text for name in ("a.wav", "b.wav", "c.wav") for text in ("--input", name)]
    assert run_command(["run", "--pipeline", "p.toml", *inputs, "--output", "out"]) == 1
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "000000_a.wav",
        "000001_b.wav",
        "000002_c.error.json",
    ]
    data = Path("out/000000_a.wav").read_bytes()
    assert struct.unpack_from("<I", data, 24) == (22050,)
    np.testing.assert_allclose(np.frombuffer(data[56:], "<f4"), samples / 32768, atol=1e-6)
    assert len(Path("out/000001_b.wav").read_bytes()) == 56


@pytest.mark.parametrize(("before", "after"), [
    ('["again", "rate"]', '["again"]'), ('"float32"', '"float"'), ('["again", "rate"]', '["again", "hz"]'),
])  # fmt: skip
def test_a_sink_of_sounds_that_cannot_be_is_one_line(capsys, before, after) -> None:
    Path("p.toml").write_text(THERE_AND_BACK.replace(before, after))
    Path("a.wav").write_bytes(wav_of(np.zeros(10)))
    assert run_command(["run", "--pipeline", "p.toml", "--input", "a.wav", "--output", "out"]) == 65
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not Path("out").exists()


ENCODER, PLAIN, CACHED, MERGED = whisper_models.FILES
SECONDS = (0.2, 1.0, 1.3, 3.7)


@pytest.mark.parametrize("decoders", [(PLAIN, CACHED), (MERGED,)])
@pytest.mark.parametrize(("seed", "config"), [
    (4, {"eos_token_id": 208, "suppress_tokens": []}), (18, {"max_length": 12, "language": "en"}),
    (6, {"suppress_tokens": [1, 2, *range(60, 200)], "begin_suppress_tokens": [0, 220]}),
])  # fmt: skip
def test_whisper_s_models_write_what_their_definition_says(decoders, seed, config) -> None:
    """Each round hears all that the encoder gave, each window begins where the one before it says.

    Of models with random weights that optimum exported, transformers' own `generate` writes the same tokens and times.
    """
    weights, languages = whisper_models.weights_of(seed), [7, whisper_models.ENGLISH]
    whisper_models.write_models(Path(), weights, config | {"max_initial_timestamp_index": 20})
    models = [text for name in (ENCODER, *decoders) for text in ("--model", f"{name}.onnx")]
    assert run_command(["new", "transcribe", *models, "-o", "p.toml"]) == 0
    for name in (*decoders, ENCODER):
        carried = ["--pipeline", "p.toml"] if name == ENCODER else []
        out = ["-o", f"{name}.nnd", "--backends", "onnxruntime"]
        assert run_command(["compile", f"{name}.onnx", *carried, *out]) == 0
    sounds = [np.random.default_rng(i).normal(0, 9000, int(16000 * s)).astype(np.int16) for i, s in enumerate(SECONDS)]
    for i, samples in enumerate(sounds):
        Path(f"{i}.wav").write_bytes(wav_of(samples))
    Path("all.toml").write_text(Path("p.toml").read_text().replace('["text", ', '["begun", "spoken", "done", "text", '))
    inputs = [text for i in range(len(sounds)) for text in ("--input", f"{i}.wav")]
    assert run_command(["run", f"{ENCODER}.nnd", "--pipeline", "all.toml", *inputs, "--output", "o.jsonl"]) == 0
    rules = {"never": config.get("suppress_tokens", []), "not_first": config.get("begin_suppress_tokens", [])}
    rules |= {"stop": config.get("eos_token_id", 0), "most": min(29, config.get("max_length", 448) - 1), "latest": 20}
    rules |= {"languages": languages[1:] if "language" in config else languages}
    num_segments = 0
    for samples, line in zip(sounds, Path("o.jsonl").read_text().splitlines(), strict=True):
        features = LogMel(whisper_models.BINS, seconds=1, whole=True)(samples.astype(np.float32) / 32768, 16000)[0]
        begun, spoken, segments = whisper_models.said_by_definition(weights, features, **rules)
        found = json.loads(line)["outputs"]
        assert (found["begun"], found["spoken"], found["done"]) == (begun, spoken, True)
        assert len(found["segments"]) == len(found["texts"])
        assert all([round(100 * time) for time in both] in segments for both in found["segments"])
        num_segments += len(segments)
    assert num_segments > 3 * len(sounds)
    is_there = decoders == (PLAIN, CACHED)
    for wrong in ('"past.*" = "present.*"', '"past_key_values.*" = "present"', '"past_key_values.*" = "presents.*"'):
        Path("q.toml").write_text(Path("p.toml").read_text().replace('"past_key_values.*" = "present.*"', wrong))
        assert run_command(["run", f"{ENCODER}.nnd", "--pipeline", "q.toml", "--input", "0.wav"]) == 65 * is_there
