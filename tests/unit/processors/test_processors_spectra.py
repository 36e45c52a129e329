# SPDX-License-Identifier: Apache-2.0
"""Spectra of frames, the way back, and Whisper's features, against their definitions summed in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import DataError, InputError, UsageError
from nndeploy.processors.builtin.istft import Istft
from nndeploy.processors.builtin.stft import Stft

WINDOWS = {
    "hann": lambda t: 0.5 - 0.5 * math.cos(2 * math.pi * t),
    "sqrt-hann": lambda t: abs(math.sin(math.pi * t)),
    "hamming": lambda t: 0.54 - 0.46 * math.cos(2 * math.pi * t),
    "rectangular": lambda t: 1.0,
}


def sound(count: int) -> np.ndarray:
    return np.random.default_rng(count).uniform(-1, 1, count).astype(np.float32)


def beyond(samples: list[float], place: int, edges: str) -> float:
    """Returns a sample that may lie before the first or behind the last one."""
    last = len(samples) - 1
    if edges == "zeros":
        return samples[place] if 0 <= place <= last else 0.0
    while not 0 <= place <= last:
        place = -place if place < 0 else 2 * last - place
        place = 0 if last == 0 else place
    return samples[place]


def spectra_by_definition(samples: list[float], size: int, hop: int, window: str, edges: str) -> np.ndarray:
    """Returns the spectrum of each frame: every sample by its place, every sum written out as a product of matrices."""
    if edges == "drop":
        begins = list(range(0, len(samples) - size + 1, hop))
    else:
        samples = samples + [0.0] * (-len(samples) % hop)
        begins = [place - size // 2 for place in range(0, len(samples) + 1, hop)]
    weights = [WINDOWS[window](i / size) for i in range(size)]
    frames = [[beyond(samples, begin + i, edges) * weights[i] for i in range(size)] for begin in begins]
    turns = np.exp(-2j * np.pi * np.outer(np.arange(size), np.arange(size // 2 + 1)) / size)
    return np.array(frames, np.float64).reshape(len(begins), size) @ turns


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("edges", ["reflect", "zeros", "drop"])
@pytest.mark.parametrize(("count", "size", "hop"), [(64, 16, 4), (61, 16, 8), (40, 15, 6), (7, 16, 4), (30, 8, 8)])
def test_spectra_are_what_their_definition_says(step, window, edges, count, size, hop) -> None:
    made = step("stft", size=size, hop=hop, window=window, edges=edges)({"samples": sound(count)})
    want = spectra_by_definition(sound(count).astype(float).tolist(), size, hop, window, edges)
    assert made["spectrum"].dtype == np.float32
    assert made["spectrum"].shape == (len(want), size // 2 + 1, 2)
    assert made["length"] == count
    np.testing.assert_allclose(made["spectrum"][..., 0] + 1j * made["spectrum"][..., 1], want, atol=2e-6)


@settings(max_examples=100)
@given(st.integers(0, 300), st.integers(4, 40), st.integers(1, 4), st.sampled_from([*WINDOWS]), st.booleans())
def test_the_way_back_gives_the_sound(count, size, parts, window, is_reflected) -> None:
    how = {"size": size, "hop": max(2, size // (2 * parts)), "window": window}
    edges = "reflect" if is_reflected else "zeros"
    spectrum, length = Stft(**how, edges=edges)(sound(count))
    found = Istft(**how, edges=edges)(spectrum[np.newaxis], np.int64(length))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, sound(count), atol=1e-4)


def test_a_changed_spectrum_gives_the_nearest_sound(step) -> None:
    """Of frames that no sound has: each back by its sum, times the window, added, over the sum of squared windows."""
    size, hop, rng = 8, 2, np.random.default_rng(3)
    spectrum = rng.normal(size=(4, 5, 2))
    half = spectrum[..., 0] + 1j * spectrum[..., 1]
    half[:, [0, 4]] = half[:, [0, 4]].real  # the imaginary part of the first and last frequency is nothing
    whole = np.concatenate([half, half[:, 3:0:-1].conj()], 1)
    frames = (whole @ np.exp(2j * np.pi * np.outer(np.arange(size), np.arange(size)) / size)).real / size
    weights = np.array([WINDOWS["hann"](i / size) for i in range(size)])
    added, squares = np.zeros(14), np.zeros(14)
    for i, frame in enumerate(frames):
        added[i * hop : i * hop + size] += frame * weights
        squares[i * hop : i * hop + size] += weights**2
    made = step("istft", size=size, hop=hop)({"spectrum": spectrum.astype(np.float32), "length": 6})["samples"]
    np.testing.assert_allclose(made, (added / np.where(squares, squares, 1))[4:10], atol=1e-5)


def test_long_sounds_are_worked_on_in_blocks_without_a_seam(step, monkeypatch) -> None:
    both = [step(name, size=32, hop=8) for name in ("stft", "istft")]
    whole = both[0]({"samples": sound(2000)})
    monkeypatch.setattr("nndeploy.processors.short_time_fourier.BLOCK_SAMPLES", 100)
    np.testing.assert_array_equal(both[0]({"samples": sound(2000)})["spectrum"], whole["spectrum"])
    np.testing.assert_allclose(both[1](whole)["samples"], sound(2000), atol=1e-5)


@pytest.mark.parametrize(("spectrum", "length"), [
    (np.zeros((3, 5, 2)), 8), (np.zeros((5, 5)), 8), (np.zeros((5, 4, 2)), 8), (np.zeros((5, 5, 2)), -1),
    (np.zeros((5, 5, 2)), 8.0), ([[1], [1, 2]], 8),
])  # fmt: skip
def test_what_is_no_spectrum_of_that_length_is_one_line(step, spectrum, length) -> None:
    with pytest.raises(DataError, match=r"the spectrum of 8 samples must be|the spectrum must be|length must be"):
        step("istft", size=8, hop=2)({"spectrum": spectrum, "length": length})


def test_parameters_that_lose_samples_are_refused(step, monkeypatch) -> None:
    for how in ({"size": 8, "hop": 8}, {"size": 8, "hop": 9, "window": "rectangular"}):
        with pytest.raises(UsageError, match="leave samples that none of them covers"):
            step("istft", **how)
    monkeypatch.setattr("nndeploy.processors.short_time_fourier.MAX_NUMBERS", 64)
    with pytest.raises(InputError, match="100 samples make 51 frames of 8 samples, which are too many"):
        step("stft", size=8, hop=2)({"samples": sound(100)})


def whisper_by_definition(samples: list[float], rate: int, bins: int, size: int, hop: int, count: int) -> np.ndarray:
    """Returns `log_mel_spectrogram` of openai/whisper, audio.py, with librosa's filters written out, in float64."""
    samples = (samples + [0.0] * count)[:count]
    spectrum = spectra_by_definition(samples, size, hop, "hann", "reflect")[: count // hop]

    def mel(hz: float) -> float:
        return hz * 3 / 200 if hz < 1000 else 15 + math.log(hz / 1000) * 27 / math.log(6.4)

    def hz(mels: float) -> float:
        return mels * 200 / 3 if mels < 15 else 1000 * math.exp((mels - 15) * math.log(6.4) / 27)

    corners = [hz(mel(rate / 2) * i / (bins + 1)) for i in range(bins + 2)]
    rows = []
    for low, middle, high in zip(corners, corners[1:], corners[2:], strict=False):
        pitches = [k * rate / size for k in range(size // 2 + 1)]
        rises = [max(0, min((p - low) / (middle - low), (high - p) / (high - middle))) for p in pitches]
        rows.append([2 / (high - low) * rise for rise in rises])
    logs = np.log10(np.maximum(np.array(rows) @ (np.abs(spectrum.T) ** 2), 1e-10))
    return (np.maximum(logs, logs.max() - 8) + 4) / 4


@pytest.mark.parametrize(
    ("count", "bins", "rate"), [(4000, 80, 16000), (9000, 80, 16000), (1, 128, 16000), (900, 10, 1600)]
)
def test_features_are_those_of_whisper(step, count, bins, rate) -> None:
    samples = (0.1 * sound(count) * np.linspace(0, 1, count) ** 6).astype(np.float32)  # so that the floor is reached
    made = step("log-mel", bins=bins, seconds=0.4)({"samples": samples, "rate": rate})["input_features"]
    want = whisper_by_definition(samples.astype(float).tolist(), rate, bins, 400, 160, int(0.4 * rate))
    assert made.dtype == np.float32
    assert made.shape == (1, bins, int(0.4 * rate) // 160)
    np.testing.assert_allclose(made[0], want, atol=1e-6)


# transformers 4.57.6: WhisperFeatureExtractor()._np_extract_fbank_features(np.pad(WAVE, (0, 464000))[None], "cpu")
WAVE = np.round(8000 * np.sin(np.arange(16000) ** 2 / 900000) + 300) / 32768
WHISPER = {
    (0, 0): 0.57418,
    (3, 10): 0.30205,
    (20, 50): -0.6951,
    (40, 99): -0.1083,
    (79, 60): -0.6951,
    (0, 2999): -0.6951,
}


def test_features_have_the_numbers_of_transformers(step) -> None:
    made = step("log-mel")({"samples": WAVE.astype(np.float32), "rate": 16000})["input_features"]
    assert made.shape == (1, 80, 3000)
    np.testing.assert_allclose([made[0][place] for place in WHISPER], [*WHISPER.values()], atol=1e-5)


def test_a_whole_sound_is_heard_window_by_window(step) -> None:
    samples = np.random.default_rng(0).normal(size=40000).astype(np.float32)
    whole = step("log-mel", seconds=1, whole=True)({"samples": samples, "rate": 16000})["input_features"]
    assert whole.shape == (1, 80, 250)
    assert step("log-mel", seconds=3, whole=True)({"samples": samples, "rate": 16000})["input_features"].shape[2] == 300
    window = step("next-window", frames=100)
    for heard, count in ((0, 100), (180, 70), (250, 0)):
        found = window({"features": whole, "heard": heard} if heard else {"features": whole})["input_features"]
        assert np.array_equal(found[:, :, :count], whole[:, :, heard : heard + count])
        assert (found.shape, found[:, :, count:].any()) == ((1, 80, 100), False)
    for wrong in ({"features": whole, "heard": 251}, {"features": whole[0]}):
        with pytest.raises(InputError):
            window(wrong)


def test_silence_has_features_and_what_has_none_is_one_line(step) -> None:
    for samples in (np.zeros(0, np.float32), np.zeros(500, np.float32)):
        assert (step("log-mel")({"samples": samples, "rate": 16000})["input_features"] == -1.5).all()
    with pytest.raises(InputError, match="less than a hop of 160 samples"):
        step("log-mel", seconds=0.01)({"samples": sound(9), "rate": 8000})
    with pytest.raises(InputError, match="a rate of 0 Hz is not taken"):
        step("log-mel")({"samples": sound(9), "rate": 0})
