# SPDX-License-Identifier: Apache-2.0
"""What a condition is made of, and what it says of a record.

In come the fields of a record; out comes a truth. Values are texts, numbers, truths and lists; an array of one element
is that element. Laws: an expression reads fields and changes nothing; what a record's values cannot be asked is an
`InputError` of that record; a field is only asked for where what stands before it in `and` and `or` has not decided.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from nndeploy.errors import InputError
from nndeploy.runtime.plain_data import only_element
from nndeploy.values.types import Value

Kind: TypeAlias = Literal["truth", "number", "text", "list", "any"]
"""What an expression is; of a field it is known once a record comes: any."""

KIND_NAMES: Mapping[Kind, str] = {
    "truth": "true or false", "number": "a number", "text": "a text", "list": "a list", "any": "a value",
}  # fmt: skip


class Expression(Protocol):
    """A part of a condition."""

    @property
    def kind(self) -> Kind:
        """What its value is."""

    def value(self, fields: Mapping[str, Value]) -> Value:
        """Returns its value for a record.

        Raises:
            InputError: a field is missing, or its value is not of the kind that is asked for.
        """


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written there."""

    kind: Kind
    constant: Value

    def value(self, fields: Mapping[str, Value]) -> Value:  # noqa: ARG002
        """Returns it."""
        return self.constant


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a field, or of its element `index`, counted from the end where it is negative."""

    kind: ClassVar[Kind] = "any"

    name: str
    index: int | None = None

    @property
    def shown(self) -> str:
        """How it is written."""
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    def value(self, fields: Mapping[str, Value]) -> Value:
        """Returns it, an array of one element as that."""
        if self.name not in fields:
            raise InputError(f"the record has no field {self.name!r}", hint=f"ask has({self.name}) first")
        value = fields[self.name]
        if self.index is None:
            return only_element(value)
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes) or _has_no_axis(value):
            raise InputError(f"{self.name!r} is {_text_of(value)} and has no elements")
        try:
            return only_element(value[self.index])
        except IndexError as err:
            raise InputError(f"{self.name!r} has {len(value)} elements, and none is [{self.index}]") from err


@dataclass(frozen=True, slots=True)
class Has:
    """Whether a record has a field."""

    kind: ClassVar[Kind] = "truth"

    name: str

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        return self.name in fields


REDUCTIONS: Mapping[str, Callable[[Any], Any]] = {"max": np.max, "min": np.min, "sum": np.sum}


@dataclass(frozen=True, slots=True)
class Call:
    """The number of elements of a list, or of characters; the least, the greatest, or the sum of its numbers."""

    kind: ClassVar[Kind] = "number"

    function: str
    argument: Field

    def value(self, fields: Mapping[str, Value]) -> Value:
        """Returns it."""
        value = self.argument.value(fields)
        if self.function == "len":
            if isinstance(value, str | bytes | Sequence) or (isinstance(value, np.ndarray) and value.ndim):
                return len(value)
            if isinstance(value, bool | int | float) and isinstance(fields[self.argument.name], np.ndarray):
                return 1  # an array of one element
            raise InputError(f"{self.argument.shown!r} is {_text_of(value)} and has no length")
        numbers = _numbers(value, self.argument.shown)
        if not numbers.size and self.function != "sum":
            raise InputError(f"{self.argument.shown!r} is empty and has no {self.function}", hint="ask len() first")
        return float(REDUCTIONS[self.function](numbers))


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary."""

    kind: ClassVar[Kind] = "truth"

    one: Expression

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        return not truth_of(self.one, fields)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Whether all are true; those behind the first that is not are not asked."""

    kind: ClassVar[Kind] = "truth"

    several: tuple[Expression, ...]

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        return all(truth_of(one, fields) for one in self.several)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whether one is true; those behind the first that is are not asked."""

    kind: ClassVar[Kind] = "truth"

    several: tuple[Expression, ...]

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        return any(truth_of(one, fields) for one in self.several)


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether two values of one kind compare so; a NaN is only unequal."""

    kind: ClassVar[Kind] = "truth"

    sign: str
    left: Expression
    right: Expression

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        left, right = self.left.value(fields), self.right.value(fields)
        kind, other = kind_of(left), kind_of(right)
        known = ("truth", "number", "text") if self.sign in ("==", "!=") else ("number", "text")
        for one, value, own in ((self.left, left, kind), (self.right, right, other)):
            if own not in known:
                raise InputError(f"{_shown(one)} is {_text_of(value)}, which {self.sign} does not compare")
        if kind != other:
            raise InputError(f"{_shown(self.left)} is {_text_of(left)}, and {_shown(self.right)} {_text_of(right)}")
        return bool(COMPARISONS[self.sign](left, right))


@dataclass(frozen=True, slots=True)
class In:
    """Whether a value is an element of a list, or a text stands within a text."""

    kind: ClassVar[Kind] = "truth"

    one: Expression
    several: Expression

    def value(self, fields: Mapping[str, Value]) -> bool:
        """Returns it."""
        one, several = self.one.value(fields), self.several.value(fields)
        kind = kind_of(one)
        if kind not in ("truth", "number", "text"):
            raise InputError(f"{_shown(self.one)} is {_text_of(one)}, which is no element of a list")
        if isinstance(several, str) and kind == "text":
            return str(one) in several
        if kind_of(several) in ("truth", "number") and isinstance(self.several, Field):
            several = [several]  # an array of one element
        if isinstance(several, np.ndarray):
            several = several.ravel().tolist()
        if not isinstance(several, Sequence) or isinstance(several, str | bytes):
            raise InputError(f"{_shown(self.several)} is {_text_of(several)}, in which nothing is looked for")
        return any(kind_of(element := only_element(each)) == kind and element == one for each in several)


def truth_of(one: Expression, fields: Mapping[str, Value]) -> bool:
    """Returns the value of an expression that must be true or false.

    Raises:
        InputError: it is neither.
    """
    value = one.value(fields)
    if not isinstance(value, bool):
        raise InputError(f"{_shown(one)} is {_text_of(value)}, not true or false")
    return value


def kind_of(value: Value) -> Kind:
    """Returns what a value of a record is."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, Sequence | np.ndarray) and not isinstance(value, bytes) else "any"


def _has_no_axis(value: object) -> bool:
    return isinstance(value, np.ndarray) and not value.ndim


def _numbers(value: Value, name: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fiub":
            return array.astype(np.float64).reshape(-1)
    except (ValueError, TypeError):  # lists of different lengths
        pass
    raise InputError(f"{name!r} is {_text_of(value)} and holds no numbers")


def _shown(one: Expression) -> str:
    return repr(one.shown) if isinstance(one, Field) else KIND_NAMES[one.kind]


def _text_of(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} ({', '.join(map(str, value.shape))})"
    return {"any": f"a {type(value).__name__}"}.get(kind_of(value), KIND_NAMES[kind_of(value)])
