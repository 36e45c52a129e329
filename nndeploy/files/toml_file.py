# SPDX-License-Identifier: Apache-2.0
"""Reads TOML files; what cannot be read, is too large or is not TOML is one line that names the file.

Law: the integers of a table that comes out have 64 bits and its tables are not nested deeper than `MAX_DEPTH`, so that
any value can be shown in a message and any integer is a number.
"""

import re
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, MissingInputError

MAX_FILE_BYTES = 1 << 20
_NO_TOML = {
    ".onnx": ("a model", "nndeploy compile {}"),
    ".nnd": ("a bundle", "nndeploy inspect {}"),
}
"""Suffix of a file that is given in place of a TOML file -> what it is, and what takes it."""
MAX_DEPTH = 32
"""More than any file of ours has; dotted keys nest without the parser's noticing."""
_DEEP_KEY = re.compile(
    rf"""(?:^|[\[{{,])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}""", re.MULTILINE
)
"""A dotted key of so many parts; the parser's time grows with the square of their number."""


def toml_from_file(path: Path, what: str) -> dict[str, Any]:
    """Returns the table that a file holds; `what` names such a file in messages ("target file").

    Raises:
        MissingInputError: there is no such file.
        DataError: it cannot be read, is too large, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as err:
        raise MissingInputError(f"no such {what}", where=str(path)) from err
    except OSError as err:
        raise DataError(f"the {what} cannot be read: {err.strerror}", where=str(path)) from err
    if (found := _NO_TOML.get(path.suffix.lower())) is not None:
        raise DataError(f"is {found[0]}, and a {what} in TOML is meant", where=str(path), hint=found[1].format(path))
    return toml_from_bytes(data, str(path))


def toml_from_bytes(data: bytes, where: str) -> dict[str, Any]:
    """Returns the table that the bytes of a file hold; `where` names it in messages.

    Raises:
        DataError: they are too many, no UTF-8 or no TOML; or an integer is too large, or a table too deep.
    """
    import tomllib  # the run half reads no TOML but that of pipelines

    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"has more than {MAX_FILE_BYTES} bytes", where=where)
    try:
        text = data.decode("utf-8")
        if _DEEP_KEY.search(text):
            raise DataError(f"is nested deeper than {MAX_DEPTH}", where=where)
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as err:  # a plain ValueError where an integer has thousands of digits
        raise DataError(f"is not TOML: {err}", where=where) from err
    _check_plain(table, where)
    return table


def _check_plain(table: dict[str, Any], where: str) -> None:
    """Refuses what TOML says that a file may not hold; without recursion, which the depth would end."""
    left: list[tuple[object, int]] = [(table, 0)]
    while left:
        value, depth = left.pop()
        if isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                raise DataError(f"is nested deeper than {MAX_DEPTH}", where=where)
            left += [(one, depth + 1) for one in (value.values() if isinstance(value, dict) else value)]
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise DataError("holds an integer of more than 64 bits", where=where)
