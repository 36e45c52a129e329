# SPDX-License-Identifier: Apache-2.0
"""spoken-segments: what was written of one window of a sound -> what was said until now and when, and where to go on.

Source: `WhisperGenerationMixin._retrieve_segment` of transformers: the next window begins at the last time at which a
segment ended and another one began.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from nndeploy.processors.arrays import Array, floats_from_value, tokens_from_value
from nndeploy.processors.builtin.next_window import HEARD
from nndeploy.processors.parameters import Count, Range
from nndeploy.processors.tokenizer_file import TokenizerFile, decoded


@dataclass(frozen=True)
class SpokenSegments:
    """Splits the `tokens` of a window of `frames` where two times follow each other; `timestamps` is the first time.

    A time is `step-ms` after the one before, and stands for `step-frames` frames of the features. `segments` are begin
    and end in seconds, (N, 2), `texts` what is said in each, `text` all of it; `spoken` are all tokens, with times.
    What was written behind the last end of a segment, if another one began there, is heard again: `heard` frames are
    done with. `done` says whether that is all. The fields of the window before are taken where they are there.
    """

    name: ClassVar[str] = "spoken-segments"
    takes: ClassVar[tuple[str, ...]] = ("tokens", "features")
    may_take: ClassVar[tuple[str, ...]] = (HEARD, "segments", "texts", "spoken")
    gives: ClassVar[tuple[str, ...]] = (HEARD, "segments", "texts", "spoken", "text", "done")

    tokenizer: TokenizerFile
    timestamps: Count
    frames: Count = 3000
    step_ms: Annotated[float, Range(0.01, 10_000)] = 20.0
    step_frames: Count = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokenizer", self.tokenizer.opened())

    def __call__(
        self, tokens: object, features: object, *, heard: int = 0, segments: object = None, texts: Sequence[str] = (),
        spoken: object = (),
    ) -> tuple[Any, ...]:  # fmt: skip
        """Returns the fields of all windows until now."""
        written = tokens_from_value(tokens, "tokens")
        left = floats_from_value(features, "features").shape[-1] - heard
        parts, num_frames = self._parts(written, min(self.frames, left))
        begin_s, step_s = heard / self.step_frames * self.step_ms / 1000, self.step_ms / 1000
        times, said = np.asarray([] if segments is None else segments, np.float64).reshape(-1, 2), [*texts]
        for one in parts:
            text = self._text(one.tokens)
            if text:
                times = np.append(times, [[begin_s + one.begin * step_s, begin_s + one.end * step_s]], axis=0)
                said.append(text)
        every = np.concatenate([np.asarray(spoken, written.dtype), *[one.tokens for one in parts]])
        heard += num_frames
        return heard, times, said, every, self._text(every), num_frames == left

    def _parts(self, tokens: Array, window: int) -> "tuple[list[_Part], int]":
        """Returns the segments in a window of so many frames, and how many of these are done with."""
        first = self.timestamps
        is_time = tokens >= first
        cuts = [int(cut) for cut in np.flatnonzero(is_time[:-1] & is_time[1:]) + 1]
        if not cuts:
            times = tokens[is_time] - first
            end = int(times[-1]) if len(times) and times[-1] else window // self.step_frames
            return ([_Part(tokens, 0, end)] if len(tokens) else []), window
        ends_with_time = is_time[-2:].tolist() == [False, True]
        ends = [*cuts, len(tokens)] if ends_with_time else cuts
        parts = [
            _Part(tokens[begin:end], int(tokens[begin]) - first, int(tokens[end - 1]) - first)
            for begin, end in zip([0, *cuts], ends, strict=False)
        ]
        if ends_with_time:
            return parts, window
        parts[-1] = replace(parts[-1], tokens=np.append(parts[-1].tokens, tokens[cuts[-1]]))
        return parts, min(parts[-1].end * self.step_frames, window) or window

    def _text(self, tokens: Array) -> str:
        tokenizer: Any = getattr(self, "_tokenizer")  # noqa: B009 - by __post_init__
        return decoded(tokenizer, tokens[tokens < self.timestamps].tolist(), special_tokens=False)


@dataclass(frozen=True, slots=True)
class _Part:
    """The tokens of a segment; its begin and end are in steps from that of the window."""

    tokens: Array
    begin: int
    end: int
