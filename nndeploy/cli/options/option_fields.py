# SPDX-License-Identifier: Apache-2.0
"""Click's options made from described fields of dataclasses, and what a user gave, by field."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from nndeploy.cli.options.value_types import COMPLETED_BY, AnyNumber, Number
from nndeploy.options.described import (
    Described,
    Options,
    default_of,
    described_fields,
    is_turned_off,
    option_name,
    options_from,
    plain_kind,
)  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])


def options_of(options: type[Any]) -> Callable[[Command], Command]:
    """Returns a decorator that adds an option to a command for each described field."""
    made = [_option(field, one) for field, one in described_fields(options).values()]

    def decorate(command: Command) -> Command:
        for option in reversed(made):
            command = option(command)
        return command

    return decorate


def sections_of(*parts: type[Any] | Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Returns heading -> names of click's parameters, part by part: those of described fields, or given as they are."""
    sections: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for heading, names in (part if isinstance(part, Mapping) else _sections_of_fields(part)).items():
            sections[heading] = (*sections.get(heading, ()), *names)
    return sections


def _sections_of_fields(options: type[Any]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for name, (_, described) in described_fields(options).items():
        sections.setdefault(described.section, []).append(option_name(name, described))
    return sections


def options_given(options: type[Options], parameters: Mapping[str, Any]) -> Options:
    """Returns the options that click's `parameters` say.

    Raises:
        NndeployError: a text has no meaning, or names what is not there.
    """
    return options_from(options, given(options, parameters))


def given(options: type[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a user gave, by field: plain data that mean the same in another working folder.

    `parameters` are click's; what is left out has the field's default.
    """
    found = {}
    for name, (field, one) in described_fields(options).items():
        value = parameters.get(option_name(name, one))
        if value is None or value == ():
            continue
        if is_turned_off(field, one):
            value = not value
        found[name] = [_rooted(one, text) for text in value] if isinstance(value, tuple) else _rooted(one, value)
    return found


def _rooted(one: Described, value: Any) -> Any:
    if one.is_path:
        return str(Path(value).absolute())
    return value if one.rooted is None else one.rooted(value)


def _option(field: Any, one: Described) -> Callable[[Command], Command]:
    default = default_of(field)
    name = option_name(field.name, one)
    spelled = one.flags or (f"--{field.name.replace('_', '-')}",)
    if plain_kind(field) is bool:
        is_pair = "/" in spelled[-1]  # of which neither may be given: None
        return click.option(
            *spelled, name, is_flag=True, default=default if is_pair else False,
            show_default=is_pair and default is not None, help=one.help,
        )  # fmt: skip
    is_text = one.from_text is not None or one.from_texts is not None
    shown = None if is_text or default in (None, "") else default
    return click.option(
        *spelled, name, type=_type(field, one), multiple=one.from_texts is not None, default=shown,
        show_default=shown is not None, metavar=one.metavar, help=one.help, shell_complete=COMPLETED_BY.get(name),
    )  # fmt: skip


def _type(field: Any, one: Described) -> Any:
    if one.is_path:
        return click.Path(path_type=Path)
    if one.choices:
        return click.Choice(one.choices)
    if one.from_text is not None or one.from_texts is not None:
        return str
    kind = plain_kind(field)
    if kind is str or (one.least is None and one.most is None):
        return AnyNumber() if kind is float else kind
    ranged: Any = Number if kind is float else click.IntRange
    return ranged(one.least, one.most, min_open=one.is_above)
