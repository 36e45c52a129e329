# SPDX-License-Identifier: Apache-2.0
"""What was measured: the files of docs/figures, the commands behind them, and the code they speak of.

Each file begins with one line that says how it came about, which its command writes:

    <!-- made by: make bench-farm, make bench-fleet | 2026-11-23 | Intel(R) Xeon(R), 2 cores | f3a625ad01b2 -->

`python tests/bench/figures.py` (`make figures-stale`) lists the figures of which the code has changed since.
"""

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
HEADER = re.compile(
    r"<!-- made by: (?P<command>[^|\n]+) \| (?P<date>\d{4}-\d{2}-\d{2}) \| (?P<machine>[^|\n]+)"
    r" \| (?P<commit>[0-9a-f]{7,40})\+? -->\n"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A file of docs/figures: the commands it is made by, and the folders and files it speaks of."""

    name: str
    commands: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stale:
    """A figure that is older than its code: by how many commits, or by an unknown number (None)."""

    name: str
    num_commits: int | None
    commands: tuple[str, ...]


_PACING = ("nndeploy/pacing", "backends/nndeploy_kernels/c/pacing", "backends/nndeploy_onnxruntime", "nndeploy/stream")
ALL = (
    Figure(
        "speed.md",
        (
            "make bench-speed", "make bench-kernels", "make bench-zoo", "make bench-transformers", "make bench-dynamic",
            "make bench-start", "make bench-web", "make bench-costs", "make bench-targets", "make bench-loadgen",
            "make bench-tune", "make conformance", "make gpu-check",
        ),
        ("nndeploy/compiler", "nndeploy/partition", "nndeploy/passes", "nndeploy/runtime", "nndeploy/cuda", "backends"),
    ),
    Figure(
        "streams.md",
        ("make bench-stream", "make bench-serve"),
        ("nndeploy/stream", "nndeploy/processors", "nndeploy/serve", "nndeploy/runtime"),
    ),
    Figure(
        "recipes.md",
        ("make bench-recipes",),
        ("nndeploy/starters", "nndeploy/stream", "nndeploy/processors", "nndeploy/runtime"),
    ),
    Figure(
        "farm.md",
        ("make bench-farm", "make bench-fleet"),
        ("nndeploy/farm", "nndeploy/build_cache", "nndeploy/compiler", "nndeploy/sandbox"),
    ),
    Figure("pacing.md", ("make bench-pacing", "make bench-pace-costs"), _PACING),
    Figure(
        "robustness.md",
        (
            "make bench-crash-points", "make bench-soak", "make bench-box", "make fuzz-containers",
            "make fuzz-bundle-members", "make fuzz-openvino-members", "make operators", "make fuzz-graphs",
            "make fuzz-hostile-numbers", "make fuzz-c-runtime",
        ),
        (
            "nndeploy/installed", "nndeploy/trust", "nndeploy/files", "nndeploy/bundle", "nndeploy/stream",
            "nndeploy/runtime",
        ),
    ),
    *(
        Figure(f"pacing-{model}.svg", ("make bench-pace-costs",), _PACING)
        for model in ("ppocr_det_mobile_v2", "unet_stress_field")
    ),
)  # fmt: skip


def figure(name: str) -> Figure:
    """Returns the figure of a name."""
    return {one.name: one for one in ALL}[name]


def page_section(page: str, heading: str, script: str, text: str) -> None:
    put_section(page, heading, f"{stamp(script, sys.argv[1:])}\n\n{text}")


def header(one: Figure, machine: str) -> str:
    """Returns the line that a figure begins with when its command writes it now."""
    return header_line(one, today(), machine, tree())


def stamp(script: str, arguments: Sequence[str] = ()) -> str:
    """Returns the line below the heading of a section: command, date, machine, tree."""
    told = shlex.join(one for one in arguments if one not in ("--write", "--json"))
    command = f"make {script.replace('_', '-')}" + (f' ARGS="{told}"' if told else "")
    return f"`{command}`, {today()}, {machine()}, tree {tree()}"


def machine() -> str:
    """Returns the processor, its cores, the load, and the versions of the libraries that are compared."""
    versions = [f"{name} {version(name)}" for name in ("onnxruntime", "openvino") if find_spec(name)]
    return ", ".join([machine_name(), f"load {os.getloadavg()[0]:.1f}", *versions])


def machine_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.machine())}, {os.cpu_count()} cores"


def put_section(page: str, heading: str, body: str) -> None:
    """Replaces the section of a page of docs/figures, or adds it at the end; the page's first line is made anew."""
    path = FIGURES / page
    text = HEADER.sub(header(figure(page), machine_name()), path.read_text(encoding="utf-8"), count=1)
    before, found, rest = text.partition(f"\n## {heading}\n")
    _, next_heading, behind = rest.partition("\n## ") if found else ("", "", "")
    section = f"{before.rstrip()}\n\n## {heading}\n\n{body.strip()}\n"
    path.write_text(section + (next_heading + behind if next_heading else ""), encoding="utf-8")


def today() -> str:
    return time.strftime("%Y-%m-%d")


def header_line(one: Figure, date: str, machine: str, commit: str) -> str:
    return f"<!-- made by: {', '.join(one.commands)} | {date} | {machine} | {commit} -->\n"


def tree(root: Path = ROOT) -> str:
    """Returns the commit, with a + behind it where the product's files differ from it."""
    changed = _git(root, "status", "--porcelain", "--", "nndeploy", "backends", "configs")
    return _git(root, "rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def stale(figures: tuple[Figure, ...] = ALL, root: Path = ROOT) -> list[Stale]:
    """Returns the figures of which the code has changed since the commit that they name."""
    found = [Stale(one.name, _num_commits(one, root), one.commands) for one in figures]
    return [one for one in found if one.num_commits != 0]


def _num_commits(one: Figure, root: Path) -> int | None:
    found = HEADER.match((root / "docs" / "figures" / one.name).read_text(encoding="utf-8"))
    if found is None:
        return None
    try:
        return int(_git(root, "rev-list", "--count", f"{found['commit']}..HEAD", "--", *one.paths))
    except subprocess.CalledProcessError:
        return None  # a commit that this clone does not have


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    for one in stale():
        behind = "an unknown number of" if one.num_commits is None else str(one.num_commits)
        sys.stdout.write(f"{one.name:32} {behind} commits behind: {', '.join(one.commands)}\n")


if __name__ == "__main__":
    main()
