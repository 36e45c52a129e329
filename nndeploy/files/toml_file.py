# SPDX-License-Identifier: Apache-2.0
"""Reads TOML files; what cannot be read, is too large or is no TOML is one line that names the file."""

from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, MissingInputError

MAX_FILE_BYTES = 1 << 20


def toml_from_file(path: Path, what: str) -> dict[str, Any]:
    """Returns the table that a file holds; `what` names such a file in messages ("target file").

    Raises:
        MissingInputError: there is no such file.
        DataError: it cannot be read, is too large, or is no TOML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as err:
        raise MissingInputError(f"no such {what}", where=str(path)) from err
    except OSError as err:
        raise DataError(f"the {what} cannot be read: {err.strerror}", where=str(path)) from err
    return toml_from_bytes(data, str(path))


def toml_from_bytes(data: bytes, where: str) -> dict[str, Any]:
    """Returns the table that the bytes of a file hold; `where` names it in messages.

    Raises:
        DataError: they are too many, no UTF-8 or no TOML.
    """
    import tomllib  # the run half reads no TOML but that of pipelines

    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"has more than {MAX_FILE_BYTES} bytes", where=where)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as err:
        raise DataError(f"is no TOML: {err}", where=where) from err
