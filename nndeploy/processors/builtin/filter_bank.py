# SPDX-License-Identifier: Apache-2.0
"""filter-bank: samples -> how loud each of a few bands of pitch is, frame by frame, as Kaldi computes it.

A frame: its mean is taken off, x[i] - `pre-emphasis` * x[i - 1] (the first one is its own neighbour), a window, zeros
up to a power of two, the power of each frequency of its Fourier transform. A band is a triangle on the mel scale,
1127 ln(1 + Hz / 700); neighbours meet in the middle of each other. No noise (dither) is added.

Source: Kaldi, src/feat/feature-window.cc, mel-computations.cc and feature-fbank.cc, with their defaults.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import vector_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range

Floats = npt.NDArray[np.float64]
Milliseconds = Annotated[float, Range(0.1, 10_000)]

MAX_FRAMES = 1 << 22
MAX_FRAME_SAMPLES = 1 << 15
BLOCK_SAMPLES = 1 << 20
"""Frames are worked on in blocks of about so many samples, so that memory does not follow the length of the sound."""
FLOOR = float(np.finfo(np.float32).eps)
"""Kaldi takes no logarithm of less."""


@dataclass(frozen=True)
class FilterBank:
    """Gives the energy in `bins` mel bands of each frame, float32 (N, `bins`), or its natural logarithm (`log`).

    Frames are `length-ms` long, each `shift-ms` after the one before. With `snip-edges` there are as many as fit into
    the sound; without, one a shift, and what they need beyond the ends is the sound reflected there. Bands reach from
    `low-hz` to `high-hz`, which counts from half of the rate if it is 0 or less. Samples are multiplied by `multiply`
    first: 32768 where a model learned from whole numbers of 16 bits, 1 where from -1 to 1. A band that is too narrow
    for any frequency of the transform is silent.
    """

    name: ClassVar[str] = "filter-bank"
    takes: ClassVar[tuple[str, ...]] = ("samples", "rate")
    gives: ClassVar[tuple[str, ...]] = ("frames",)

    bins: Annotated[int, Range(1, 512)] = 80
    length_ms: Milliseconds = 25.0
    shift_ms: Milliseconds = 10.0
    window: Literal["povey", "hamming", "hanning"] = "povey"
    pre_emphasis: Annotated[float, Range(0, 1)] = 0.97
    snip_edges: bool = True
    low_hz: Annotated[float, Range(0, 1e6)] = 20.0
    high_hz: Annotated[float, Range(-1e6, 1e6)] = 0.0
    multiply: Annotated[float, Range(1e-6, 1e6)] = 32768.0
    log: bool = True

    def __post_init__(self) -> None:
        if 0 < self.high_hz <= self.low_hz:
            raise UsageError(f"high-hz {self.high_hz} must be above low-hz {self.low_hz}")

    def __call__(self, samples: object, rate: int) -> npt.NDArray[np.float32]:
        """Returns the bands of each frame."""
        values = vector_from_value(samples, "samples")
        rate_hz = int(rate)
        length, shift = int(rate_hz * self.length_ms / 1000), int(rate_hz * self.shift_ms / 1000)
        if not 2 <= length <= MAX_FRAME_SAMPLES or shift < 1:
            raise InputError(f"at {rate_hz} Hz a frame has {length} samples and a shift {shift}: too few or too many")
        frames = self._frames(values, length, shift)
        if len(frames) > MAX_FRAMES:
            raise InputError(f"{len(values)} samples make {len(frames)} frames, more than {MAX_FRAMES}")
        bands = mel_bands(self.bins, _power_of_two(length), rate_hz, self.low_hz, self._high_hz(rate_hz))
        found = np.empty((len(frames), self.bins), np.float32)
        step = max(1, BLOCK_SAMPLES // length)
        for i in range(0, len(frames), step):
            found[i : i + step] = self._energies(frames[i : i + step]) @ bands
        return np.log(np.maximum(found, np.float32(FLOOR))) if self.log else found

    def given_shapes(self, samples: Known, rate: Known) -> tuple[Known]:
        """Returns what is known of the bands."""
        del samples, rate
        return ((None, self.bins),)

    def _high_hz(self, rate_hz: int) -> float:
        high = self.high_hz if self.high_hz > 0 else rate_hz / 2 + self.high_hz
        if not self.low_hz < high <= rate_hz / 2:
            raise InputError(f"bands from {self.low_hz} to {high} Hz do not fit a rate of {rate_hz} Hz")
        return high

    def _frames(self, values: npt.NDArray[np.float32], length: int, shift: int) -> npt.NDArray[np.float32]:
        """Returns a view (N, length) of the samples of each frame."""
        if self.snip_edges:
            if len(values) < length:
                return np.zeros((0, length), np.float32)
            return np.lib.stride_tricks.sliding_window_view(values, length)[::shift]
        count = (len(values) + shift // 2) // shift  # rounded
        if not count:
            return np.zeros((0, length), np.float32)
        begin = shift // 2 - length // 2
        end = begin + (count - 1) * shift + length
        before = values[_folded(np.arange(begin, 0), len(values))]
        after = values[_folded(np.arange(len(values), end), len(values))]
        reflected = np.concatenate([before, values[max(begin, 0) : end], after])
        return np.lib.stride_tricks.sliding_window_view(reflected, length)[::shift]

    def _energies(self, frames: npt.NDArray[np.float32]) -> Floats:
        """Returns the power of each frequency of each frame."""
        x = frames.astype(np.float64) * self.multiply
        x -= x.mean(axis=1, keepdims=True)
        x -= self.pre_emphasis * np.concatenate([x[:, :1], x[:, :-1]], axis=1)
        x *= frame_window(self.window, x.shape[1])
        spectrum = np.fft.rfft(x, _power_of_two(x.shape[1]), axis=1)
        return np.square(spectrum.real) + np.square(spectrum.imag)


def _folded(places: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Returns places beyond either end as those that they are the mirror images of, there and back again."""
    around = places % (2 * count)
    return np.minimum(around, 2 * count - 1 - around)


def _power_of_two(length: int) -> int:
    """Returns the least power of two that is not below `length`."""
    return 1 << (length - 1).bit_length()


@lru_cache(maxsize=16)
def frame_window(kind: str, length: int) -> Floats:
    """Returns a window whose ends lie on its first and last sample."""
    wave = np.cos(2 * np.pi * np.arange(length) / (length - 1))
    if kind == "hamming":
        return np.asarray(0.54 - 0.46 * wave)
    hanning = 0.5 - 0.5 * wave
    return np.asarray(np.clip(hanning, 0, None) ** 0.85 if kind == "povey" else hanning)


@lru_cache(maxsize=4)
def mel_bands(bins: int, transform: int, rate_hz: int, low_hz: float, high_hz: float) -> Floats:
    """Returns the weight of each frequency in each band, (transform / 2 + 1, bins)."""
    edges = np.linspace(mel(np.float64(low_hz)), mel(np.float64(high_hz)), bins + 2)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    pitch = mel(np.arange(transform // 2 + 1, dtype=np.float64) * rate_hz / transform)[:, np.newaxis]
    weights = np.clip(np.minimum((pitch - left) / (centre - left), (right - pitch) / (right - centre)), 0, None)
    return np.asarray(weights)


def mel(hz: Floats | np.float64) -> Floats:
    """Returns frequencies on the mel scale."""
    return np.asarray(1127 * np.log1p(hz / 700))
