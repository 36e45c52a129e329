# SPDX-License-Identifier: Apache-2.0
"""voice-segments: the probability of speech in each window -> the times at which somebody speaks."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import vector_from_value
from nndeploy.processors.parameters import Fraction, Range

Milliseconds = Annotated[float, Range(0, 1e9)]


@dataclass(frozen=True)
class VoiceSegments:
    """Speech begins at a window above `threshold`, ends when windows stay below `end-threshold` for `min-silence-ms`.

    Segments shorter than `min-speech-ms` are dropped; each of the others is widened by `pad-ms` on both sides, not
    beyond half way to its neighbour, nor beyond the sound. `hop-ms` is the time from one window to the next. A list
    of probabilities, such as a model gives window by window, is one behind the other.
    """

    name: ClassVar[str] = "voice-segments"
    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
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

    def __call__(self, probabilities: object) -> npt.NDArray[np.float64]:
        """Returns begin and end of each segment in seconds, (N, 2)."""
        parts = probabilities if isinstance(probabilities, list) else [probabilities]
        vectors = [vector_from_value(part, "probabilities") for part in parts]
        speech = np.concatenate([np.zeros(0, np.float32), *vectors])
        if np.isnan(speech).any():
            raise InputError("probabilities hold NaN")
        runs = [run for run in self._runs(speech.tolist()) if (run[1] - run[0]) * self.hop_ms >= self.min_speech_ms]
        times = np.array(runs, np.float64).reshape(-1, 2) * (self.hop_ms / 1000)
        return self._padded(times, len(speech) * self.hop_ms / 1000)

    def _runs(self, speech: list[float]) -> list[tuple[int, int]]:
        """Returns first window and window after the last of each stretch of speech."""
        low = self.threshold - 0.15 if self.end_threshold is None else self.end_threshold
        runs: list[tuple[int, int]] = []
        begin = silence = -1
        for i, probability in enumerate(speech):
            if begin < 0:
                begin = i if probability >= self.threshold else -1
            elif probability >= self.threshold:
                silence = -1
            elif probability < low and silence < 0:
                silence = i
            if begin >= 0 and silence >= 0 and (i + 1 - silence) * self.hop_ms >= self.min_silence_ms:
                runs.append((begin, silence))
                begin = silence = -1
        if begin >= 0:
            runs.append((begin, silence if silence >= 0 else len(speech)))
        return runs

    def _padded(self, times: npt.NDArray[np.float64], length: float) -> npt.NDArray[np.float64]:
        if not len(times):
            return times
        gaps = times[1:, 0] - times[:-1, 1]
        room = np.minimum(gaps / 2, self.pad_ms / 1000)
        before = np.concatenate([[min(times[0, 0], self.pad_ms / 1000)], room])
        after = np.concatenate([room, [min(length - times[-1, 1], self.pad_ms / 1000)]])
        return np.stack([times[:, 0] - before, times[:, 1] + after], axis=1)
