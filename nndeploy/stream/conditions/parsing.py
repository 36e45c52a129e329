# SPDX-License-Identifier: Apache-2.0
"""Reads a condition and checks it: `condition_from_text("label == 'car' and score > 0.5")`.

    condition   any  = all ("or" all)*
                all  = not ("and" not)*
                not  = "not" not | comparison
    comparison  value [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") value]
    value       number | text | "true" | "false" | list | field | field "[" whole number "]"
                | "len" "(" field ")" | "max" ... | "min" ... | "sum" ... | "has" "(" name ")" | "(" any ")"
    list        "[" [constant ("," constant)*] "]"        of one kind

Law: what is accepted compares values of one kind, as far as that is known without a record, and uses each field as one
kind everywhere; all else is one line that names the column.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nndeploy.errors import DataError, did_you_mean
from nndeploy.stream.conditions.expressions import (
    COMPARISONS,
    KIND_NAMES,
    AllOf,
    AnyOf,
    Call,
    Comparison,
    Constant,
    Expression,
    Field,
    Has,
    In,
    Kind,
    Not,
    kind_of,
    truth_of,
)
from nndeploy.stream.conditions.tokens import Token, tokens_of
from nndeploy.values.types import Value

MAX_DEPTH = 40
"""Most parentheses and `not` within each other."""
FUNCTIONS = ("len", "max", "min", "sum", "has")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the fields of a record, as it was written."""

    text: str
    expression: Expression

    def holds(self, fields: Mapping[str, Value]) -> bool:
        """Returns whether the fields of a record are so.

        Raises:
            InputError: a field is missing, or its value cannot be asked that.
        """
        return truth_of(self.expression, fields)

    @property
    def needs(self) -> frozenset[str]:
        """The fields that it asks for without having asked whether they are there."""
        return frozenset(_unguarded(self.expression, frozenset()))

    @property
    def mentions(self) -> frozenset[str]:
        """All fields of which it speaks."""
        return frozenset(_mentioned(self.expression))

    @property
    def implies(self) -> frozenset[str]:
        """The fields that a record has for which it holds, because it asks that."""
        return _implied(self.expression)


def condition_from_text(text: str) -> Condition:
    """Returns the condition that a text writes.

    Raises:
        DataError: it is none; the message names the column.
    """
    parser = _Parser(list(tokens_of(text)))
    return Condition(text, parser.whole())


