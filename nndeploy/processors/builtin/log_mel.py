# SPDX-License-Identifier: Apache-2.0
"""log-mel: samples -> the logarithm of how loud each band of pitch is, as Whisper's models were trained on.

Bands are triangles over frequencies whose corners lie at equal distances on Slaney's mel scale (below 1000 Hz in
proportion, above by the logarithm), each divided by half of its width. `filter-bank` is Kaldi's: another scale, other
windows, and energies that are not held against the loudest one.

Sources: openai/whisper, audio.py, `log_mel_spectrogram`; M. Slaney, "Auditory Toolbox" (1998) for the scale.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import rate_from_value, vector_from_value
from nndeploy.processors.builtin.stft import FrameSize
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range
from nndeploy.processors.short_time_fourier import Floats, Frames

LEAST = 1e-10
"""No logarithm is taken of less."""
BELOW_LOUDEST = 8.0
"""So many powers of ten below the loudest band is the least that is told apart."""
LINEAR_MELS, LINEAR_HZ = 15.0, 1000.0
"""Where Slaney's scale turns from proportion to logarithm."""
MELS_OF_LOG = 27 / np.log(6.4)
"""Mels for each natural logarithm of Hz above that."""


@dataclass(frozen=True)
class LogMel:
    """Gives what Whisper hears: float32 (1, `bins`, frames), of the first `seconds` or of fewer and silence.

    With `whole` a longer sound is not cut.

    Frames of `size` samples, one every `hop` samples, with the sound reflected at its ends, under a periodic Hann
    window; the power in `bins` bands on Slaney's mel scale, up to half of the rate; its logarithm to base 10, not less
    than the largest - 8; (x + 4) / 4. Whisper wants a rate of 16000 (`resample`), and 128 bins since its third version.
    """

    name: ClassVar[str] = "log-mel"
    takes: ClassVar[tuple[str, ...]] = ("samples", "rate")
    gives: ClassVar[tuple[str, ...]] = ("input_features",)

    bins: Annotated[int, Range(1, 512)] = 80
    size: FrameSize = 400
    hop: FrameSize = 160
    seconds: Annotated[float, Range(0.01, 3600)] = 30.0
    whole: bool = False

    def __call__(self, samples: object, rate: object) -> npt.NDArray[np.float32]:
        """Returns the features.

        Raises:
            InputError: these are no samples, or `seconds` of them are less than one hop.
        """
        rate_hz = rate_from_value(rate)
        values = vector_from_value(samples, "samples")
        count = max(int(self.seconds * rate_hz), len(values) * self.whole)
        num_frames = count // self.hop
        if not num_frames:
            raise InputError(f"at {rate_hz} Hz {self.seconds} seconds are less than a hop of {self.hop} samples")
        values = values[:count]
        frames = Frames(self.size, self.hop, "hann", "reflect")
        bands, begin = mel_bands(self.bins, self.size, rate_hz), 0
        found = np.empty((frames.count(count), self.bins))
        for block in frames.spectra(np.pad(values, (0, count - len(values)))):
            found[begin : begin + len(block)] = (np.square(block.real) + np.square(block.imag)) @ bands
            begin += len(block)
        logs = np.log10(np.maximum(found[:num_frames], LEAST))
        features = (np.maximum(logs, logs.max() - BELOW_LOUDEST) + 4) / 4
        return np.asarray(features.T[np.newaxis], np.float32)

    def given_shapes(self, samples: Known, rate: Known) -> tuple[Known]:
        """Returns what is known of the features: how many frames where the rate is known and none is too many."""
        del samples
        count = int(self.seconds * rate) if isinstance(rate, int) and not self.whole else None
        return ((1, self.bins, count and count // self.hop),)


@lru_cache(maxsize=4)
def mel_bands(bins: int, size: int, rate_hz: int) -> Floats:
    """Returns the weight of each frequency in each band, (size // 2 + 1, bins)."""
    highest = rate_hz / 2
    mels = highest * LINEAR_MELS / LINEAR_HZ
    if highest > LINEAR_HZ:
        mels = LINEAR_MELS + MELS_OF_LOG * np.log(highest / LINEAR_HZ)
    edges = _hz(np.linspace(0, mels, bins + 2))
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    pitch = (np.arange(size // 2 + 1) * rate_hz / size)[:, np.newaxis]
    triangles = np.clip(np.minimum((pitch - left) / (centre - left), (right - pitch) / (right - centre)), 0, None)
    return np.asarray(triangles * 2 / (right - left))


def _hz(mels: Floats) -> Floats:
    above = LINEAR_HZ * np.exp((mels - LINEAR_MELS) / MELS_OF_LOG)
    return np.where(mels < LINEAR_MELS, mels * LINEAR_HZ / LINEAR_MELS, above)
