# SPDX-License-Identifier: Apache-2.0
"""Tokens that are times, as Whisper writes them between those of a text.

Source: `WhisperTimeStampLogitsProcessor` of transformers, after openai/whisper's `ApplyTimestampRules`.
"""

from dataclasses import dataclass

import numpy as np

from nndeploy.processors.arrays import Array


@dataclass(frozen=True, slots=True)
class Timestamps:
    """The tokens from `first` on are times, those from `stop` on none of a text; the first is at most `latest` late.

    The token before `first` says that there are no times, so it is never written.
    """

    first: int
    stop: int
    latest: int | None

    def allowed(self, scores: Array, written: Array) -> Array:
        """Returns scores, (tokens,), of which those of tokens that cannot follow what was `written` are -infinity."""
        scores = scores.copy()
        scores[self.first - 1] = -np.inf
        was_time = len(written) > 0 and written[-1] >= self.first
        is_open = was_time and len(written) > 1 and written[-2] < self.first
        if is_open:
            scores[: self.stop] = -np.inf
        elif was_time:
            scores[self.first :] = -np.inf
        times = written[written >= self.first]
        if len(times):
            scores[self.first : times[-1] + (not is_open)] = -np.inf
        if not len(written):
            scores[: self.first] = -np.inf
            if self.latest is not None:
                scores[self.first + self.latest + 1 :] = -np.inf
        if _together(scores[self.first :]) > scores[: self.first].max(initial=-np.inf):
            scores[: self.first] = -np.inf
        return scores


def _together(scores: Array) -> float:
    """Returns the score of one token that were as likely as all of these together."""
    most = scores.max(initial=-np.inf)
    if not np.isfinite(most):
        return -np.inf
    return float(most + np.log(np.exp(scores.astype(np.float64) - most).sum()))
