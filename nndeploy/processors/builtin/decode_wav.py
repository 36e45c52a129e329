# SPDX-License-Identifier: Apache-2.0
"""decode-wav: the bytes of a WAV file -> samples and their rate."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array
from nndeploy.processors.wav_files import mono, sound_from_bytes


@dataclass(frozen=True)
class DecodeWav:
    """Decodes a WAV file, 8 to 32 bits or floating; `mono` is the mean of all channels, `all` keeps them, (N, C)."""

    name: ClassVar[str] = "decode-wav"
    takes: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[tuple[str, ...]] = ("samples", "rate")

    channels: Literal["mono", "all"] = "mono"

    def __call__(self, data: bytes) -> tuple[Array, int]:
        """Returns float32 samples within -1 to 1, and the rate in Hz.

        Raises:
            InputError: the bytes are no WAV file, or damaged.
        """
        if not isinstance(data, bytes):
            raise InputError(f"data must be bytes, this is a {type(data).__name__}")
        sound = sound_from_bytes(data)
        return (mono(sound.samples) if self.channels == "mono" else sound.samples), sound.rate_hz
