# SPDX-License-Identifier: Apache-2.0
"""Fields of option dataclasses that also say how a command line spells them.

    @dataclass(frozen=True)
    class RunOptions:
        batch: int = described(1, "How many items go into one call.", section="Batches", least=1)

Comes in: what a user wrote, by field. Goes out: the dataclass. Law: what was not given has the field's default, on a
command line and in Python.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_KEY = "described"


Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Described:
    """How a command line spells one field.

    `flags` is empty where the field's own name is the flag; a flag of a bool that is true by default turns it off,
    `--a/--no-a` spells both. `choices` lists all values, `least` and `most` bound numbers (with `is_above` a number is
    more than `least`). `from_text` makes the value of a text, `from_texts` of all texts of an option that may be
    repeated; None where the command line's number, text or path is the value. `rooted` makes a text mean the same in
    another working folder; None where it does anyway.
    """

    help: str
    section: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    is_above: bool = False
    is_path: bool = False
    from_text: Callable[[str], Any] | None = None
    from_texts: Callable[[Sequence[str]], Any] | None = None
    rooted: Callable[[str], str] | None = None


def described(default: Any, text: str, *, section: str, **spelling: Any) -> Any:
    """Returns a dataclass field with a default; `text` is its help, the rest as in `Described`.

    A `default` that can be called makes the value anew each time, as for mappings.
    """
    metadata = {_KEY: Described(text, section, **spelling)}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def described_fields(options: type[Any]) -> dict[str, tuple["dataclasses.Field[Any]", Described]]:
    """Returns name -> the field and its description, of those that have one."""
    fields = dataclasses.fields(options)
    return {field.name: (field, field.metadata[_KEY]) for field in fields if _KEY in field.metadata}


def default_of(field: "dataclasses.Field[Any]") -> Any:
    """Returns the value of a field that nobody gives."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def option_name(name: str, one: Described) -> str:
    """Returns what a field is called where a user names it: as its first long flag, in underscores."""
    long = next((flag for flag in one.flags if flag.startswith("--")), f"--{name}")
    return long.partition("/")[0].removeprefix("--").replace("-", "_")


def is_turned_off(field: "dataclasses.Field[Any]", one: Described) -> bool:
    """Returns whether the option of a field says that the field is false: `--no-checks` of `checks`."""
    return field.default is True and bool(one.flags) and "/" not in one.flags[-1]


def plain_kind(field: "dataclasses.Field[Any]") -> type[Any]:
    """Returns the type of the values that a field without functions for texts takes: bool, int, float or str."""
    if isinstance(field.default, bool) or "bool" in str(field.type):
        return bool
    return float if "float" in str(field.type) else int if "int" in str(field.type) else str


def options_from(options: type[Options], given: Mapping[str, Any]) -> Options:
    """Returns the options that `given` says: by field, in texts where the description has a function for them.

    Raises:
        NndeployError: a text has no meaning, or names what is not there.
    """
    fields = described_fields(options)
    return options(**{name: _value(fields[name][1], value) for name, value in given.items()})


def _value(one: Described, given: Any) -> Any:
    if one.from_texts is not None:
        return one.from_texts(given)
    return given if one.from_text is None else one.from_text(given)
