# SPDX-License-Identifier: Apache-2.0
"""The files that a compile writes, by what they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUNDLE = "bundle"
DECISIONS = "decisions"
"""Also the option that names the file: one that is there is read, one that is not is written."""


def outputs_of(out: str | None, given: Mapping[str, Any]) -> dict[str, Path]:
    """Returns the places of the files that a compile is to write; `given` is as the command gives it."""
    places = {} if not out or given.get("dry_run") else {BUNDLE: Path(out)}
    if (text := given.get(DECISIONS)) and is_to_be_written(DECISIONS, Path(text)):
        places[DECISIONS] = Path(text)
    return places


def is_to_be_written(option: str, path: Path) -> bool:
    """Returns whether a path that an option names is one that the compile makes."""
    return option == DECISIONS and not path.exists()
