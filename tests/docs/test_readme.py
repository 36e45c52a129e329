# SPDX-License-Identifier: Apache-2.0
"""The README keeps its promises: every command and program in it runs, and what it lists is there.

The commands run in order, in one copy of the tree, beside the environment that runs these tests. `make setup` is taken
as done there (it needs an index); CI does it before the tests.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import page_examples
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = page_examples.README.read_text()
MAX_LINES = 150
RUN_THE_TESTS = {"make test", "make check"}
SECONDS_EACH = 300


def blocks(language: str) -> list[str]:
    found = page_examples.examples(page_examples.README)
    return [one.text for one in found if one.language == language and one.reason is None]


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line]


def copy_of_the_tree(folder: Path) -> Path:
    """Returns a copy of what git knows or would take, with `.venv` leading to the running environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def environment(home: Path) -> dict[str, str]:
    search = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ["PATH"]])
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return {"PATH": search, **own, "LANG": "C.UTF-8", "ORT_DISABLE_TELEMETRY": "1"}


def run_line(line: str, tree: Path, home: Path) -> subprocess.CompletedProcess[str]:
    setup_is_done = re.sub(r"^make ", "make --old-file=.venv/ready ", line)
    return subprocess.run(
        ["sh", "-c", setup_is_done],
        cwd=tree,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=SECONDS_EACH,
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_tree(tmp_path_factory.mktemp("tree"))


@pytest.mark.slow
def test_every_command_runs_and_then_every_program(tree: Path, tmp_path: Path) -> None:
    for line in commands():
        if line not in RUN_THE_TESTS:
            done = run_line(line, tree, tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    for program in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tree, env=environment(tmp_path), capture_output=True, text=True
        )
        assert done.returncode == 0, f"{program}\n{done.stderr}"
        assert done.stdout.splitlines()[-1] == "(1, 10)"


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,]*(?:e-\d+)?", "0", text)


@pytest.mark.slow
def test_what_is_shown_of_a_compile_and_a_run_is_what_they_write(tree: Path, tmp_path: Path) -> None:
    """Numbers are those of one machine."""
    (block,) = blocks("console")
    for command, shown in page_examples.console_commands(block):
        done = run_line(f"{command} 2>&1", tree, tmp_path)
        assert done.returncode == 0, done.stdout
        assert page_examples.is_as_shown(without_numbers(done.stdout), without_numbers(shown)), done.stdout


def label_that_was_read(result: Path) -> str:
    with np.load(result) as values:
        return str(values["probabilities"].argmax())


@pytest.mark.slow
def test_demo_makes_a_bundle_that_reads_the_digits(tree: Path, tmp_path: Path) -> None:
    demo = run_line("make demo", tree, tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert [png.stem for png in (tree / "examples/digits/png").iterdir() if png.stem not in demo.stdout] == []
    line = f"nndeploy run demo-out/digits.nnd --input examples/digits/png --output {tmp_path}/read"
    done = run_line(line, tree, tmp_path)
    assert done.returncode == 0, done.stderr
    results = sorted((tmp_path / "read").glob("*.npz"))
    assert len(results) == 20
    assert [r.name for r in results if label_that_was_read(r) != r.stem.rpartition("-is-")[2]] == []


def test_first_commands_are_demo_and_test() -> None:
    assert blocks("sh")[0].splitlines() == ["make demo", "make test"]
    assert commands()[:2] == ["make demo", "make test"]


def test_every_block_is_of_a_language_that_is_run_here() -> None:
    assert {one.language for one in page_examples.examples(page_examples.README)} <= {"sh", "console", "python"}


def test_it_is_short() -> None:
    assert len(README.splitlines()) < MAX_LINES


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "step test" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_map_names_ten_files_that_exist() -> None:
    (section,) = re.findall(r"^## Ten files to read\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    files = re.findall(r"\]\(([^)]+)\) \|", section)
    assert len(files) == 10
    assert [file for file in files if not (ROOT / file).is_file()] == []


def backends_in_readme() -> list[tuple[str, int]]:
    (table,) = re.findall(r"<!-- what `nndeploy backends` says.*?-->(.*?)<!-- end -->", README, re.DOTALL)
    return [(name, int(tier)) for name, tier in re.findall(r"^\| (\w+) \| (\d) \|", table, re.MULTILINE)]


def test_backends_are_those_that_the_command_lists() -> None:
    done = run_line("nndeploy backends --json", ROOT, ROOT)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)["backends"]
    assert backends_in_readme() == [(backend["name"], backend["tier"]) for backend in listed]
