# SPDX-License-Identifier: Apache-2.0
"""Results on the disk, a line of JSON each, so that a bench goes on where it was stopped."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def append(path: Path, fields: Mapping[str, Any]) -> None:
    """Adds a result, which has a "name"."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(fields) + "\n")


def newest(path: Path) -> dict[str, dict[str, Any]]:
    """Returns the newest result of each name."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {one["name"]: one for one in map(json.loads, lines)}
