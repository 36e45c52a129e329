# SPDX-License-Identifier: Apache-2.0
"""Reads WAV files: integer samples of 8, 16, 24 and 32 bits and floating ones of 32 and 64, any number of channels.

Writes such of 16 bits, and floating ones of 32. Done here because the standard library takes no floating samples. Files
may have been written by anybody: each chunk is held against the bytes that are there before anything is made of it.

Laws: a full-scale sample is 1.0 or just below it, silence is 0.0, whatever the width. A file that holds fewer samples
than it states is damaged.

Source: "Multimedia Programming Interface and Data Specifications 1.0" (RIFF WAVE, IBM and Microsoft 1991), "Multiple
channel audio data and WAVE files" (Microsoft 2001, WAVE_FORMAT_EXTENSIBLE) and EBU Tech 3306 (RF64).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import MAX_RATE_HZ

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
SUBFORMAT_END = bytes.fromhex("000000001000800000aa00389b71")
MAX_CHANNELS = 64
CHUNKS = (b"fmt ", b"data", b"fact", b"LIST")
"""What may stand behind a chunk of odd size whose writer left out the padding."""
IN_DS64 = 0xFFFFFFFF
MAX_DATA_BYTES = 0x7FFFDFFF
"""The most bytes of samples that are written: more is taken for what a stream states."""
STREAMED = range(0x7FFFE000, 0x80000001)
"""What sox, espeak and arecord state where they cannot go back to the head; FFmpeg states `IN_DS64`, others 0."""
WIDTHS = {(PCM, 8), (PCM, 16), (PCM, 24), (PCM, 32), (FLOAT, 32), (FLOAT, 64)}

SampleFormat: TypeAlias = Literal["pcm16", "float32"]
"""How samples are written: as whole numbers of 16 bits, or floating ones of 32."""


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples as float32 (N, channels), and how many there are a second."""

    samples: npt.NDArray[np.float32]
    rate_hz: int


@dataclass(frozen=True, slots=True)
class _Format:
    code: int
    num_channels: int
    rate_hz: int
    num_bits: int

    @property
    def frame_bytes(self) -> int:
        return self.num_channels * self.num_bits // 8


def sound_from_bytes(data: bytes) -> Sound:
    """Returns the sound of a WAV file.

    Data of unknown size (a stream that was written into a file) reach to the end of the file.

    Raises:
        InputError: the bytes are no WAV file, of a kind that is not taken, damaged, or fewer than they state.
    """
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        raise InputError("is no WAV file: it does not begin as one")
    found: _Format | None = None
    for name, body in _chunks(data):
        if name == b"fmt ":
            found = _format_from(body)
        elif name == b"data":
            if found is None:
                raise InputError("is a damaged WAV file: its data stand before its format")
            return Sound(_samples_from(body, found), found.rate_hz)
    raise InputError("is a WAV file without data" if found else "is a WAV file without a format")


