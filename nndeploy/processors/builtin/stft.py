# SPDX-License-Identifier: Apache-2.0
"""stft: samples -> the spectrum of each of many short frames."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.processors.arrays import vector_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range
from nndeploy.processors.short_time_fourier import Edges, Frames, WindowName

FrameSize = Annotated[int, Range(2, 1 << 16)]


@dataclass(frozen=True)
class Stft:
    """Gives the short-time Fourier transform, float32 (frames, `size` / 2 + 1, 2), as ONNX's STFT, and the `length`.

    Each frame has `size` samples, under a periodic window, and begins `hop` samples after the one before. The last axis
    is real and imaginary part; `length` is the number of samples, for `istft`. With `edges` `reflect` or `zeros` the
    middle of frame i is sample i x `hop`, the sound is filled up with silence to whole hops, and what frames need
    beyond its ends is the sound reflected there, or silence. With `drop` there are as many frames as fit.
    """

    name: ClassVar[str] = "stft"
    takes: ClassVar[tuple[str, ...]] = ("samples",)
    gives: ClassVar[tuple[str, ...]] = ("spectrum", "length")

    size: FrameSize
    hop: FrameSize
    window: WindowName = "hann"
    edges: Edges = "reflect"

    def __call__(self, samples: object) -> tuple[npt.NDArray[np.float32], int]:
        """Returns the spectrum of each frame, and the number of samples.

        Raises:
            InputError: these are no samples, or too many.
        """
        values = vector_from_value(samples, "samples")
        frames = Frames(self.size, self.hop, self.window, self.edges)
        found = np.empty((frames.count(len(values)), self.size // 2 + 1, 2), np.float32)
        begin = 0
        for block in frames.spectra(values):
            found[begin : begin + len(block), :, 0] = block.real
            found[begin : begin + len(block), :, 1] = block.imag
            begin += len(block)
        return found, len(values)

    def given_shapes(self, samples: Known) -> tuple[Known, ...]:
        """Returns what is known of the spectrum and the length."""
        del samples
        return (None, self.size // 2 + 1, 2), None
