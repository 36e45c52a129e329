# SPDX-License-Identifier: Apache-2.0
"""The boxes that nndeploy knows by name: the files of configs/targets, which travel in the package."""

from functools import cache
from pathlib import Path

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.shipped_configs import config_files


@cache
def known_targets() -> dict[str, Path]:
    """Returns name -> target file of every known box, sorted by name."""
    return {path.stem: path for path in config_files("targets")}


def target_file(text: str) -> Path:
    """Returns the target file that `text` means: the path of one, or the name of a known box.

    Raises:
        UsageError: no box of that name is known, and it is no path of a file.
    """
    path = Path(text)
    if path.is_file() or path.suffix == ".toml" or "/" in text:
        return path
    if text not in known_targets():
        hint = f"`nndeploy probe -o box.toml` writes a box's own file; {did_you_mean(text, known_targets())}"
        raise UsageError(f"no target is called {text!r:.80}", hint=hint)
    return known_targets()[text]
