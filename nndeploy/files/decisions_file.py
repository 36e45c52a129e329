# SPDX-License-Identifier: Apache-2.0
"""The file of `--decisions`: what a command measured and chose, as JSON, which a later call takes over."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, InputOutputError
from nndeploy.files.whole_files import write_file

MAX_BYTES = 64 << 20
TUNED_FORMAT = 1
"""That of what `nndeploy tune` writes."""


def read_decisions_file(path: Path) -> Any:
    """Returns the plain data in a file.

    Raises:
        DataError: it is too large, or no JSON.
        InputOutputError: it cannot be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"decisions may have at most {MAX_BYTES:,} bytes", where=str(path))
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise InputOutputError(f"the decisions cannot be read: {err.strerror}", where=str(path)) from err
    except (ValueError, RecursionError) as err:
        raise DataError("the decisions are not JSON", where=str(path)) from err


def read_tuned_choices(path: Path) -> Mapping[str, Any]:
    """Returns the lists `tuned` and `variants`, as far as they are there, of a file that `nndeploy tune` wrote.

    Raises:
        DataError: it is none.
        InputOutputError: it cannot be read.
    """
    data = read_decisions_file(path)
    lists = isinstance(data, dict) and all(isinstance(data.get(name, []), list) for name in ("tuned", "variants"))
    if not lists or data.get("format") != TUNED_FORMAT or "tuned" not in data:
        raise DataError(f"not a file of tuned choices of format {TUNED_FORMAT}", where=str(path))
    return {name: data[name] for name in ("tuned", "variants") if name in data}


def write_decisions_file(path: Path, data: object) -> None:
    """Writes plain data: the whole file or nothing.

    Raises:
        CannotCreateError, InputOutputError: it cannot be written.
    """
    write_file(path, lambda file: file.write((json.dumps(data, indent=1) + "\n").encode("ascii")))
