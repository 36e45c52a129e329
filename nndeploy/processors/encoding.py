# SPDX-License-Identifier: Apache-2.0
"""Texts as numbers of tokens: what the steps share that make inputs of language models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nndeploy.errors import DataError, InputError
from nndeploy.processors.arrays import Array
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Count
from nndeploy.processors.tokenizer_file import TokenizerFile, encoding_of


@dataclass(frozen=True)
class Encoding:
    """What `tokenize` and `tokenize-pair` do, and the settings of which they say what each may be."""

    gives: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "token_type_ids")
    num_texts: ClassVar[int] = 1

    tokenizer: TokenizerFile
    max_length: Count | None
    cut: str
    cut_side: str
    pad_to: Count | None
    pad_side: str
    special_tokens: bool
    dtype: str

    def __post_init__(self) -> None:
        tokenizer = self.tokenizer.opened()
        if self.max_length is not None:
            added = tokenizer.num_special_tokens_to_add(self.num_texts == 2) if self.special_tokens else 0
            if self.max_length <= added:
                raise DataError(f"max-length must be above {added}, the tokens that are always there")
            if self.cut != "refuse":
                strategy = self.cut.replace("-", "_")
                tokenizer.enable_truncation(self.max_length, strategy=strategy, direction=self.cut_side)
        if self.pad_to is not None:
            padding = self.tokenizer.padding(tokenizer)
            if padding is None:
                raise DataError("pad-to needs a padding token, and the tokenizer has none")
            tokenizer.enable_padding(
                direction=self.pad_side, pad_id=padding[0], pad_token=padding[1], pad_to_multiple_of=self.pad_to
            )
        object.__setattr__(self, "_tokenizer", tokenizer)

    @property
    def largest_values(self) -> Mapping[str, int]:
        """The largest integers that it gives, by field."""
        return {"input_ids": self.tokenizer.largest}

    def given_shapes(self, *texts: Known) -> tuple[Known, ...]:
        """Returns what is known of the numbers: how many, where no text has more than they are filled up to."""
        del texts
        is_full = self.pad_to is not None and self.max_length is not None and self.max_length <= self.pad_to
        return ((1, self.pad_to if is_full else None),) * 3

    def encoded(self, *texts: str) -> tuple[Array, Array, Array]:
        """Returns numbers of tokens, 1 where there is one, and which text each is of: (1, length) each.

        Raises:
            InputError: one is no text, or they have no tokens, or more than they may have.
        """
        tokenizer: Any = getattr(self, "_tokenizer")  # noqa: B009 - made by __post_init__
        found = encoding_of(tokenizer, texts, special_tokens=self.special_tokens)
        count = sum(found.attention_mask)
        if self.max_length is not None and count > self.max_length:
            raise InputError(f"the text has {count} tokens, more than {self.max_length}")
        if not found.ids:
            raise InputError("the text has no tokens")
        ids, mask, types = (
            np.array([numbers], self.dtype) for numbers in (found.ids, found.attention_mask, found.type_ids)
        )
        return ids, mask, types
