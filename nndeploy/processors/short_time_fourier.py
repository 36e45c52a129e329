# SPDX-License-Identifier: Apache-2.0
"""The short-time Fourier transform: which samples a frame holds, its window, its spectrum, and the way back.

Frame i begins at sample i * hop of the sound, which for `reflect` and `zeros` is first filled up to whole hops with
silence, and then lengthened by size // 2 samples on both sides: so frame i has sample i * hop in its middle. Windows
are periodic: sample 0 is where the window begins anew.

Sources: J. Allen and L. Rabiner, "A unified approach to short-time Fourier analysis and synthesis" (1977); D. Griffin
and J. Lim, "Signal estimation from modified short-time Fourier transform" (1984) for the way back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError

Floats: TypeAlias = npt.NDArray[np.float64]
Spectra: TypeAlias = npt.NDArray[np.complex128]
WindowName: TypeAlias = Literal["hann", "sqrt-hann", "hamming", "rectangular"]
Edges: TypeAlias = Literal["reflect", "zeros", "drop"]
"""What frames hold beyond the sound: its mirror image, silence, or there are no such frames."""

MAX_NUMBERS = 1 << 28
"""The most samples of a sound, and the most of all its frames together."""
BLOCK_SAMPLES = 1 << 20
"""Frames are worked on in blocks of about so many samples, so that memory does not follow the length of the sound."""
LEAST_SQUARES = 1e-10
"""Where the squares of all windows add up to less, a sound cannot be had back."""


@dataclass(frozen=True, slots=True)
class Frames:
    """How a sound is cut into frames: `size` samples each, `hop` samples after the one before."""

    size: int
    hop: int
    window: WindowName
    edges: Edges

    @property
    def margin(self) -> int:
        """How many samples are put before and behind the sound."""
        return 0 if self.edges == "drop" else self.size // 2

    def count(self, num_samples: int) -> int:
        """Returns how many frames a sound has, none if it is empty.

        Raises:
            InputError: they are too many.
        """
        if not num_samples:
            return 0
        if self.edges == "drop":
            found = (num_samples - self.size) // self.hop + 1 if num_samples >= self.size else 0
        else:
            found = -(-num_samples // self.hop) + 1
        if max(found * self.size, num_samples) > MAX_NUMBERS:
            raise InputError(f"{num_samples} samples make {found} frames of {self.size} samples, which are too many")
        return found

    def spectra(self, samples: npt.NDArray[np.float32]) -> Iterator[Spectra]:
        """Yields the spectra (frames, size // 2 + 1) of a sound, block by block."""
        count = self.count(len(samples))
        if not count:
            return
        padded = samples
        if self.edges != "drop":
            filled = np.pad(samples, (0, (count - 1) * self.hop - len(samples)))
            how: Literal["reflect", "constant"] = "reflect" if self.edges == "reflect" else "constant"
            padded = np.pad(filled, (self.margin, self.size - self.margin), how)
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.size)[:: self.hop][:count]
        step = max(1, BLOCK_SAMPLES // self.size)
        for i in range(0, count, step):
            yield np.fft.rfft(frames[i : i + step] * window_of(self.window, self.size), axis=1)

    def sound(self, spectra: Spectra, num_samples: int) -> Floats:
        """Returns the sound of spectra (frames, size // 2 + 1), overlapped and added; where no frame is, silence.

        Of all sounds it is the one whose spectra are the nearest to these by the sum of squares.
        """
        window = window_of(self.window, self.size)
        total = max(len(spectra) - 1, 0) * self.hop + self.size
        added, squares = np.zeros(total), np.zeros(total)
        step = max(1, BLOCK_SAMPLES // self.size)
        for i in range(0, len(spectra), step):
            pieces = np.fft.irfft(spectra[i : i + step], self.size, axis=1) * window
            for place, piece in enumerate(pieces, i):
                begin = place * self.hop
                added[begin : begin + self.size] += piece
                squares[begin : begin + self.size] += window**2
        is_there = squares > LEAST_SQUARES
        found = np.divide(added, squares, out=np.zeros(total), where=is_there)[self.margin :][:num_samples]
        return np.pad(found, (0, num_samples - len(found)))

    def check_invertible(self) -> None:
        """Checks that every sample within the sound is under some window.

        Raises:
            UsageError: one is not.
        """
        squares = np.pad(window_of(self.window, self.size) ** 2, (0, -self.size % self.hop))
        if squares.reshape(-1, self.hop).sum(axis=0).min() <= LEAST_SQUARES:
            told = f"windows of {self.size} samples, {self.hop} apart, leave samples that none of them covers"
            raise UsageError(told, hint="hop is usually a quarter of size")


@lru_cache(maxsize=16)
def window_of(name: WindowName, size: int) -> Floats:
    """Returns a periodic window."""
    wave = np.cos(2 * np.pi * np.arange(size) / size)
    hann = 0.5 - 0.5 * wave
    made = {
        "hann": hann, "sqrt-hann": np.sqrt(hann), "hamming": 0.54 - 0.46 * wave, "rectangular": np.ones(size),
    }[name]  # fmt: skip
    made.flags.writeable = False
    return np.asarray(made)
