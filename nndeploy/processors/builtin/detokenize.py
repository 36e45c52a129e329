# SPDX-License-Identifier: Apache-2.0
"""detokenize: tokens -> the text that they write."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nndeploy.processors.arrays import tokens_from_value
from nndeploy.processors.tokenizer_file import TokenizerFile, decoded


@dataclass(frozen=True)
class Detokenize:
    """Gives the text of whole numbers (length,) or (1, length), without special tokens unless these are asked for.

    With `unfinished` more tokens follow later: a character of which only some bytes are there is left out.
    """

    name: ClassVar[str] = "detokenize"
    takes: ClassVar[tuple[str, ...]] = ("tokens",)
    gives: ClassVar[tuple[str, ...]] = ("text",)

    tokenizer: TokenizerFile
    special_tokens: bool = False
    unfinished: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tokenizer", self.tokenizer.opened())

    def __call__(self, tokens: object) -> str:
        """Returns the text.

        Raises:
            InputError: they are no tokens.
        """
        tokenizer: Any = getattr(self, "_tokenizer")  # noqa: B009 - made by __post_init__
        numbers = tokens_from_value(tokens, "tokens").tolist()
        return decoded(tokenizer, numbers, special_tokens=self.special_tokens, is_whole=not self.unfinished)
