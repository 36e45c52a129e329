# SPDX-License-Identifier: Apache-2.0
"""Sizes as the names of symbolic dimensions: the text that a model carries, and back.

A symbol alone is its name, as the model's author wrote it. Anything else is what `str` of a size gives, with the
names of symbols in braces: `16*{height} + ({width} + -1)//(2)`. A text without braces is always a name.

    size := term (" + " term)*       term := factor ("*" factor)*       factor := atom ("//" atom)?
    atom := whole number | "{" name "}" | "(" size ")" | ("min" | "max") "(" size ", " size ")"

A symbol whose range has steps is counted in them inside a size (`symbol_in`), and written as the name that it has.

Law: `size_from_text(text_of(size, ranges), symbol_of)` is the size, where `symbol_of` is that of the ranges.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from nndeploy.values.size import Atom, Dim, Size, Symbol, UndecidedError, least, most, replaced, symbol
from nndeploy.values.types import DimRange

SymbolOf = Callable[[str], Dim]
"""Name -> the size that it stands for."""

MAX_TEXT = 2000
_TOKEN = re.compile(r" \+ |, |//|\*|\(|\)|min(?=\()|max(?=\()|-?\d{1,18}|\{[^{}]+\}")


def symbol_in(name: str, ranges: Mapping[str, DimRange]) -> Dim:
    """Returns a symbol with the bounds of its range; one with steps is low + step times a symbol that counts them."""
    found = ranges.get(name)
    if found is None:
        return symbol(name)
    if found.min == found.max:
        return found.min
    if found.step == 1:
        return symbol(name, found.min, found.max)
    return found.min + found.step * symbol(name, 0, (found.max - found.min) // found.step)


def text_of(size: Size, ranges: Mapping[str, DimRange]) -> str | None:
    """Returns the text of a size, None where it would not be read as that size.

    Many values of a model have the same few sizes, so what was written lately is kept, here and in `size_in`.
    """
    return _text_of(size, tuple(ranges.items()))


@lru_cache(maxsize=1024)
def _text_of(size: Size, known: tuple[tuple[str, DimRange], ...]) -> str | None:
    ranges = dict(known)
    if any(set("{}") & set(one.name) for one in size.symbols):
        return None
    alone = next(iter(size.symbols)).name
    if size == symbol_in(alone, ranges):
        return alone
    try:
        said = replaced(size, lambda one: _said(one, ranges))
    except UndecidedError:
        return None
    return str(said) if isinstance(said, Size) and len(str(said)) <= MAX_TEXT else None


def _said(one: Atom, ranges: Mapping[str, DimRange]) -> "Dim | None":
    """Returns what a symbol that counts steps stands for by the name that the model has."""
    if not isinstance(one, Symbol):
        return None
    found = ranges.get(one.name)
    if found is None or found.step == 1:
        return None
    return (symbol(one.name, found.min, found.max) - found.min) // found.step


def size_in(text: str, ranges: Mapping[str, DimRange]) -> Dim:
    """Returns the size of a text by the ranges of its symbols; of those that have none nothing is known."""
    return _size_in(text, tuple(ranges.items()))


@lru_cache(maxsize=1024)
def _size_in(text: str, ranges: tuple[tuple[str, DimRange], ...]) -> Dim:
    known = dict(ranges)
    return size_from_text(text, lambda name: symbol_in(name, known))


def size_from_text(text: str, symbol_of: SymbolOf) -> Dim:
    """Returns the size of a text; one that is no text of a size is the name of a symbol."""
    if "{" not in text or len(text) > MAX_TEXT:
        return symbol_of(text)
    try:
        return _Reader(text, symbol_of).whole()
    except (_MalformedError, UndecidedError, RecursionError):
        return symbol_of(text)


class _MalformedError(Exception):
    """The text is not one of a size."""


class _Reader:
    def __init__(self, text: str, symbol_of: SymbolOf) -> None:
        self._symbol_of = symbol_of
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0
        if "".join(self._tokens) != text:
            raise _MalformedError

    def whole(self) -> Dim:
        size = self._sum()
        if self._at != len(self._tokens):
            raise _MalformedError
        return size

    def _sum(self) -> Dim:
        size = self._term()
        while self._took(" + "):
            size = size + self._term()
        return size

    def _term(self) -> Dim:
        size = self._factor()
        while self._took("*"):
            size = size * self._factor()
        return size

    def _factor(self) -> Dim:
        size = self._atom()
        return size // self._divisor() if self._took("//") else size

    def _divisor(self) -> Dim:
        size = self._atom()
        if size == 0:
            raise _MalformedError
        return size

    def _atom(self) -> Dim:
        word = self._next()
        if word == "(":
            return self._closed(self._sum())
        if word in ("min", "max"):
            self._expect("(")
            first = self._sum()
            self._expect(", ")
            return self._closed((least if word == "min" else most)(first, self._sum()))
        if word.startswith("{"):
            return self._symbol_of(word[1:-1])
        if word.lstrip("-").isdecimal():
            return int(word)
        raise _MalformedError

    def _closed(self, size: Dim) -> Dim:
        self._expect(")")
        return size

    def _expect(self, token: str) -> None:
        if not self._took(token):
            raise _MalformedError

    def _took(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise _MalformedError
        self._at += 1
        return self._tokens[self._at - 1]
