# SPDX-License-Identifier: Apache-2.0
"""A module of somebody else's, as it lies where Python searches once it was installed: found by its entry point."""

from pathlib import Path


def write_distribution(site: Path, module: str, source: str, group: str, point: str) -> None:
    """Writes the module `module`, and the entry point `point` of a group: "NAME:OBJECT", the object being in it."""
    name, thing = point.split(":")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:{thing}\n")
