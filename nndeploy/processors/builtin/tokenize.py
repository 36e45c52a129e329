# SPDX-License-Identifier: Apache-2.0
"""tokenize: a text -> what a language model takes for it."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from nndeploy.processors.arrays import Array
from nndeploy.processors.encoding import Encoding
from nndeploy.processors.parameters import Count
from nndeploy.processors.tokenizer_file import TokenizerFile


@dataclass(frozen=True)
class Tokenize(Encoding):
    """Gives the tokens of a text with those that its tokenizer puts around it, as whole numbers (1, length).

    A text of more than `max-length` tokens is cut at `cut-side`, or refused. With `pad-to` the length is filled up, at
    `pad-side`, to the next multiple of that number; `attention_mask` is then 0. A model takes of the three fields those
    that it has.
    """

    name: ClassVar[str] = "tokenize"
    takes: ClassVar[tuple[str, ...]] = ("text",)

    tokenizer: TokenizerFile
    max_length: Count | None = None
    cut: Literal["longest-first", "refuse"] = "longest-first"
    cut_side: Literal["right", "left"] = "right"
    pad_to: Count | None = None
    pad_side: Literal["right", "left"] = "right"
    special_tokens: bool = True
    dtype: Literal["int64", "int32"] = "int64"

    def __call__(self, text: str) -> tuple[Array, Array, Array]:
        """Returns numbers of tokens, 1 where there is one, and which text each is of: (1, length) each.

        Raises:
            InputError: it is no text, has no tokens, or more than it may have.
        """
        return self.encoded(text)
