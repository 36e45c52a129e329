# SPDX-License-Identifier: Apache-2.0
"""The parameters of a processor, out of its table in a pipeline's TOML.

The annotations of the dataclass say what each key may be: bool, int, float, str, Literal, tuples and optionals of
them, `Annotated[..., Range(...)]` for limits, and classes with `from_parameter` for what is read from a file.
What does not fit is one line that names the file, the step and the key.

Law: a processor that was made from a table has only values of its annotated types, within their limits.
"""

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from nndeploy.errors import DataError, NndeployError, UsageError, did_you_mean

ReadFile: TypeAlias = Callable[[str], bytes]
"""Returns the content of a file that a parameter names; where such files lie is the pipeline's affair."""


@dataclass(frozen=True, slots=True)
class FilesBeside:
    """A `ReadFile` that also says where folders are that parameters name: in `folder`.

    `is_carried` says that a bundle carries the table, so it may have been written by anybody; `is_here` that it is for
    this machine, and folders must be there.
    """

    read: ReadFile
    folder: Path
    is_carried: bool = False
    is_here: bool = True

    def __call__(self, name: str) -> bytes:
        """Returns the content of a file."""
        return self.read(name)


def no_files(name: str) -> bytes:
    """Refuses to read: the `ReadFile` of tables that come without a folder.

    Raises:
        UsageError: always.
    """
    raise UsageError(f"the file {name!r} cannot be read here", hint="write its content into the table")


@dataclass(frozen=True, slots=True)
class Range:
    """Limits of a number, both included; None is no limit."""

    min: float | None = None
    max: float | None = None

    def __str__(self) -> str:
        if self.min is None or self.max is None:
            return f"at least {self.min}" if self.max is None else f"at most {self.max}"
        return f"{self.min} to {self.max}"

    def holds(self, number: float) -> bool:
        """Returns whether `number` is within the limits."""
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)


Side: TypeAlias = Annotated[int, Range(1, 1 << 15)]
"""A width or height in pixels."""

Count: TypeAlias = Annotated[int, Range(1, 1 << 31)]

Fraction: TypeAlias = Annotated[float, Range(0, 1)]


@runtime_checkable
class FromParameter(Protocol):
    """The class of a parameter that TOML has no type for."""

    @classmethod
    def from_parameter(cls, value: object, read_file: ReadFile) -> Self:
        """Returns the parameter that `value` writes.

        Raises:
            DataError: `value` is none; its message goes on a line after the key's name.
        """


def processor_from_parameters(kind: type, table: Mapping[str, object], where: str, read_file: ReadFile) -> Any:
    """Returns a processor of class `kind` with the parameters of `table`, whose keys have dashes.

    Raises:
        DataError: a key is unknown or missing, or a value is not of its type or out of its limits.
    """
    hints = _hints(kind)
    _check_known(table, hints, where)
    for field in dataclasses.fields(kind):
        key, has_default = _key(field.name), field.default is not MISSING or field.default_factory is not MISSING
        if field.init and key not in table and not has_default:
            raise DataError(f"needs the parameter {key!r}", where=where, hint=type_text(hints[key]))
    return _made(kind, table, hints, where, read_file)


def with_parameters(made: Any, table: Mapping[str, object], where: str) -> Any:
    """Returns a dataclass like `made` with the parameters of `table` in place of its own; none is read from a file.

    Raises:
        DataError: a key is unknown, or a value is not of its type or out of its limits.
    """
    kind: type = type(made)
    hints = _hints(kind)
    _check_known(table, hints, where)
    return _made(partial(replace, made), table, hints, where, no_files)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Returns the annotated types of a dataclass's parameters, by key."""
    hints = get_type_hints(kind, include_extras=True)
    return {_key(field.name): hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _check_known(table: Mapping[str, object], hints: Mapping[str, Any], where: str) -> None:
    for key in table:
        if key not in hints:
            raise DataError(f"has no parameter {key!r:.80}", where=where, hint=_hint(key, hints))


def _made(
    make: Callable[..., Any], table: Mapping[str, object], hints: Mapping[str, Any], where: str, read_file: ReadFile
) -> Any:
    try:
        values = {key: _converted(value, hints[key], key, read_file) for key, value in table.items()}
        return make(**{key.replace("-", "_"): value for key, value in values.items()})
    except NndeployError as err:
        err.within(where)
        raise


def _key(name: str) -> str:
    return name.replace("_", "-")


def _hint(key: str, known: Mapping[str, object]) -> str:
    return did_you_mean(key, known) if known else "it has none"


def _converted(value: object, hint: Any, key: str, read_file: ReadFile) -> object:
    """Returns `value` as the annotated type `hint` wants it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _within_range(_converted(value, args[0], key, read_file), args[1], key)
    if origin in (Union, types.UnionType):
        return _converted(value, next(arg for arg in args if arg is not types.NoneType), key, read_file)
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            raise _misfit(value, hint, key, did_you_mean(value, args) if isinstance(value, str) else "")
        return value
    if origin is tuple:
        return _tuple(value, hint, key, read_file)
    if isinstance(hint, type) and issubclass(hint, FromParameter):
        return _from_parameter(value, hint, key, read_file)
    return _scalar(value, hint, key)


def _scalar(value: object, hint: Any, key: str) -> object:
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if hint in (bool, int, str) and type(value) is hint:
        return value
    raise _misfit(value, hint, key)


def _within_range(value: object, limits: Range, key: str) -> object:
    if isinstance(value, int | float) and not limits.holds(value):
        raise DataError(f"{key} must be {limits}, is {value}")
    return value


def _tuple(value: object, hint: Any, key: str, read_file: ReadFile) -> tuple[object, ...]:
    elements = get_args(hint)
    if not isinstance(value, list):
        raise _misfit(value, hint, key)
    if elements[-1] is Ellipsis:
        elements = (elements[0],) * len(value)
    if len(elements) != len(value):
        raise _misfit(value, hint, key)
    return tuple(
        _converted(item, element, f"{key}[{i}]", read_file)
        for i, (item, element) in enumerate(zip(value, elements, strict=True))
    )


def _from_parameter(value: object, kind: type[FromParameter], key: str, read_file: ReadFile) -> object:
    try:
        return kind.from_parameter(value, read_file)
    except NndeployError as err:
        err.within(key)
        raise


def _misfit(value: object, hint: Any, key: str, tip: str = "") -> DataError:
    return DataError(f"{key} must be {type_text(hint)}, is {value!r:.60}", hint=tip)


_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def type_text(hint: Any) -> str:
    """Returns what an annotated type says to a person who writes TOML."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return f"{type_text(args[0])}, {args[1]}"
    if origin in (Union, types.UnionType):
        return type_text(next(arg for arg in args if arg is not types.NoneType))
    if origin is Literal:
        return " or ".join(f'"{arg}"' for arg in args)
    if origin is tuple and args[-1] is Ellipsis:
        return f"a list, each {type_text(args[0])}"
    if origin is tuple:
        return f"a list of {len(args)}, each {type_text(args[0])}"
    return _NAMES.get(hint) or str(getattr(hint, "written_as", getattr(hint, "__name__", hint)))
