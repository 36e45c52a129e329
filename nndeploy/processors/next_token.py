# SPDX-License-Identifier: Apache-2.0
"""Which token comes next: scores of all tokens, changed and left out as is asked, and one drawn from what is left.

In the order of Hugging Face's transformers: repetition penalty, temperature, top-k, top-p, softmax. Law: the same
scores, tokens, settings and seed give the same token, whatever ran before.
"""

from dataclasses import dataclass

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array

MANY = 1024


@dataclass(frozen=True, slots=True)
class Choice:
    """How a token is chosen.

    `temperature` divides scores, 0 takes the best one; `top_k` keeps so many of the best, 0 all; `top_p` keeps the
    best whose probabilities reach that together; `repetition_penalty` above 1 lowers scores of tokens that are there.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def token(self, scores: Array, seen: Array, place: int) -> int:
        """Returns the next token by the scores of all, where those of `seen` are there; `place` counts the draws.

        Raises:
            InputError: a score is NaN, or a token of `seen` has none.
        """
        scores = self.penalised(np.asarray(scores, np.float64), seen)
        if self.temperature == 0:
            return int(np.argmax(scores))
        probabilities = self.probabilities(scores)
        shares = np.cumsum(probabilities)
        drawn = np.random.Generator(np.random.Philox(key=[self.seed, place])).random() * shares[-1]
        last = np.flatnonzero(probabilities)[-1]  # which also takes what rounding leaves
        return int(min(np.searchsorted(shares, drawn, side="right"), last))

    def probabilities(self, scores: Array) -> Array:
        """Returns with which probability each token is drawn, by scores after the penalty."""
        scores = scores / self.temperature
        if 0 < self.top_k < len(scores):
            scores = np.where(scores < np.partition(scores, -self.top_k)[-self.top_k], -np.inf, scores)
        if self.top_p < 1:
            scores = _best_together(scores, self.top_p)
        return _softmax(scores)

    def penalised(self, scores: Array, seen: Array) -> Array:
        """Returns scores of which those of tokens that are there are lower (or higher, by a penalty below 1).

        Raises:
            InputError: a score is NaN, none is finite, or a token of `seen` has none.
        """
        if np.isnan(scores).any() or not np.isfinite(scores.max()):
            raise InputError("scores hold NaN, or none of them is finite", hint="see what the model is given")
        if self.repetition_penalty == 1 or not len(seen):
            return scores
        if seen.max() >= len(scores):
            raise InputError(f"the text has the token {seen.max()}, but there are scores of {len(scores)}")
        there = np.unique(seen)
        changed = scores.copy()
        changed[there] = np.where(
            scores[there] < 0, scores[there] * self.repetition_penalty, scores[there] / self.repetition_penalty
        )
        return changed


def _best_together(scores: Array, top_p: float) -> Array:
    """Returns scores without all but the best tokens whose probabilities reach `top_p` together, at least one."""
    shares, best = _softmax(scores), np.arange(len(scores))
    if len(best) > MANY:  # to sort all of a large vocabulary takes longer than what small models compute
        part = np.argpartition(-scores, MANY)[:MANY]
        best = np.sort(part) if shares[part].sum() > top_p else best
    best = best[np.argsort(-scores[best], kind="stable")]
    better = np.cumsum(shares[best]) - shares[best]
    kept = best[: max(1, int(np.searchsorted(better, top_p)))]
    left = np.full(len(scores), -np.inf)
    left[kept] = scores[kept]
    return left


def _softmax(scores: Array) -> Array:
    shares: Array = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())
