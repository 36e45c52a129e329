# SPDX-License-Identifier: Apache-2.0
"""Sounds through whole pipelines, from WAV files to WAV files and texts."""

import struct
from pathlib import Path

import numpy as np
import pytest

from nndeploy.cli.main import run_command

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
