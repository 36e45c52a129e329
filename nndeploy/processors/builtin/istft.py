# SPDX-License-Identifier: Apache-2.0
"""istft: the spectrum of each of many short frames -> the samples that they are of."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Samples, floats_from_value, shape_text, without_batch
from nndeploy.processors.builtin.stft import FrameSize
from nndeploy.processors.short_time_fourier import Edges, Frames, WindowName


@dataclass(frozen=True)
class Istft:
    """Undoes `stft` with the same parameters: overlaps and adds the frames, over the sum of the squared windows.

    `spectrum` is (frames, `size` / 2 + 1, 2), also with an axis of one in front; `length` is how many samples there
    are. Of a spectrum that a model changed it gives the sound whose own spectrum is the nearest.
    """

    name: ClassVar[str] = "istft"
    takes: ClassVar[tuple[str, ...]] = ("spectrum", "length")
    gives: ClassVar[tuple[str, ...]] = ("samples",)

    size: FrameSize
    hop: FrameSize
    window: WindowName = "hann"
    edges: Edges = "reflect"

    def __post_init__(self) -> None:
        self._frames.check_invertible()

    def __call__(self, spectrum: object, length: object) -> Samples:
        """Returns the samples.

        Raises:
            InputError: the spectrum has another shape or number of frames than the length and the parameters say.
        """
        array = np.asarray(length)
        if array.size != 1 or array.dtype.kind not in "iu" or array.item() < 0:
            raise InputError(f"length must be a number of samples, is {length!r:.40}")
        num_samples = int(array.item())
        values = without_batch(floats_from_value(spectrum, "the spectrum"), 3)
        want = (self._frames.count(num_samples), self.size // 2 + 1, 2)
        if values.shape != want:
            raise InputError(f"the spectrum of {num_samples} samples must be {want}, this is {shape_text(spectrum)}")
        parts = values.astype(np.float64)
        return self._frames.sound(parts[..., 0] + 1j * parts[..., 1], num_samples).astype(np.float32)

    @property
    def _frames(self) -> Frames:
        return Frames(self.size, self.hop, self.window, self.edges)
