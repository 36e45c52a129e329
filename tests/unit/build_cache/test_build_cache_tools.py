# SPDX-License-Identifier: Apache-2.0
"""A package counts by the files of its wheel: the same on every machine that it is installed on."""

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from nndeploy.build_cache import tools

WHEEL = "a/__init__.py,sha256=AAAA,10\na-1.0.dist-info/METADATA,sha256=BBBB,20"


def text_of(folder: Path, record: str) -> str:
    info = folder / "a-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Name: a\nVersion: 1.0\n\n")
    (info / "RECORD").write_text(record)
    return tools._text(tools._package(Distribution.at(info)))


@pytest.mark.parametrize(
    "line",
    [
        "../../../bin/a,sha256=CCCC,241",
        "a/__pycache__/__init__.cpython-311.pyc,,",
        "a-1.0.dist-info/INSTALLER,sha256=DDDD,4",
        "a-1.0.dist-info/direct_url.json,sha256=EEEE,90",
    ],
)
def test_what_the_installer_wrote_does_not_count(tmp_path: Path, line: str) -> None:
    assert text_of(tmp_path / "1", WHEEL) == text_of(tmp_path / "2", f"{line}\n{WHEEL}\n")


@pytest.mark.parametrize("line", ["a/b.py,sha256=CCCC,10", "a/__init__.py,sha256=CCCC,10"])
def test_a_file_of_the_wheel_counts(tmp_path: Path, line: str) -> None:
    assert text_of(tmp_path / "1", WHEEL) != text_of(tmp_path / "2", f"{WHEEL}\n{line}")
