# SPDX-License-Identifier: Apache-2.0
"""Every file of docs/figures says which command made it, when, where and of which tree; stale ones are found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

import figures  # noqa: E402

FILES = sorted(path.name for path in figures.FIGURES.iterdir())


def test_every_figure_is_known_and_no_other() -> None:
    assert sorted(one.name for one in figures.ALL) == FILES


@pytest.mark.parametrize("name", FILES)
def test_a_figure_begins_with_its_command_date_machine_and_tree(name: str) -> None:
    found = figures.HEADER.match((figures.FIGURES / name).read_text())
    assert found is not None
    assert found["command"].split(", ") == list(figures.figure(name).commands)
    assert re.search(r"AMD|Intel|ARM|NVIDIA", found["machine"])


@pytest.mark.parametrize("one", figures.ALL, ids=lambda one: one.name)
def test_commands_and_code_of_a_figure_exist(one: figures.Figure) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in one.commands:
        target = command.removeprefix("make ")
        scripts = [ROOT / "tests" / place / f"{target.replace('-', '_')}.py" for place in ("bench", "fuzz")]
        assert any(script.is_file() for script in scripts) or re.search(rf"^{target}:", makefile, re.MULTILINE), command
    assert [path for path in one.paths if not (ROOT / path).exists()] == []


def test_the_guide_says_of_boxes_and_registries_what_was_measured() -> None:
    rows = dict(re.findall(r"^\| (.+?) \| ([\d.]+)(?: MB)? \|", (figures.FIGURES / "robustness.md").read_text(), re.M))
    sent, fetched = rows["sent at first"], rows["fetched by a box that has the version before"]
    guide = ROOT / "docs" / "guide"
    registry = (guide / "registry.md").read_text()
    assert re.search(rf"{sent} MB were sent, 0 B were there$", registry, re.M)
    assert f"{fetched} MB were fetched, {float(sent) - float(fetched):.1f} MB were here" in registry
    assert re.search(rf"a bundle of {sent} MB .*{fetched} MB travel", registry, re.S)
    assert len(set(re.findall(r"([\d.]+) MB were (?:sent|there)", registry))) == 1
    beside, numpy = rows["files that it brings beside NumPy"], rows["NumPy"]
    assert f"{beside} MB beside NumPy's {numpy}" in (guide / "edge-box.md").read_text()
    assert f"NumPy is {numpy} MB" in (guide / "index.md").read_text()


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def commit(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-m", "one more")


def test_a_figure_is_stale_once_its_code_has_changed(tmp_path: Path) -> None:
    one = figures.Figure("speed.md", ("make bench-speed",), ("nndeploy/fast",))
    git(tmp_path, "init")
    commit(tmp_path, "nndeploy/fast/a.py", "1")
    line = figures.header_line(one, "2026-01-01", "AMD EPYC", figures.tree(tmp_path))
    commit(tmp_path, "docs/figures/speed.md", f"{line}# Speed\n")
    commit(tmp_path, "nndeploy/other.py", "1")
    assert figures.stale((one,), tmp_path) == []
    commit(tmp_path, "nndeploy/fast/a.py", "2")
    assert figures.stale((one,), tmp_path) == [figures.Stale("speed.md", 1, one.commands)]


def test_a_figure_of_a_commit_that_is_not_there_is_stale(tmp_path: Path) -> None:
    one = figures.Figure("speed.md", ("make bench-speed",), ("nndeploy",))
    git(tmp_path, "init")
    commit(tmp_path, "docs/figures/speed.md", figures.header_line(one, "2026-01-01", "AMD EPYC", "0" * 12))
    assert figures.stale((one,), tmp_path) == [figures.Stale("speed.md", None, one.commands)]
