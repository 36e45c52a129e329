# SPDX-License-Identifier: Apache-2.0
"""How often n-grams stand in rows of whole numbers, or of tokens of texts."""

from dataclasses import dataclass

from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class GramTables:
    """A pool as a tree, of each gram: its last number, the gram before that (-1: none), and its column (-1: none).

    Of `width` columns. `weights` are added for each time that a gram is found, one where that is None; `is_once`: only
    once. The numbers of a gram may be up to `skips` + 1 places apart.
    """

    keys: Array
    parents: Array
    columns: Array
    weights: Array | None
    is_once: bool
    skips: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Tokens: runs of bytes of a set (256), of `least` characters, or each character, once their case has changed.

    Their numbers are those of `words`, bytes one behind the other, each of which ends at one of `word_ends`.
    """

    words: Array
    word_ends: Array
    set: Array
    letter_case: str
    is_run: bool
    least: int


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """output (..., width) of x (..., length), int32 or int64."""

    output: Tensor
    x: Tensor
    grams: GramTables

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("tf_idf", f"{len(self.grams.keys)} n-grams", self)


@dataclass(frozen=True, slots=True, eq=False)
class TextGrams:
    """output (texts, width) of texts x (bytes) that end where `ends` (texts) says."""

    output: Tensor
    x: Tensor
    ends: Tensor
    tokens: Tokens
    grams: GramTables

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.ends)

    def written(self) -> Written:
        label = f"{len(self.grams.keys)} n-grams of {len(self.tokens.word_ends)} words"
        return Written("text_grams", label, self)