def mono(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns the mean of the channels of (N, channels)."""
    if samples.shape[1] == 1:
        return samples[:, 0]
    return np.asarray(samples.mean(axis=1, dtype=np.float64), np.float32)


def bytes_from_sound(sound: Sound, form: SampleFormat) -> bytes:
    """Returns a WAV file. Samples beyond -1 to 1 are cut off in one of 16 bits, and stay in a floating one.

    Raises:
        InputError: a sample is NaN or infinite, or there are too many channels or samples for a WAV file.
    """
    if not np.isfinite(sound.samples).all():
        raise InputError("samples hold NaN or infinity")
    num_frames, num_channels = sound.samples.shape
    if form == "pcm16":
        scaled = np.rint(sound.samples.astype(np.float64) * 32768)
        body = np.clip(scaled, -32768, 32767).astype("<i2").tobytes()
    else:
        body = sound.samples.astype("<f4").tobytes()
    num_bits = 16 if form == "pcm16" else 32
    frame_bytes = num_channels * num_bits // 8
    if not 1 <= num_channels <= MAX_CHANNELS or len(body) > MAX_DATA_BYTES:
        raise InputError(f"{num_frames} samples of {num_channels} channels are too many for a WAV file")
    code = PCM if form == "pcm16" else FLOAT
    about = struct.pack(
        "<HHIIHH", code, num_channels, sound.rate_hz, sound.rate_hz * frame_bytes, frame_bytes, num_bits
    )
    fact = b"" if form == "pcm16" else struct.pack("<4sII", b"fact", 4, num_frames)
    chunks = struct.pack("<4sI", b"fmt ", len(about)) + about + fact + struct.pack("<4sI", b"data", len(body)) + body
    return struct.pack("<4sI4s", b"RIFF", 4 + len(chunks), b"WAVE") + chunks


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position, num_data_bytes = 12, IN_DS64
    while position + 8 <= len(data):
        name, length = struct.unpack_from("<4sI", data, position)
        position += 8
        left = len(data) - position
        if name == b"ds64" and left >= 16:
            num_data_bytes = struct.unpack_from("<Q", data, position + 8)[0]
        if name == b"data":
            length = num_data_bytes if length == IN_DS64 else length
            is_empty = length == 0 and data[position : position + 4] in CHUNKS
            if (length in (0, IN_DS64) and not is_empty) or (length > left and length in STREAMED):
                length = left
            if length > left:
                raise InputError(f"is a WAV file that was cut: it states {length} bytes of samples and has {left}")
        yield name, data[position : position + length]
        position += length
        position += length % 2 and data[position : position + 4] not in CHUNKS


def _format_from(body: bytes) -> _Format:
    if len(body) < 16:
        raise InputError(f"is a damaged WAV file: its format has {len(body)} bytes")
    code, num_channels, rate_hz, _, frame_bytes, num_bits = struct.unpack_from("<HHIIHH", body)
    if code == EXTENSIBLE:
        if len(body) < 40 or body[26:40] != SUBFORMAT_END:
            raise InputError("is a WAV file of an extended format that is not taken")
        code = struct.unpack_from("<H", body, 24)[0]
    width = -(-num_bits // 8) * 8 if code == PCM and num_bits > 8 else num_bits  # less significant bits are zero
    found = _Format(code, num_channels, rate_hz, width)
    if (code, width) not in WIDTHS:
        hint = "convert it to 16-bit PCM"
        raise InputError(f"is a WAV file of format {code} with {num_bits} bits, which is not taken", hint=hint)
    if not 1 <= num_channels <= MAX_CHANNELS or not 1 <= rate_hz <= MAX_RATE_HZ or frame_bytes != found.frame_bytes:
        what = f"{num_channels} channels, {rate_hz} Hz, {frame_bytes} bytes a frame"
        raise InputError(f"is a damaged WAV file: its format says {what}")
    return found


def _samples_from(body: bytes, how: _Format) -> npt.NDArray[np.float32]:
    num_frames = len(body) // how.frame_bytes
    raw = body[: num_frames * how.frame_bytes]
    return _floats(raw, how).reshape(num_frames, how.num_channels)


def _floats(raw: bytes, how: _Format) -> npt.NDArray[np.float32]:
    if how.code == FLOAT:
        with np.errstate(over="ignore"):  # a sample of 64 bits may be too large for 32; that is refused below
            found = np.frombuffer(raw, f"<f{how.num_bits // 8}").astype(np.float32)
        if not np.isfinite(found).all():
            raise InputError("is a damaged WAV file: samples are NaN or infinite")
        return found
    if how.num_bits == 8:  # the only width without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / np.float32(128)
    if how.num_bits == 24:
        wide = np.zeros((len(raw) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        whole = wide.view("<i4")[:, 0]
    else:
        whole = np.frombuffer(raw, f"<i{how.num_bits // 8}")
    bits = 16 if how.num_bits == 16 else 32
    return (whole.astype(np.float64) / 2.0 ** (bits - 1)).astype(np.float32)
