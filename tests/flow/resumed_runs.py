# SPDX-License-Identifier: Apache-2.0
"""Runs with `--resume` that are killed: what they read, the pipeline, the command, and what they left."""

import sys
from collections.abc import Collection
from pathlib import Path

SEVERAL = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "double"
[[sink]]
kind = "json-lines"
[[sink]]
kind = "csv"
[[sink]]
kind = "statistics"
[[sink]]
kind = "npz"
"""

COMMAND = [
    sys.executable,
    "-c",
    "from nndeploy.stream.sinks import resume; resume.CHECKPOINT_SECONDS = 0.05;"
    "from nndeploy.cli.main import main; main()",
    "run",
    "m.nnd",
    "--threads",
    "1",
]
"""Runs the bundle m.nnd of the current folder, with checkpoints often enough for a kill to fall between them."""


def lines(count: int, bad: Collection[int] = ()) -> str:
    """Returns so many records as JSON lines; those numbered in `bad` do not fit the input."""
    return "".join('{"image": 5}\n' if i in bad else f'{{"image": [[{i}, 2, 3]]}}\n' for i in range(count))


def content(folder: Path) -> dict[str, bytes]:
    """Returns every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
