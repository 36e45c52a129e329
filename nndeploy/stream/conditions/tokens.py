# SPDX-License-Identifier: Apache-2.0
"""Takes the text of a condition apart into tokens, each with the column at which it begins.

    number   1  0.5  1e-3        text    'car'  "car"        name   label   `any-name`
    word     and or not in true false        sign  == != <= >= < > ( ) [ ] , -

Law: tokens and the blanks between them are the whole text; what is neither is one error that names its column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nndeploy.errors import DataError

TokenKind: TypeAlias = Literal["number", "text", "name", "word", "sign", "end"]

MAX_LENGTH = 2000
WORDS = frozenset({"and", "or", "not", "in", "true", "false"})

_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<text>'[^'\n]*'|"[^"\n]*")
      | (?P<name>[^\W\d]\w*|`[^`\n]+`)
      | (?P<sign>==|!=|<=|>=|[<>()\[\],-])""",
    re.VERBOSE,
)
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Token:
    """A token: what it says, without quotes, and the column, from 1, at which it begins."""

    kind: TokenKind
    text: str
    column: int

    @property
    def shown(self) -> str:
        """What messages call it."""
        return "the end" if self.kind == "end" else repr(self.text)


def tokens_of(text: str) -> Iterator[Token]:
    """Yields the tokens of a condition, and one for its end.

    Raises:
        DataError: the text is too long, or something in it is no token.
    """
    if len(text) > MAX_LENGTH:
        raise DataError(f"has {len(text)} characters, more than {MAX_LENGTH}")
    place = _end_of_blanks(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise DataError(_reason(text, place), where=f"column {place + 1}")
        yield _token(found, place + 1)
        place = _end_of_blanks(text, found.end())
    yield Token("end", "", place + 1)


def _end_of_blanks(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found is not None else place


def _token(found: "re.Match[str]", column: int) -> Token:
    text = found.group()
    if found["number"]:
        return Token("number", text, column)
    if found["text"]:
        return Token("text", text[1:-1], column)
    if found["sign"]:
        return Token("sign", text, column)
    if text in WORDS:
        return Token("word", text, column)
    return Token("name", text.strip("`"), column)


def _reason(text: str, place: int) -> str:
    if text[place] in "'\"`":
        return f"{text[place]} has no other end"
    if text[place] == "=":
        return "'=' is not allowed here: use '==' to compare"
    return f"{text[place : place + 10].split()[0]!r} means nothing here"
