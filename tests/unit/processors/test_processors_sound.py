# SPDX-License-Identifier: Apache-2.0
"""Sound: WAV files of every width, windows, rates and the times of speech."""

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import InputError
from nndeploy.processors.builtin.resample import resampled
from nndeploy.processors.builtin.voice_segments import VoiceSegments
from nndeploy.processors.wav_files import FLOAT, PCM, sound_from_bytes


def wav(body: bytes, code=PCM, channels=1, rate=8000, bits=16, extra=b"", before=b"") -> bytes:
    frame = channels * bits // 8
    head = struct.pack("<HHIIHH", code, channels, rate, rate * frame, frame, bits) + extra
    chunks = before + b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_what_the_standard_library_writes_is_read(bits, channels) -> None:
    low, high = (0, 255) if bits == 8 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    values = np.random.default_rng(bits).integers(low, high, 30 * channels, endpoint=True)
    values[:2] = low, high
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((channels, bits // 8, 11025, 0, "NONE", ""))
        writer.writeframes(b"".join(int(v).to_bytes(bits // 8, "little", signed=bits > 8) for v in values))
    sound = sound_from_bytes(file.getvalue())
    assert sound.rate_hz == 11025
    assert sound.samples.shape == (30, channels)
    want = (values - 128) / 128 if bits == 8 else values / 2.0 ** (bits - 1)
    np.testing.assert_allclose(sound.samples.ravel(), want, atol=1e-7)
    assert sound.samples.min() == -1


@pytest.mark.parametrize("bits", [32, 64])
def test_floating_samples_are_read(bits) -> None:
    values = np.array([0, 0.5, -1, 1e-3], f"<f{bits // 8}")
    found = sound_from_bytes(wav(values.tobytes(), FLOAT, 1, 16000, bits, before=b"LIST\x03\0\0\0abc\0"))
    assert found.samples[:, 0].tolist() == values.astype(np.float32).tolist()


@pytest.mark.parametrize(("bits", "valid_bits"), [(16, 16), (16, 12), (24, 24), (24, 20), (32, 24)])
@pytest.mark.parametrize("code", [PCM, 0xFFFE])
def test_samples_of_fewer_bits_than_their_width_are_read(code, bits, valid_bits) -> None:
    extra = struct.pack("<HHI", 22, valid_bits, 3) + b"\x01\x00" + bytes.fromhex("000000001000800000aa00389b71")
    values = [1 << bits - 2, -(1 << bits - 2)] * 3
    body = b"".join(value.to_bytes(bits // 8, "little", signed=True) for value in values)
    data = bytearray(wav(body, code, 2, bits=bits, extra=extra if code != PCM else b""))
    if code == PCM and bits < 32:
        data[34:36] = valid_bits.to_bytes(2, "little")
    assert sound_from_bytes(bytes(data)).samples.tolist() == [[0.5, -0.5]] * 3


def with_size(stated: int, body: bytes = bytes(20), behind: bytes = b"") -> bytes:
    """Returns a WAV file that states another size of its data than they have."""
    return wav(body)[:40] + struct.pack("<I", stated) + body + behind


@pytest.mark.parametrize(
    ("data", "num_frames"),
    [
        (with_size(20, behind=b"LIST\4\0\0\0abcd"), 10),
        (with_size(19), 9),
        (with_size(0), 10),
        (with_size(0, bytes(21)), 10),
        (with_size(0, b""), 0),
        (with_size(0, b"", b"LIST\4\0\0\0abcd"), 0),
        (with_size(0xFFFFFFFF), 10),
        (with_size(0x7FFFF000), 10),  # sox, espeak
        (with_size(0x7FFFFF00), 10),  # arecord
        (wav(bytes(20), before=b"LIST\3\0\0\0abc\0"), 10),
        (wav(bytes(20), before=b"LIST\3\0\0\0abc"), 10),  # without the padding
        (b"RF64" + wav(bytes(20), before=b"ds64\x10\0\0\0" + struct.pack("<QQ", 0, 20))[4:], 10),
        (b"RF64" + with_size(0xFFFFFFFF)[4:12] + b"ds64\x10\0\0\0" + struct.pack("<QQ", 0, 18)
         + with_size(0xFFFFFFFF)[12:], 9),
        (with_size(22), None),
        (with_size(0x20000000), None),
        (with_size(20)[:-5], None),
        (b"RF64" + with_size(0xFFFFFFFF)[4:12] + b"ds64\x10\0\0\0" + struct.pack("<QQ", 0, 22)
         + with_size(0xFFFFFFFF)[12:], None),
    ],
)  # fmt: skip
def test_data_have_the_size_that_is_stated_or_reach_to_the_end(data, num_frames) -> None:
    if num_frames is not None:
        assert sound_from_bytes(data).samples.shape == (num_frames, 1)
        return
    with pytest.raises(InputError, match=r"states \d+ bytes"):
        sound_from_bytes(data)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "does not begin as one"),
    (b"RIFF\0\0\0\0AVI LIST", "does not begin as one"),
    (b"RIFF\0\0\0\0WAVE", "without a format"),
    (wav(b"")[:36], "without data"),
    (b"RIFF\0\0\0\0WAVEdata\2\0\0\0ab", "its data stand before its format"),
    (b"RIFF\0\0\0\0WAVEfmt \2\0\0\0ab", "its format has 2 bytes"),
    (wav(b"ab", code=2, bits=4), "format 2 with 4 bits, which is not taken .hint: convert it to 16-bit PCM"),
    (wav(b"ab", code=FLOAT, bits=16), "format 3 with 16 bits"),
    (wav(b"ab", channels=0), "its format says 0 channels"),
    (wav(b"ab", rate=0), "0 Hz"),
    (wav(b"ab", code=0xFFFE), "extended format that is not taken"),
    (wav(np.array([np.nan], "<f4").tobytes(), FLOAT, bits=32), "samples are NaN or infinite"),
    (wav(np.array([1e300], "<f8").tobytes(), FLOAT, bits=64), "samples are NaN or infinite"),
])  # fmt: skip
def test_what_is_no_wav_file_is_one_line(data, message) -> None:
    with pytest.raises(InputError, match=message):
        sound_from_bytes(data)


@settings(max_examples=300)
@given(st.data())
def test_damaged_wav_files_are_sounds_or_one_line(data) -> None:
    mutant = bytearray(wav(bytes(range(40)), channels=2, bits=data.draw(st.sampled_from([8, 16, 24, 32]))))
    for _ in range(data.draw(st.integers(1, 6))):
        mutant[data.draw(st.integers(0, len(mutant) - 1))] = data.draw(st.integers(0, 255))
    try:
        sound = sound_from_bytes(bytes(mutant[: data.draw(st.integers(0, len(mutant)))]))
    except InputError:
        return
    assert np.isfinite(sound.samples).all()
    assert sound.samples.nbytes <= 4 * len(mutant)


def test_decode_wav_mixes_channels(step) -> None:
    data = wav(np.array([16384, 0, -16384, -16384], "<i2").tobytes(), channels=2)
    assert step("decode-wav")({"data": data})["samples"].tolist() == [0.25, -0.5]
    assert step("decode-wav", channels="all")({"data": data})["samples"].tolist() == [[0.5, 0], [-0.5, -0.5]]
    assert step("decode-wav")({"data": data})["rate"] == 8000


@pytest.mark.parametrize(("parameters", "want"), [
    ({"size": 3}, [[1, 2, 3], [4, 5, 6], [7, 0, 0]]), ({"size": 3, "rest": "drop"}, [[1, 2, 3], [4, 5, 6]]),
    ({"size": 4, "hop": 3}, [[1, 2, 3, 4], [4, 5, 6, 7]]), ({"size": 3, "hop": 5}, [[1, 2, 3], [6, 7, 0]]),
    ({"size": 3, "hop": 5, "rest": "drop"}, [[1, 2, 3]]),
    ({"size": 3, "context": 2}, [[0, 0, 1, 2, 3], [2, 3, 4, 5, 6], [5, 6, 7, 0, 0]]),
    ({"size": 9}, [[1, 2, 3, 4, 5, 6, 7, 0, 0]]), ({"size": 9, "rest": "drop"}, []),
])  # fmt: skip
def test_windows(step, parameters, want) -> None:
    samples = np.arange(1, 8, dtype=np.float32)
    assert [piece.tolist() for piece in step("windows", **parameters)({"samples": samples})["windows"]] == want
    batched = step("windows", batch=True, **parameters)({"samples": samples})["windows"]
    assert [piece.tolist() for piece in batched] == [[piece] for piece in want]
    assert step("windows", **parameters)({"samples": np.zeros(0, np.float32)})["windows"] == []


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 12))
def test_windows_hold_every_sample(count, size, hop) -> None:
    from nndeploy.processors.builtin.windows import Windows

    pieces = Windows(size, min(hop, size))(np.arange(1, count + 1, dtype=np.float32))
    assert {int(value) for piece in pieces for value in piece} - {0} == set(range(1, count + 1))


@pytest.mark.parametrize(("source", "target"), [(44100, 16000), (8000, 16000), (48000, 16000), (16000, 44100)])
def test_a_tone_keeps_pitch_and_loudness_at_another_rate(step, source, target) -> None:
    times = np.arange(source // 4) / source
    tone = np.sin(2 * np.pi * 1000 * times).astype(np.float32)
    made = step("resample", rate=target)({"samples": tone, "rate": source})
    assert made["rate"] == target
    assert len(made["samples"]) == -(-len(tone) * target // source)
    want = np.sin(2 * np.pi * 1000 * np.arange(len(made["samples"])) / target)
    middle = slice(len(want) // 8, -len(want) // 8)
    np.testing.assert_allclose(made["samples"][middle], want[middle], atol=2e-3)


def test_what_the_lower_rate_cannot_hold_does_not_fold_back() -> None:
    tone = np.sin(2 * np.pi * 10_000 * np.arange(22050) / 44100).astype(np.float32)
    assert abs(resampled(tone, 160, 441)[1000:-1000]).max() < 2e-3


def test_the_same_rate_changes_nothing(step) -> None:
    samples = np.arange(5, dtype=np.float32)
    assert step("resample", rate=100)({"samples": samples, "rate": 100})["samples"].tolist() == samples.tolist()
    assert step("resample", rate=100)({"samples": [], "rate": 200})["samples"].shape == (0,)
    with pytest.raises(InputError, match="a rate of 0 Hz is not taken"):
        step("resample", rate=100)({"samples": samples, "rate": 0})
    with pytest.raises(InputError, match="has too many phases"):
        step("resample", rate=1048573)({"samples": samples, "rate": 1048571})


LIKELY = {"#": 0.9, "+": 0.4, ".": 0.1}


def segments(text: str, length_s: float | None = None, **parameters):
    """Returns the segments of windows of 100 ms; `#` is speech, `+` is between the thresholds, `.` is silence."""
    parameters = {"min_speech_ms": 150, "min_silence_ms": 200, "pad_ms": 0, **parameters}
    sound = np.zeros(round(1000 * (len(text) / 10 if length_s is None else length_s)), np.float32)
    return VoiceSegments(100, **parameters)([LIKELY[c] for c in text], sound, 1000).round(6).tolist()


@pytest.mark.parametrize(("text", "want"), [
    ("", []), ("......", []), (".####...", [[0.1, 0.5]]), ("####", [[0, 0.4]]), ("###.", [[0, 0.4]]),
    ("##.##...", [[0, 0.5]]), ("##...##...", [[0, 0.2], [0.5, 0.7]]), ("##..##...", [[0, 0.6]]),
    ("##++##...", [[0, 0.6]]), ("+##+.+...", [[0.1, 0.4]]), ("##.++...", [[0, 0.2]]), ("##.+++", [[0, 0.6]]),
    (".#...##...", [[0.5, 0.7]]),
])  # fmt: skip
def test_speech_begins_and_ends_by_the_thresholds(text, want) -> None:
    assert segments(text) == want


# silero_vad 6.2.3, windows of 512 samples at 16 kHz, `#` 0.9, `+` 0.4, `.` 0.1:
#   get_speech_timestamps_from_probs(likely, audio_length_samples=LENGTH, threshold=0.5, neg_threshold=0.35,
#       min_speech_duration_ms=SPEECH, min_silence_duration_ms=SILENCE, speech_pad_ms=PAD)
TEXT = "..####.+##....###########..+###...#....#####."
SILERO = {
    (22800, 250, 100, 30): [[544, 22800]],
    (22800, 0, 32, 0): [[1024, 5120], [7168, 12800], [14336, 15872], [17408, 17920], [19968, 22800]],
    (22800, 32, 32, 0): [[1024, 5120], [7168, 12800], [14336, 15872], [19968, 22800]],
    (23000, 96, 128, 60): [[64, 23000]],
    (22800, 100, 64, 500): [[0, 6144], [6144, 17920], [17920, 22800]],
}  # fmt: skip


@pytest.mark.parametrize("how", SILERO)
def test_segments_are_those_of_silero_vad(how) -> None:
    length, speech, silence, pad = how
    made = VoiceSegments(32, 0.5, 0.35, speech, silence, pad)
    found = made([LIKELY[c] for c in TEXT], np.zeros(length, np.float32), 16000)
    assert (found * 16000).round(6).tolist() == SILERO[how]


def test_what_comes_window_by_window_is_one_behind_the_other() -> None:
    parts, sound = [np.array([[0.1, 0.9]]), np.array([[0.9, 0.9]]), np.array([[0.1, 0.1]])], np.zeros(600, np.float32)
    assert VoiceSegments(100, min_silence_ms=100, pad_ms=0)(parts, sound, 1000).round(6).tolist() == [[0.1, 0.4]]
    with pytest.raises(InputError, match=r"probabilities must be \(N,\), this is float64 \(2, 2\)"):
        VoiceSegments(100)([np.zeros((2, 2))], sound, 1000)
    with pytest.raises(InputError, match="a rate of 0 Hz is not taken"):
        VoiceSegments(100)(parts, sound, 0)


def test_segments_are_widened_to_half_way_and_not_beyond_the_sound() -> None:
    assert segments("##...##", pad_ms=500) == [[0, 0.35], [0.35, 0.7]]
    assert segments("..##....", pad_ms=50) == [[0.15, 0.45]]
    assert segments("##+++##...", end_threshold=0.5) == [[0, 0.2], [0.5, 0.7]]
    assert segments(".###", 0.35, pad_ms=50) == [[0.05, 0.35]]
    assert segments(".###....", 0.35, pad_ms=50) == [[0.05, 0.35]]  # windows of a model may reach beyond the sound
    with pytest.raises(InputError, match="NaN"):
        VoiceSegments(10)([0.5, np.nan], [0.0], 1000)


@given(st.text("#+.", max_size=40), st.floats(0, 300))
def test_segments_are_in_order_and_apart(text, pad) -> None:
    times = np.array(segments(text, pad_ms=pad)).reshape(-1)
    assert (np.diff(times) >= -1e-6).all()
    assert ((times >= 0) & (times <= len(text) * 0.1 + 1e-6)).all()
