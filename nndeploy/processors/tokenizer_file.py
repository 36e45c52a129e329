# SPDX-License-Identifier: Apache-2.0
"""The parameter of a step that is a tokenizer: the tokenizer.json that stands beside a model, read by `tokenizers`.

The package belongs to the extra `text` and is imported when a pipeline first names such a file. Files may have been
written by anybody; what the library does not take is one line, also where it panics.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from nndeploy.errors import DataError, InputError, NndeployError, UnavailableError
from nndeploy.processors.parameters import ReadFile
from nndeploy.version import install_command

T = TypeVar("T")
PADDING_TOKENS = ("[PAD]", "<pad>", "<|endoftext|>")
"""What the usual tokenizers call padding, where their file does not say."""


@dataclass(frozen=True)
class TokenizerFile:
    """A tokenizer as its file has it, and the library's object, which one step may set up for itself."""

    written_as: ClassVar[str] = "the name of a tokenizer.json"

    name: str
    data: bytes = field(repr=False)
    _unused: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)  # opened, by no step yet

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the tokenizer in the file of that name.

        Raises:
            DataError: it is no name of a file, or the file holds no tokenizer.
            UnavailableError: the package `tokenizers` is not installed.
        """
        if not isinstance(value, str) or not value:
            raise DataError(f"must be {cls.written_as}, is {value!r:.60}")
        made = cls(value, read_file(value))
        tokenizer = made.opened()
        called(lambda: tokenizer.encode("", ""), DataError, f"{value} encodes nothing")  # a template may name no token
        made._unused.append(tokenizer)  # a large one takes half a second to open
        return made

    def opened(self) -> Any:
        """Returns a `tokenizers.Tokenizer` of its own, which neither cuts nor pads whatever the file says.

        Raises:
            DataError: the file holds no tokenizer.
            UnavailableError: the package `tokenizers` is not installed.
        """
        if self._unused:
            return self._unused.pop()
        try:
            import tokenizers
        except ImportError as err:
            what = "a tokenizer needs the package tokenizers, which is not installed"
            raise UnavailableError(what, hint=install_command("text")) from err
        made = called(lambda: tokenizers.Tokenizer.from_buffer(self.data), DataError, f"{self.name} is no tokenizer")
        made.no_truncation()
        made.no_padding()
        return made

    @cached_property
    def largest(self) -> int:
        """The largest number that it gives a token."""
        return max(self.opened().get_vocab(with_added_tokens=True).values(), default=0)

    def padding(self, tokenizer: Any) -> tuple[int, str] | None:
        """Returns number and text of the padding: what the file says, else a token with a usual name, or None."""
        told = json.loads(self.data).get("padding")
        if isinstance(told, dict) and isinstance(told.get("pad_id"), int) and isinstance(told.get("pad_token"), str):
            return told["pad_id"], told["pad_token"]
        found = ((tokenizer.token_to_id(text), text) for text in PADDING_TOKENS)
        return next(((number, text) for number, text in found if number is not None), None)


def called(call: Callable[[], T], error: type[NndeployError], what: str) -> T:
    """Returns what a call of the library gives; where it fails or panics, raises `error`, which says `what` and why."""
    try:
        return call()
    except BaseException as err:
        if not isinstance(err, Exception) and type(err).__name__ != "PanicException":
            raise
        raise error(f"{what}: {err}") from err


def encoding_of(tokenizer: Any, texts: Sequence[str], *, special_tokens: bool) -> Any:
    """Returns the library's encoding of one text, or of a pair.

    Raises:
        InputError: one is no text, or holds half of a surrogate pair, or the tokenizer cannot encode it.
    """
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"a text is needed, this is a {type(text).__name__}", hint="decode-text reads bytes")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as err:
            half = ord(text[err.start])
            raise InputError(f"the text is not UTF-8: character {err.start} is half of a pair, U+{half:04X}") from err
    return called(
        lambda: tokenizer.encode(*texts, add_special_tokens=special_tokens), InputError, "the text cannot be encoded"
    )


def decoded(tokenizer: Any, tokens: Sequence[int], *, special_tokens: bool, is_whole: bool = True) -> str:
    """Returns the text of tokens; where more may follow (not `is_whole`), without a character that is not whole yet.

    Raises:
        InputError: the tokenizer cannot decode them.
    """
    text: str = called(
        lambda: tokenizer.decode(tokens, skip_special_tokens=not special_tokens), InputError, "tokens cannot be decoded"
    )
    return text if is_whole else text.rstrip("\ufffd")
