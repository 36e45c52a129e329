# SPDX-License-Identifier: Apache-2.0
"""Values of options as a TOML file gives them: checked as a command line would, and put as `options_from` takes them.

Comes in: described fields and values of any type. Goes out: plain data by field. Law: what a command line
refuses for its form is refused here; what a text means is for `options_from` to say.
"""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nndeploy.errors import DataError, did_you_mean
from nndeploy.options.described import Described, described_fields, is_turned_off, option_name, plain_kind

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def plain_values(
    options: type[Any], table: Mapping[str, object], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Returns what a table gives of options, by field, as `options_from` takes it; "-" and "_" are the same in names.

    `elsewhere` is option -> where a file says that, of those that are not said here.

    Raises:
        DataError: an option is unknown, there twice or said elsewhere, or its value is none.
    """
    fields = {option_name(name, one): (field, one) for name, (field, one) in described_fields(options).items()}
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in elsewhere:
            raise DataError(f"{key!r:.60} does not stand here", hint=elsewhere[name])
        if name not in fields:
            known = [one.replace("_", "-") for one in fields if one not in elsewhere]
            raise DataError(f"there is no option {key!r:.60}", hint=did_you_mean(key.replace("_", "-"), known))
        field, one = fields[name]
        if field.name in given:
            raise DataError(f"the option {key!r:.60} is there twice")
        given[field.name] = plain_value(field, one, value)
    return given


def plain_value(field: "dataclasses.Field[Any]", one: Described, value: object) -> Any:
    """Returns what `value` gives for a field: a list of texts where the option may be repeated.

    Raises:
        DataError: it is of another type, no choice, or outside the bounds.
    """
    name = option_name(field.name, one).replace("_", "-")
    if one.from_texts is not None:
        return _texts(name, value)
    kind = plain_kind(field)
    if kind is bool:
        return _typed(name, bool, value) != is_turned_off(field, one)
    if one.is_path or one.choices:
        return _chosen(name, one, _typed(name, str, value))
    if one.from_text is not None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number else _typed(name, str, value)  # a size in bytes, a share: "65536", "0.95"
    return _bounded(name, one, _typed(name, kind, value))


def _texts(name: str, value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise DataError(f"{name} must be a text or a list of texts, is {value!r:.60}")
    return list(texts)


def _typed(name: str, kind: type[Any], value: object) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or value == "":
        raise DataError(f"{name} must be {_KINDS[kind]}, is {value!r:.60}")
    return value


def _chosen(name: str, one: Described, text: str) -> str:
    if one.choices and text not in one.choices:
        raise DataError(f"{name} cannot be {text!r:.60}", hint=did_you_mean(text, one.choices))
    return text


def _bounded(name: str, one: Described, value: Any) -> Any:
    if isinstance(value, str):
        return value
    least = -math.inf if one.least is None else one.least
    most = math.inf if one.most is None else one.most
    is_too_small = value <= least if one.is_above else value < least
    if not math.isfinite(value) or is_too_small or value > most:
        from_ = "" if one.least is None else f" {'above' if one.is_above else 'from'} {one.least:g}"
        to = "" if one.most is None else f" up to {one.most:g}"
        raise DataError(f"{name} must be a number{from_}{to}, is {value}")
    return value
