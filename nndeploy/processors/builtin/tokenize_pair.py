# SPDX-License-Identifier: Apache-2.0
"""tokenize-pair: two texts -> what a reranker takes for them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from nndeploy.processors.arrays import Array
from nndeploy.processors.encoding import Encoding
from nndeploy.processors.parameters import Count
from nndeploy.processors.tokenizer_file import TokenizerFile


@dataclass(frozen=True)
class TokenizePair(Encoding):
    """Gives the tokens of two texts as one, as a reranker takes a question and a document; parameters as `tokenize`.

    `cut` says which text loses tokens: the longer one, or one alone. `token_type_ids` are 1 where the second is.
    """

    name: ClassVar[str] = "tokenize-pair"
    takes: ClassVar[tuple[str, ...]] = ("text", "pair")
    num_texts: ClassVar[int] = 2

    tokenizer: TokenizerFile
    max_length: Count | None = None
    cut: Literal["longest-first", "only-first", "only-second", "refuse"] = "longest-first"
    cut_side: Literal["right", "left"] = "right"
    pad_to: Count | None = None
    pad_side: Literal["right", "left"] = "right"
    special_tokens: bool = True
    dtype: Literal["int64", "int32"] = "int64"

    def __call__(self, text: str, pair: str) -> tuple[Array, Array, Array]:
        """Returns numbers of tokens, 1 where there is one, and which text each is of: (1, length) each.

        Raises:
            InputError: one is no text, or both have more tokens than they may have.
        """
        return self.encoded(text, pair)
