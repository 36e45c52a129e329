# SPDX-License-Identifier: Apache-2.0
"""voice-segments: the probability of speech in each window -> the times at which somebody speaks.

Source: `get_speech_timestamps` of the package silero-vad 6, without its limit on the length of a segment.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import rate_from_value, vector_from_value
from nndeploy.processors.parameters import Fraction, Range

Milliseconds = Annotated[float, Range(0, 1e9)]
HYSTERESIS = 0.15
"""How far the threshold of the end lies below that of the beginning where nobody says."""
LOWEST_END = 0.01
"""The least threshold of the end where nobody says."""


@dataclass(frozen=True)
class VoiceSegments:
    """Speech begins at a window that reaches `threshold`, and ends where a long enough pause begins.

    A pause begins at a window below `end-threshold`, and is over where one reaches `threshold` again. It is long enough
    if one of its windows below `end-threshold` begins `min-silence-ms` or more after it. Speech that has not ended
    reaches to the end of the sound. `end-threshold` is 0.15 below `threshold` if it is not given. Segments of at most
    `min-speech-ms` are dropped; each of the others is widened by `pad-ms` on both sides, not beyond half way to its
    neighbour, nor beyond the sound. `hop-ms` is the time from one window to the next. A list of probabilities, such as
    a model gives window by window, is one behind the other.
    """

    name: ClassVar[str] = "voice-segments"
    takes: ClassVar[tuple[str, ...]] = ("probabilities", "samples", "rate")
    gives: ClassVar[tuple[str, ...]] = ("segments",)

    hop_ms: Annotated[float, Range(0.01, 1e6)]
    threshold: Fraction = 0.5
    end_threshold: Fraction | None = None
    min_speech_ms: Milliseconds = 250.0
    min_silence_ms: Milliseconds = 100.0
    pad_ms: Milliseconds = 30.0

    def __post_init__(self) -> None:
        if self.end_threshold is not None and self.end_threshold > self.threshold:
            raise UsageError(f"end-threshold {self.end_threshold} must not be above threshold {self.threshold}")

    def __call__(self, probabilities: object, samples: object, rate: int) -> npt.NDArray[np.float64]:
        """Returns begin and end of each segment in seconds, (N, 2)."""
        parts = probabilities if isinstance(probabilities, list) else [probabilities]
        vectors = [vector_from_value(part, "probabilities") for part in parts]
        speech = np.concatenate([np.zeros(0, np.float32), *vectors])
        if np.isnan(speech).any():
            raise InputError("probabilities hold NaN")
        length_ms = 1000 * len(vector_from_value(samples, "samples")) / rate_from_value(rate)
        found = [one for one in self._segments(speech.tolist(), length_ms) if one[1] - one[0] > self.min_speech_ms]
        return self._padded(np.array(found, np.float64).reshape(-1, 2), length_ms) / 1000

    def _segments(self, speech: list[float], length_ms: float) -> list[tuple[float, float]]:
        """Returns begin and end of each stretch of speech in milliseconds."""
        low = max(self.threshold - HYSTERESIS, LOWEST_END) if self.end_threshold is None else self.end_threshold
        found: list[tuple[float, float]] = []
        begin = silence = -1
        for i, probability in enumerate(speech):
            if probability >= self.threshold:
                begin, silence = i if begin < 0 else begin, -1
            elif begin >= 0 and probability < low:
                silence = i if silence < 0 else silence
                if (i - silence) * self.hop_ms >= self.min_silence_ms:
                    found.append((begin * self.hop_ms, min(silence * self.hop_ms, length_ms)))
                    begin = silence = -1
        if begin >= 0:
            found.append((begin * self.hop_ms, length_ms))
        return found

    def _padded(self, times: npt.NDArray[np.float64], length_ms: float) -> npt.NDArray[np.float64]:
        if not len(times):
            return times
        room = np.minimum((times[1:, 0] - times[:-1, 1]) / 2, self.pad_ms)
        before = np.concatenate([[min(times[0, 0], self.pad_ms)], room])
        after = np.concatenate([room, [min(length_ms - times[-1, 1], self.pad_ms)]])
        return np.stack([times[:, 0] - before, times[:, 1] + after], axis=1)
