# SPDX-License-Identifier: Apache-2.0
"""Which token comes next: scores of all tokens, changed and left out as is asked, and one drawn from what is left.

In the order of Hugging Face's transformers: repetition penalty, temperature, top-k, top-p, softmax. Law: the same
scores, tokens, settings and seed give the same token, whatever ran before.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array
from nndeploy.processors.parameters import Fraction, Range

MAX_SEED = (1 << 63) - 1
MANY = 1024
"""So many of the best tokens are sorted first: all of a large vocabulary take longer than a small model computes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a token is chosen.

    `temperature` divides scores, 0 takes the best one; `top_k` keeps so many of the best, 0 all; `top_p` keeps the
    best whose probabilities reach that together; `repetition_penalty` above 1 lowers scores of tokens that are there.
    """

    temperature: Annotated[float, Range(0, 100)] = 0.0
    top_k: Annotated[int, Range(0, 1 << 31)] = 0
    top_p: Fraction = 1.0
    repetition_penalty: Annotated[float, Range(0.01, 100)] = 1.0
    seed: Annotated[int, Range(0, MAX_SEED)] = 0

    def token(self, scores: Array, seen: Array, place: int) -> int:
        """Returns the next token by the scores of all, where those of `seen` are there; `place` counts the draws.

        Raises:
            InputError: a score is NaN, or a token of `seen` has none.
        """
        scores = self.penalised(scores, seen)
        if self.temperature == 0:
            return int(np.argmax(scores))
        tokens, shares = self.candidates(scores)
        sums = np.cumsum(shares)
        drawn = np.random.Generator(np.random.Philox(key=[self.seed, place])).random() * sums[-1]
        last = np.flatnonzero(shares)[-1]  # which also takes what rounding leaves
        return int(tokens[min(np.searchsorted(sums, drawn, side="right"), last)])

    def candidates(self, scores: Array) -> tuple[Array, Array]:
        """Returns the tokens that may be drawn, by scores after the penalty, and the probability of each."""
        tokens = np.arange(len(scores))
        if 0 < self.top_k < len(scores):
            tokens = np.flatnonzero(scores >= np.partition(scores, -self.top_k)[-self.top_k])
        shares = _softmax(scores[tokens].astype(np.float64) / self.temperature)
        if self.top_p == 1:
            return tokens, shares
        best = _best_together(shares, self.top_p)
        return tokens[best], shares[best] / shares[best].sum()

    def penalised(self, scores: Array, seen: Array) -> Array:
        """Returns scores of which those of tokens that are there are lower (or higher, by a penalty below 1).

        Raises:
            InputError: a score is NaN, none is finite, or a token of `seen` has none.
        """
        if not np.isfinite(scores[np.argmax(scores)]):  # which finds NaN too
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


def _best_together(shares: Array, top_p: float) -> Array:
    """Returns the places of the largest shares that reach `top_p` together, at least one; of equal ones the first."""
    best, count = np.arange(len(shares)), MANY
    while count < len(shares):
        part = np.argpartition(shares, -count)[-count:]
        if shares[part].sum() > top_p:
            best = np.sort(np.flatnonzero(shares >= shares[part].min()))
            break
        count *= 8
    best = best[np.argsort(-shares[best], kind="stable")]
    better = np.cumsum(shares[best]) - shares[best]
    return best[: max(1, int(np.searchsorted(better, top_p)))]


def _softmax(scores: Array) -> Array:
    shares: Array = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())
