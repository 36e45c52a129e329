# SPDX-License-Identifier: Apache-2.0
"""No committed file names a machine or a registry, or is of an unexpected kind or size."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLASH = "/"  # so that this file does not hold what it looks for
MACHINE_WORDS = (
    *(SLASH + folder + SLASH for folder in ("work", "root", "tmp/nn", "opt/wheels", "opt/pypi")),
    *("pypi" + ".org", "pythonhosted" + ".org", "file:" + SLASH * 3),
)
OTHER_PROJECT = re.compile("pip install " + r"nndeploy(?!-toolchain)")
FROM_AN_INDEX = re.compile(r"pip (?:install|wheel|download)\b(?!.*--(?:no-index|require-hashes)).*\bnndeploy-toolchain")
SUFFIXES = {
    *(".py", ".typed", ".c", ".h", ".sh", ".md", ".html", ".css", ".txt"),
    *(".toml", ".json", ".jsonl", ".yml", ".yaml", ".ini", ".conf", ".service", ".timer", ".lock"),
    *(".onnx", ".npz", ".png", ".svg", ".nnd"),
}
WITHOUT_SUFFIX = {"Containerfile", "LICENSE", "Makefile", "run", ".clang-format", ".gitignore"}
MAX_BYTES = 200 << 10
PRODUCT = ("nndeploy/", "backends/", "examples/")


@cache
def committed() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def product_code() -> list[str]:
    return [name for name in committed() if name.startswith(PRODUCT) and name.endswith(".py")]


@cache
def content(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def lines_with(pattern: re.Pattern[bytes]) -> Iterator[str]:
    for name in committed():
        for number, line in enumerate(content(name).splitlines() if pattern.search(content(name)) else [], start=1):
            if pattern.search(line):
                yield f"{name}:{number}: {line[:100]!r}"


@pytest.mark.parametrize("word", MACHINE_WORDS)
def test_no_committed_file_names_a_machine_s_folder_or_a_registry(word: str) -> None:
    beginning = rb"(?<![\w.])" if word.startswith(SLASH) else rb""
    assert list(lines_with(re.compile(beginning + re.escape(word.encode())))) == []


def test_no_hint_installs_the_other_project_of_our_name() -> None:
    assert list(lines_with(re.compile(OTHER_PROJECT.pattern.encode()))) == []


def test_no_line_takes_our_wheels_from_an_index() -> None:
    """Nobody holds our names there: they come from a folder, or with a hash."""
    assert list(lines_with(re.compile(FROM_AN_INDEX.pattern.encode()))) == []


def test_only_known_kinds_of_files_are_committed() -> None:
    paths = map(Path, committed())
    assert [path for path in paths if path.suffix not in SUFFIXES and path.name not in WITHOUT_SUFFIX] == []


def test_no_large_file_is_committed() -> None:
    """Lock files grow with the number of packages, whose hashes they hold."""
    names = (name for name in committed() if not name.endswith(".lock"))
    assert [name for name in names if (ROOT / name).stat().st_size > MAX_BYTES] == []


def test_every_source_file_names_its_licence_first() -> None:
    texts = {name: (ROOT / name).read_text().splitlines()[:2] for name in product_code()}
    assert [name for name, lines in texts.items() if "SPDX-License-Identifier: Apache-2.0" not in "".join(lines)] == []
