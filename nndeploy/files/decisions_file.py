# SPDX-License-Identifier: Apache-2.0
"""The file of `--decisions`: what a command measured and chose, as JSON, which a later call takes over."""

import json
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, InputOutputError
from nndeploy.files.whole_files import write_file

MAX_BYTES = 64 << 20


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


def write_decisions_file(path: Path, data: object) -> None:
    """Writes plain data: the whole file or nothing.

    Raises:
        CannotCreateError, InputOutputError: it cannot be written.
    """
    write_file(path, lambda file: file.write((json.dumps(data, indent=1) + "\n").encode("ascii")))
