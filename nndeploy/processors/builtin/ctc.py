# SPDX-License-Identifier: Apache-2.0
"""ctc: a recogniser's probabilities of characters over time -> the text, and how sure it is."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text, without_batch
from nndeploy.processors.parameters import Range
from nndeploy.processors.text_lines import TextLines


@dataclass(frozen=True)
class Ctc:
    """Takes the likeliest character of each step, merges repeats, drops blanks (greedy CTC decoding).

    `characters` are those of the model in its order, without the blank; `space` puts a space behind them. `blank` is
    the number of the blank, -1 for the last. The score is the mean probability of the characters that stay.
    """

    name: ClassVar[str] = "ctc"
    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
    gives: ClassVar[tuple[str, ...]] = ("text", "score")

    characters: TextLines
    space: bool = False
    blank: Annotated[int, Range(-1, 1 << 20)] = 0

    def __call__(self, probabilities: object) -> tuple[str, float]:
        """Returns text and score; the score of no text is 0."""
        steps = without_batch(floats_from_value(probabilities, "probabilities"), 2)
        alphabet = (*self.characters.texts, " ") if self.space else self.characters.texts
        if steps.ndim != 2 or (steps.size and steps.shape[1] != len(alphabet) + 1):
            raise InputError(f"probabilities must be (steps, {len(alphabet) + 1}), are {shape_text(probabilities)}")
        if not steps.size:
            return "", 0.0
        best = steps.argmax(axis=1)
        blank = len(alphabet) if self.blank == -1 else self.blank
        is_new = np.concatenate([[True], best[1:] != best[:-1]]) & (best != blank)
        numbers = best[is_new]
        texts = "".join(alphabet[number - (number > blank)] for number in numbers.tolist())
        return texts, float(steps[is_new, numbers].mean()) if numbers.size else 0.0
