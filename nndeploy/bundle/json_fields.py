# SPDX-License-Identifier: Apache-2.0
"""A JSON object from a file, field by field: each is there once, with its type, and none is left over.

Below the readers of manifests. Every deviation is one `BundleError` that names the field and what it holds.
"""

import re
import sys
from typing import Any

from nndeploy.bundle.container import check_name
from nndeploy.bundle.manifest import Member
from nndeploy.errors import BundleError, did_you_mean

MAX_INT = (1 << 63) - 1
GPU_NEEDS = frozenset(("compute_capability", "compute_capability_min"))
DOTS = (".", "..")
_ID = re.compile(r"[a-z0-9_.-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Fields:
    """A JSON object while it is read: each field is taken once, with its type, and `end` refuses what is left.

    `where` names the object in messages. With `ignore_unknown` `end` refuses nothing.
    """

    def __init__(self, data: object, where: str, ignore_unknown: bool) -> None:
        if not isinstance(data, dict):
            raise BundleError(f"expected an object, got {shown(data)}", where=where)
        self._data: dict[str, Any] = data
        self._taken: set[str] = set()
        self._where = where
        self._ignore_unknown = ignore_unknown

    def at(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def refuse(self, key: str, expected: str) -> BundleError:
        return BundleError(f"expected {expected}, got {shown(self._data.get(key))}", where=self.at(key))

    def take(self, key: str) -> Any:
        if key not in self._data:
            raise BundleError(f"the field {key!r} is missing", where=self._where)
        self._taken.add(key)
        return self._data[key]

    def end(self) -> None:
        if self._ignore_unknown or len(self._taken) == len(self._data):
            return
        unknown = min(self._data.keys() - self._taken)
        hint = did_you_mean(unknown, sorted(self._taken))
        raise BundleError(f"unknown field {unknown!r:.80}", where=self._where, hint=hint)

    def plain(self) -> dict[str, Any]:
        return self._data

    def has(self, key: str) -> bool:
        return key in self._data

    def is_null(self, key: str) -> bool:
        return self.take(key) is None

    def text(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str):
            raise self.refuse(key, "text")
        return value

    def name(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise self.refuse(key, "a name")
        return value

    def names(self, key: str, least: int = 0) -> tuple[str, ...]:
        value = self.take(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.refuse(key, "a list of names")
        if len(value) < least:
            raise self.refuse(key, f"{least} name or more")
        return tuple(value)

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.take(key)
        if value not in choices:
            raise self.refuse(key, "one of " + ", ".join(choices))
        return str(value)

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not _ID.fullmatch(value) or value in DOTS:
            raise self.refuse(key, "1 to 64 of a-z, 0-9, '_', '.', '-'")
        return value

    def sha256(self, key: str) -> str:
        value = self.text(key)
        if not _SHA256.fullmatch(value):
            raise self.refuse(key, "64 lower-case hexadecimal digits")
        return value

    def member_or_empty(self, key: str) -> str:
        value = self.text(key)
        return member_name(value, self.at(key)) if value else value

    def boolean(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value

    def integer(self, key: str, least: int = 0, most: int = MAX_INT) -> int:
        value = self.take(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(key, f"an integer from {least} to {most}")
        return value

    def number_from_zero(self, key: str) -> float:
        value = self.take(key)
        if not is_number(value) or value < 0:
            raise self.refuse(key, "a finite number that is not negative")
        return float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        value = self.take(key)
        if not isinstance(value, list) or not all(is_number(item) for item in value):
            raise self.refuse(key, "a list of finite numbers")
        return tuple(float(item) for item in value)

    def fields(self, key: str) -> "Fields":
        return Fields(self.take(key), self.at(key), self._ignore_unknown)

    def list_of_fields(self, key: str, least: int = 0) -> "list[Fields]":
        value = self.items(key)
        if len(value) < least:
            raise self.refuse(key, f"{least} item or more")
        return [Fields(item, f"{self.at(key)}[{i}]", self._ignore_unknown) for i, item in enumerate(value)]

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list):
            raise self.refuse(key, "a list")
        return value

    def named(self, key: str) -> list[tuple[str, Any]]:
        value = self.take(key)
        if not isinstance(value, dict) or "" in value:
            raise self.refuse(key, "an object without an empty name")
        return list(value.items())

    def named_fields(self, key: str) -> "list[tuple[str, Fields]]":
        return [(n, Fields(v, f"{self.at(key)}[{n!r:.80}]", self._ignore_unknown)) for n, v in self.named(key)]

    def names_by_name(self, key: str) -> dict[str, str]:
        named = dict(self.named(key))
        if not all(isinstance(value, str) and value for value in named.values()):
            raise self.refuse(key, "an object of names")
        return named

    def requirements(self, key: str) -> dict[str, Any]:
        """Returns what a variant needs; only a newer minor version may name a need that this one does not know."""
        needs = self.fields(key)
        found = needs.plain()
        if "arch" in found:
            needs.name("arch")
        for listed in ("cpu_features", "custom_ops", "compute_capability"):
            if listed in found:
                needs.names(listed, least=int(listed in GPU_NEEDS))
        if "compute_capability_min" in found:
            needs.name("compute_capability_min")
        for machine in needs.list_of_fields("machines", least=1) if "machines" in found else ():
            machine.name("arch")
            machine.names("cpu_features")
            machine.end()
        needs.end()
        return found


def member_from_json(name: str, fields: Fields) -> Member:
    """Returns what a manifest lists of a member."""
    member_name(name, "members")
    result = Member(fields.sha256("sha256"), fields.integer("size_bytes"))
    fields.end()
    return result


def member_name(name: str, where: str) -> str:
    """Returns the path of a member.

    Raises:
        BundleError: no member can be called so.
    """
    try:
        check_name(name)
    except BundleError as err:
        err.within(where)
        raise
    return name


def is_number(value: object) -> bool:
    """Returns whether a JSON number is one that a double can come near."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_integers(data: object, most: int) -> bool:
    """Returns whether JSON data are a list of integers from 0 to `most`."""
    return isinstance(data, list) and all(type(item) is int and 0 <= item <= most for item in data)


def shown(data: object) -> str:
    """Returns a field's content for a message."""
    return f"{data!r:.80}" if data is not None else "nothing"


def minor_version(data: object, name: str, newest: tuple[int, int]) -> int:
    """Returns the minor version that the data are of; `newest` is the major and minor version that is read here.

    Raises:
        BundleError: they are of another format than `name`, or of another major version.
    """
    version = Fields(data, "", ignore_unknown=False).fields("format")
    if version.take("name") != name:
        raise version.refuse("name", name)
    major, minor = version.integer("major"), version.integer("minor")
    if major > newest[0]:
        raise BundleError(
            f"made by a newer nndeploy (format {major}), this one reads format {newest[0]}",
            hint="upgrade nndeploy, or compile the model again with this one",
        )
    if major < newest[0]:
        raise BundleError(f"format {major} was never released; this nndeploy reads format {newest[0]}")
    if minor <= newest[1]:
        version.end()
    return minor
