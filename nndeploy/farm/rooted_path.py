# SPDX-License-Identifier: Apache-2.0
"""What a path in a fleet file means: relative to the file's folder, `~/` as in a shell."""

import os
from pathlib import Path

from nndeploy.errors import DataError

MAX_PATH = 4096
"""Linux takes no longer path."""


def rooted_path(folder: Path, text: str) -> str:
    """Returns the absolute path that a text means, without `.` and `..`; `folder` is absolute.

    Raises:
        DataError: the text cannot be a path, or names a home that is not known.
    """
    if not text or not text.isprintable():
        raise DataError(f"{text!r:.80} is no path: it is empty, or holds what cannot be printed")
    try:
        path = os.path.normpath(folder / Path(text).expanduser())
    except RuntimeError as err:
        raise DataError(f"whose home {text!r:.80} means is not known") from err
    if len(os.fsencode(path)) >= MAX_PATH:
        raise DataError(f"a path of more than {MAX_PATH} bytes begins with {text!r:.80}")
    return path
