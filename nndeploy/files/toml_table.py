# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of a TOML file value by value; what does not fit is one line that names the file and the key.

A reader asks for each key that it knows, then says `done`: a key that nobody asked for is refused, with the nearest
that there is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from nndeploy.errors import DataError, did_you_mean

Word = TypeVar("Word", bound=str)


class TomlTable:
    """One table; `where` is the file and the place in it."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where
        self._asked: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str = "", *, example: str = "") -> str:
        """Returns a text; `example` is one, for messages."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._odd(key, "a text", value, f'for example {key} = "{example}"' if example else "")
        return value

    def word(self, key: str, default: str, known: Sequence[Word]) -> Word:
        """Returns one of several words that are known; a default that is none of them says that the key is needed."""
        value = self.text(key, default)
        for word in known:
            if word == value:
                return word
        *others, last = [f'"{word}"' for word in known]
        want = f"{', '.join(others)} or {last}"
        raise DataError(f"{key} must be {want}, is {value!r:.40}", where=self.where, hint=did_you_mean(value, known))

    def flag(self, key: str, *, default: bool) -> bool:
        """Returns true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._odd(key, "true or false", value)
        return value

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """Returns a whole number within limits."""
        value = self._value(key, default)
        if key not in self.values:
            return default
        if type(value) is not int:
            raise self._odd(key, "a whole number", value)
        return int(self._within(key, value, least, most))

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """Returns a number within limits."""
        value = self._value(key, default)
        if type(value) not in (int, float):
            raise self._odd(key, "a number", value)
        return self._within(key, float(value), least, most)

    def texts(self, key: str, default: Sequence[str] = (), *, may_repeat: bool = False) -> tuple[str, ...]:
        """Returns a list of texts, each once unless one may be repeated."""
        value = self._value(key, list(default))
        if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
            raise self._odd(key, "a list of texts", value)
        if not may_repeat and len(set(value)) != len(value):
            raise DataError(f"{key} lists something twice: {', '.join(value)}", where=self.where)
        return tuple(value)

    def text_or_texts(self, key: str) -> tuple[str, ...]:
        """Returns one text, or a list of at least one."""
        value = self._value(key, None)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            raise self._odd(key, "a text or a list of texts", value)
        return tuple(texts)

    def names(self, key: str) -> dict[str, str]:
        """Returns a table of texts by name."""
        value = self._value(key, {})
        if not isinstance(value, dict) or not all(isinstance(text, str) and text for text in value.values()):
            raise self._odd(key, 'a table of texts, { name = "text" }', value)
        return value

    def table(self, key: str) -> "TomlTable | None":
        """Returns a table, or None where there is none."""
        value = self._value(key, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._odd(key, "a table", value)
        return TomlTable(value, f"{self.where}: {key}")

    def tables(self, key: str, what: str) -> "Iterator[TomlTable]":
        """Yields the tables of a list; `what` names one of them in messages."""
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self._odd(key, "a list of tables", value, f"each begins with [[{key}]]")
        for number, one in enumerate(value, 1):
            yield TomlTable(one, f"{self.where}: {what}" + (f" {number}" if len(value) > 1 else ""))

    def rest(self) -> dict[str, Any]:
        """Returns what nobody asked for, for somebody else to check."""
        left = {key: value for key, value in self.values.items() if key not in self._asked}
        self._asked.update(dict.fromkeys(left))
        return left

    def done(self) -> None:
        """Refuses a key that nobody asked for."""
        for key in self.values:
            if key not in self._asked:
                raise DataError(f"unknown key {key!r}", where=self.where, hint=did_you_mean(key, self._asked))

    def _value(self, key: str, default: Any) -> Any:
        self._asked[key] = None
        return self.values.get(key, default)

    def _odd(self, key: str, want: str, value: object, hint: str = "") -> DataError:
        return DataError(f"{key} must be {want}, is {value!r:.60}", where=self.where, hint=hint)

    def _within(self, key: str, value: float, least: float, most: float) -> float:
        if not least <= value <= most:
            raise DataError(f"{key} must be {least:g} to {most:g}, is {value:g}", where=self.where)
        return value
