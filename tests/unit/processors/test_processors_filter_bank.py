# SPDX-License-Identifier: Apache-2.0
"""Filter banks as Kaldi defines them, against its definition written out sum by sum and against its own numbers."""

import cmath
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import DataError, InputError, UsageError
from nndeploy.processors.builtin.filter_bank import FilterBank
from nndeploy.processors.builtin.stack_frames import StackFrames

# kaldi_native_fbank 1.23.0:
#   o = FbankOptions(); f = o.frame_opts; f.samp_freq, f.dither, f.window_type, f.snip_edges = 16000, 0, WINDOW, SNIP
#   o.mel_opts.num_bins, o.mel_opts.high_freq = 5, -400
#   b = OnlineFbank(o); b.accept_waveform(16000, WAVE.tolist()); b.input_finished(); b.get_frame(0), ...
WAVE = np.round(8000 * np.sin(np.arange(700) ** 2 / 900) + 300)
KALDI = {
    ("hamming", True): [[22.7062, 25.5254, 25.6087, 21.832, 15.7582], [16.246, 23.5374, 26.8808, 26.3877, 19.0197]],
    ("povey", False): [
        [23.6804, 24.3691, 22.1158, 11.1945, 8.2975], [21.6638, 25.4395, 26.2178, 23.4028, 8.9265],
        [10.6313, 22.1328, 26.8155, 26.9513, 20.9669], [15.2913, 17.3384, 24.7486, 27.937, 26.4913],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("window", "snip_edges"), KALDI)
def test_filter_bank_gives_the_numbers_of_kaldi(step, window, snip_edges) -> None:
    made = step("filter-bank", bins=5, high_hz=-400, window=window, snip_edges=snip_edges)
    found = made({"samples": (WAVE / 32768).astype(np.float32), "rate": 16000})["frames"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, KALDI[window, snip_edges], atol=2e-3)  # Kaldi sums in float32


def energies_by_definition(samples: list[float], rate: int, bins: int, length: int, shift: int, window: str):
    """Returns the energy of each band of each frame, every sum and triangle written out."""
    size = 1
    while size < length:
        size *= 2

    def mel(hz: float) -> float:
        return 1127 * math.log(1 + hz / 700)

    def weight(i: int) -> float:
        cosine = math.cos(2 * math.pi * i / (length - 1))
        hanning = 0.5 - 0.5 * cosine
        return {"hanning": hanning, "hamming": 0.54 - 0.46 * cosine, "povey": max(hanning, 0) ** 0.85}[window]

    result = []
    for begin in range(0, len(samples) - length + 1, shift):
        frame = [32768 * value for value in samples[begin : begin + length]]
        mean = sum(frame) / length
        frame = [value - mean for value in frame]
        frame = [(frame[i] - 0.97 * frame[max(i - 1, 0)]) * weight(i) for i in range(length)]
        power = [
            abs(sum(value * cmath.exp(-2j * math.pi * k * i / size) for i, value in enumerate(frame))) ** 2
            for k in range(size // 2)
        ]
        width = (mel(rate / 2) - mel(20)) / (bins + 1)
        bands = []
        for band in range(bins):
            left = mel(20) + band * width
            rises = [(mel(k * rate / size) - left) / width for k in range(size // 2)]
            bands.append(sum(p * max(0, min(rise, 2 - rise)) for p, rise in zip(power, rises, strict=True)))
        result.append(bands)
    return np.array(result)


@pytest.mark.parametrize("window", ["povey", "hamming", "hanning"])
@pytest.mark.parametrize(("rate", "length_ms", "shift_ms"), [(8000, 8, 3), (16000, 4, 4), (11025, 5, 2.5)])
def test_filter_bank_is_what_its_definition_says(step, window, rate, length_ms, shift_ms) -> None:
    samples = np.random.default_rng(rate).uniform(-1, 1, rate // 50).astype(np.float32)
    made = step("filter-bank", bins=6, length_ms=length_ms, shift_ms=shift_ms, window=window)
    length, shift = int(rate * length_ms / 1000), int(rate * shift_ms / 1000)
    want = energies_by_definition(samples.tolist(), rate, 6, length, shift, window)
    found = made({"samples": samples, "rate": rate})["frames"]
    assert found.shape == want.shape
    np.testing.assert_allclose(found, np.log(want), atol=1e-4)


def test_a_tone_is_loudest_in_its_band_and_grows_by_its_square(step) -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(8000) / 16000).astype(np.float32)
    bands = step("filter-bank", log=False)({"samples": tone, "rate": 16000})["frames"]
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(8000 / 700), 82)
    nearest = np.abs(edges[1:-1] - 1127 * np.log1p(1000 / 700)).argmin()
    assert (bands.argmax(axis=1) == nearest).all()
    louder = step("filter-bank", log=False, multiply=65536)({"samples": tone, "rate": 16000})["frames"]
    np.testing.assert_allclose(louder, 4 * bands, rtol=1e-5)


def test_silence_is_the_least_and_an_offset_is_not_heard(step) -> None:
    floor = math.log(2**-23)
    for level in (0, 0.25):
        frames = step("filter-bank")({"samples": np.full(800, level, np.float32), "rate": 16000})["frames"]
        np.testing.assert_allclose(frames, np.full((3, 80), floor), rtol=1e-6)


def test_a_long_sound_is_worked_on_in_blocks_without_a_seam(step, monkeypatch) -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, 4000).astype(np.float32)
    whole = step("filter-bank")({"samples": samples, "rate": 16000})["frames"]
    monkeypatch.setattr("nndeploy.processors.builtin.filter_bank.BLOCK_SAMPLES", 1200)
    np.testing.assert_array_equal(step("filter-bank")({"samples": samples, "rate": 16000})["frames"], whole)


@pytest.mark.parametrize(("snip_edges", "frames"), [
    (True, {0: 0, 399: 0, 400: 1, 559: 1, 560: 2}), (False, {0: 0, 79: 0, 80: 1, 239: 1, 240: 2, 1600: 10})
])  # fmt: skip
def test_how_many_frames_a_sound_has(step, snip_edges, frames) -> None:
    made = step("filter-bank", snip_edges=snip_edges)
    for count, num_frames in frames.items():
        assert made({"samples": np.ones(count, np.float32), "rate": 16000})["frames"].shape == (num_frames, 80), count


@given(st.integers(1, 300), st.integers(2, 60), st.integers(1, 60))
def test_without_snipping_the_sound_goes_on_as_its_mirror_image(count, length, shift) -> None:
    samples = np.random.default_rng(count).uniform(-1, 1, count).astype(np.float32)
    found = FilterBank(4, length, shift, snip_edges=False)(samples, 1000)  # one sample a millisecond
    mirrored = np.pad(samples, 200, mode="symmetric")
    assert len(found) == (count + shift // 2) // shift
    for i, frame in enumerate(found):
        begin = 200 + i * shift + shift // 2 - length // 2
        np.testing.assert_allclose(frame, FilterBank(4, length, shift)(mirrored[begin : begin + length], 1000)[0])


@pytest.mark.parametrize(("parameters", "message"), [
    ({"window": "kaiser"}, 'window must be "povey" or "hamming" or "hanning", is \'kaiser\''),
    ({"bins": 0}, "bins must be 1 to 512, is 0"),
    ({"bins": 2.5}, "bins must be a whole number"),
    ({"length_ms": 0}, "length-ms must be 0.1 to 10000"),
    ({"pre_emphasis": 1.5}, "pre-emphasis must be 0 to 1"),
])  # fmt: skip
def test_parameters_of_filter_bank_are_checked(step, parameters, message) -> None:
    with pytest.raises(DataError, match=message):
        step("filter-bank", **parameters)
    with pytest.raises(UsageError, match=r"high-hz 500\.0 must be above low-hz 600\.0"):
        step("filter-bank", low_hz=600, high_hz=500)


@pytest.mark.parametrize(("parameters", "samples", "rate", "message"), [
    ({}, np.zeros((2, 3)), 16000, r"samples must be \(N,\), this is float64 \(2, 3\)"),
    ({}, np.zeros(9), 0, "at 0 Hz a frame has 0 samples and a shift 0: too few or too many"),
    ({"length_ms": 9000}, np.zeros(9), 16000, "a frame has 144000 samples"),
    ({"high_hz": 5000}, np.zeros(9), 8000, "bands from 20.0 to 5000.0 Hz do not fit a rate of 8000 Hz"),
    ({"high_hz": -4000}, np.zeros(9), 8000, "bands from 20.0 to 0.0 Hz do not fit"),
])  # fmt: skip
def test_what_has_no_bands_is_one_line(step, parameters, samples, rate, message) -> None:
    with pytest.raises(InputError, match=message):
        step("filter-bank", **parameters)({"samples": samples, "rate": rate})


def test_too_many_frames_are_one_line(step, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.processors.builtin.filter_bank.MAX_FRAMES", 2)
    with pytest.raises(InputError, match="800 samples make 3 frames, more than 2"):
        step("filter-bank")({"samples": np.zeros(800, np.float32), "rate": 16000})


@pytest.mark.parametrize(("parameters", "want"), [
    ({"size": 3}, ["aab", "abc", "bcd", "cde", "dee"]), ({"size": 4}, ["aabc", "abcd", "bcde", "cdee", "deee"]),
    ({"size": 3, "hop": 2}, ["aab", "bcd", "dee"]), ({"size": 7, "hop": 3}, ["aaaabcd", "abcdeee"]),
    ({"size": 1}, ["a", "b", "c", "d", "e"]), ({"size": 3, "edges": "drop"}, ["abc", "bcd", "cde"]),
    ({"size": 3, "hop": 2, "edges": "drop"}, ["abc", "cde"]), ({"size": 6, "edges": "drop"}, []),
])  # fmt: skip
def test_frames_are_stacked(step, parameters, want) -> None:
    frames = np.array([[ord(c), -ord(c)] for c in "abcde"], np.float32)
    stacked = step("stack-frames", **parameters)({"frames": frames})["frames"]
    assert ["".join(chr(int(value)) for value in row[::2]) for row in stacked] == want
    np.testing.assert_array_equal(stacked[:, 1::2], -stacked[:, ::2])
    batched = step("stack-frames", batch=True, **parameters)({"frames": frames[np.newaxis]})["frames"]
    np.testing.assert_array_equal(batched, stacked[np.newaxis])


@settings(max_examples=50)
@given(st.integers(0, 30), st.integers(1, 9), st.integers(1, 9), st.sampled_from(["copy", "drop"]))
def test_every_count_of_frames_can_be_stacked(count, size, hop, edges) -> None:
    stacked = StackFrames(size, hop, edges)(np.arange(3 * count, dtype=np.float32).reshape(count, 3))
    fitting = max(count - size + 1, 0) if edges == "drop" else count
    assert stacked.shape == (-(-fitting // hop), 3 * size)


def test_what_cannot_be_stacked_is_one_line(step) -> None:
    with pytest.raises(InputError, match=r"frames must be \(N, C\), are float32 \(4\)"):
        step("stack-frames", size=3)({"frames": np.zeros(4, np.float32)})
    with pytest.raises(InputError, match="2000 frames of 1024 x 600 numbers are too many"):
        step("stack-frames", size=1024)({"frames": np.zeros((2000, 600), np.float32)})
    with pytest.raises(DataError, match="size must be 1 to 1024, is 0"):
        step("stack-frames", size=0)