class _Parser:
    """Reads tokens from left to right; `_kinds` says as what each field was used first, and where."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0
        self._kinds: dict[Field, tuple[Kind, int]] = {}

    def whole(self) -> Expression:
        column, found = self._now.column, self._any_of()
        if self._now.kind != "end":
            raise self._odd("or the end", "'and', 'or'")
        self._must_be(found, "truth", column)
        return found

    # Tokens

    @property
    def _now(self) -> Token:
        return self._tokens[self._place]

    def _is_at(self, *texts: str) -> bool:
        return self._now.kind in ("word", "sign") and self._now.text in texts

    def _next(self) -> Token:
        token = self._now
        self._place += token.kind != "end"
        return token

    def _expect(self, text: str) -> None:
        if not self._is_at(text):
            raise self._odd("", repr(text))
        self._next()

    def _odd(self, also: str, wanted: str) -> DataError:
        where = f"column {self._now.column}"
        return DataError(f"{self._now.shown} stands where {wanted} {also}".rstrip() + " should be", where=where)

    # Truths

    def _any_of(self) -> Expression:
        several = self._several("or", self._all_of)
        return several[0] if len(several) == 1 else AnyOf(tuple(several))

    def _all_of(self) -> Expression:
        several = self._several("and", self._negation)
        return several[0] if len(several) == 1 else AllOf(tuple(several))

    def _several(self, word: str, one_of: Callable[[], Expression]) -> list[Expression]:
        column, found = self._now.column, [one_of()]
        while self._is_at(word):
            if len(found) == 1:
                self._must_be(found[0], "truth", column)
            self._next()
            column = self._now.column
            found.append(one_of())
            self._must_be(found[-1], "truth", column)
        return found

    def _negation(self) -> Expression:
        if not self._is_at("not"):
            return self._comparison()
        self._next()
        column = self._now.column
        self._deeper(column)
        one = self._negation()
        self._depth -= 1
        self._must_be(one, "truth", column)
        return Not(one)

    def _deeper(self, column: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DataError(f"more than {MAX_DEPTH} levels within each other", where=f"column {column}")

    def _comparison(self) -> Expression:
        column, left = self._now.column, self._value()
        if self._is_at("in", "not"):
            return self._membership(left, column)
        if not self._is_at(*COMPARISONS):
            return left
        sign = self._next().text
        other, right = self._now.column, self._value()
        for one, place in ((left, column), (right, other)):
            if one.kind == "list" or (one.kind == "truth" and sign not in ("==", "!=")):
                raise DataError(f"{KIND_NAMES[one.kind]} is not compared by {sign}", where=f"column {place}")
        self._must_be_alike(left, column, right, other)
        if self._is_at(*COMPARISONS, "in"):
            raise DataError("comparisons do not follow each other", where=f"column {self._now.column}", hint="use and")
        return Comparison(sign, left, right)

    def _membership(self, left: Expression, column: int) -> Expression:
        is_not = self._next().text == "not"
        if is_not:
            self._expect("in")
        other, right = self._now.column, self._value()
        if left.kind == "list":
            raise DataError("a list is no element of a list", where=f"column {column}")
        if right.kind not in ("list", "any"):
            raise DataError(f"{KIND_NAMES[right.kind]} holds no elements", where=f"column {other}", hint="['a', 'b']")
        if isinstance(right, Constant) and isinstance(right.constant, tuple) and right.constant:
            self._must_be(left, kind_of(right.constant[0]), column)
        found = In(left, right)
        return Not(found) if is_not else found

    def _must_be_alike(self, left: Expression, column: int, right: Expression, other: int) -> None:
        if right.kind != "any":
            self._must_be(left, right.kind, column)
        elif left.kind != "any":
            self._must_be(right, left.kind, other)

    def _must_be(self, one: Expression, kind: Kind, column: int) -> None:
        """Checks that an expression may be of a kind, and that a field is of no other elsewhere."""
        if one.kind not in (kind, "any"):
            raise DataError(f"this is {KIND_NAMES[one.kind]}, not {KIND_NAMES[kind]}", where=f"column {column}")
        if isinstance(one, Field):
            before, at = self._kinds.setdefault(one, (kind, column))
            if before != kind:
                what = f"{one.shown!r} is {KIND_NAMES[kind]} here, and {KIND_NAMES[before]} in column {at}"
                raise DataError(what, where=f"column {column}")

    # Values

    def _value(self) -> Expression:
        token = self._next()
        if token.kind == "sign" and token.text == "(":
            self._deeper(token.column)
            found = self._any_of()
            self._depth -= 1
            self._expect(")")
            return found
        if token.kind == "sign" and token.text == "[":
            return self._list()
        if token.kind == "name":
            return self._call(token) if self._is_at("(") else self._field(token)
        constant = self._constant(token)
        if constant is None:
            self._place -= token.kind != "end"
            raise self._odd("", "a value")
        return constant

    def _constant(self, token: Token) -> Constant | None:
        if token.kind == "text":
            return Constant("text", token.text)
        if token.kind == "word" and token.text in ("true", "false"):
            return Constant("truth", token.text == "true")
        if token.kind == "number":
            return Constant("number", self._number(token))
        if token.kind == "sign" and token.text == "-" and self._now.kind == "number":
            return Constant("number", -self._number(self._next()))
        return None

    def _number(self, token: Token) -> int | float:
        number = int(token.text) if token.text.isdigit() else float(token.text)
        if number in (float("inf"), float("-inf")) or (isinstance(number, int) and number.bit_length() > 63):
            raise DataError(f"{token.text:.20} is too large a number", where=f"column {token.column}")
        return number

    def _list(self) -> Constant:
        """Returns a list of constants of one kind."""
        found: list[Constant] = []
        while not self._is_at("]"):
            if found:
                self._expect(",")
            token = self._next()
            constant = self._constant(token)
            if constant is None:
                self._place -= token.kind != "end"
                raise self._odd("", "a number, a text, true or false")
            if found and constant.kind != found[0].kind:
                what = f"a list of {KIND_NAMES[found[0].kind]} has {KIND_NAMES[constant.kind]} in it"
                raise DataError(what, where=f"column {token.column}")
            found.append(constant)
        self._next()
        return Constant("list", tuple(one.constant for one in found))

    def _field(self, token: Token) -> Field:
        if not self._is_at("["):
            return Field(token.text)
        self._next()
        is_negative = self._is_at("-")
        if is_negative:
            self._next()
        if self._now.kind != "number" or not self._now.text.isdigit():
            raise self._odd("", "the whole number of an element")
        index = int(self._number(self._next()))
        self._expect("]")
        return Field(token.text, -index if is_negative else index)

    def _call(self, token: Token) -> Expression:
        if token.text not in FUNCTIONS:
            hint = did_you_mean(token.text, FUNCTIONS)
            raise DataError(f"there is no function {token.text!r}", where=f"column {token.column}", hint=hint)
        self._expect("(")
        if self._now.kind != "name":
            raise self._odd("", "the name of a field")
        argument = self._field(self._next())
        if token.text == "has" and argument.index is not None:
            raise DataError("has() takes the name of a field", where=f"column {token.column}")
        self._expect(")")
        return Has(argument.name) if token.text == "has" else Call(token.text, argument)


def _parts(one: Expression) -> tuple[Expression, ...]:
    if isinstance(one, AllOf | AnyOf):
        return one.several
    if isinstance(one, Comparison):
        return (one.left, one.right)
    if isinstance(one, In):
        return (one.one, one.several)
    if isinstance(one, Not):
        return (one.one,)
    return (one.argument,) if isinstance(one, Call) else ()


def _mentioned(one: Expression) -> set[str]:
    own = {one.name} if isinstance(one, Field | Has) else set[str]()
    return own.union(*map(_mentioned, _parts(one)))


def _implied(one: Expression) -> frozenset[str]:
    if isinstance(one, Has):
        return frozenset({one.name})
    return frozenset().union(*map(_implied, one.several)) if isinstance(one, AllOf) else frozenset()


def _unguarded(one: Expression, guarded: frozenset[str]) -> set[str]:
    if isinstance(one, Field):
        return {one.name} - guarded
    found: set[str] = set()
    for part in _parts(one):
        found |= _unguarded(part, guarded)
        if isinstance(one, AllOf):
            guarded |= _implied(part)
    return found
