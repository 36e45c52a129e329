# SPDX-License-Identifier: Apache-2.0
"""Where the files of configs/ are: in the tree of the project, or inside an installed package."""

from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]


def config_files(kind: str) -> list[Path]:
    """Returns the TOML files of configs/`kind`, sorted by name; none where the package was put together without."""
    for folder in (_HERE / kind, _HERE.parent / "configs" / kind):
        if folder.is_dir():
            return sorted(folder.glob("*.toml"))
    return []
