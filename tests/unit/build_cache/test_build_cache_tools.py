# SPDX-License-Identifier: Apache-2.0
"""A package counts by its wheel's files, the same on every machine; of a checkout those that are imported."""

import os
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from nndeploy.build_cache import tools


def text() -> str:
    tools._of_sources.cache_clear()
    return tools._of_sources(frozenset(("nndeploy", "nndeploy_more")))


def test_a_checkout_that_another_hides_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, data = tmp_path / "first", tmp_path / "second", tmp_path / "data"
    (data / "nndeploy" / "configs").mkdir(parents=True)
    (data / "nndeploy" / "configs" / "a.toml").write_text("1")
    for folder in (first, second):
        (folder / "nndeploy" / "inner").mkdir(parents=True)
        (folder / "nndeploy" / "__init__.py").write_text("")
        (folder / "nndeploy" / "inner" / "a.py").write_text("1")
    (second / "nndeploy_more").mkdir()
    (second / "nndeploy_more" / "__init__.py").write_text("")
    (second / "nndeploy_more" / "b.py").write_text("1")
    (second / "nndeploy_stranger.py").write_text("1")
    monkeypatch.setattr(sys, "path", [str(data), str(first), str(second)])
    before = text()
    os.utime(second / "nndeploy" / "inner" / "a.py", ns=(0, 0))
    os.utime(second / "nndeploy_stranger.py", ns=(0, 0))
    built = first / "nndeploy" / "runtime-x86_64"
    built.mkdir()
    (built / "libnndeploy.so").write_text("1")
    assert text() == before
    os.utime(second / "nndeploy_more" / "b.py", ns=(0, 0))
    changed = text()
    assert changed != before
    (first / "nndeploy" / "inner" / "a.py").write_text("12")
    assert text() not in (before, changed)
    tools._of_sources.cache_clear()


WHEEL = "a/__init__.py,sha256=AAAA,10\na-1.0.dist-info/METADATA,sha256=BBBB,20"


def text_of(folder: Path, record: str) -> str:
    info = folder / "a-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Name: a\nVersion: 1.0\n\n")
    (info / "RECORD").write_text(record)
    return tools._text(tools._package(Distribution.at(info)))


@pytest.mark.parametrize("line", [
    "../../../bin/a,sha256=CCCC,241", "a/__pycache__/__init__.cpython-311.pyc,,",
    "a-1.0.dist-info/INSTALLER,sha256=DDDD,4", "a-1.0.dist-info/direct_url.json,sha256=EEEE,90",
])  # fmt: skip
def test_what_the_installer_wrote_does_not_count(tmp_path: Path, line: str) -> None:
    assert text_of(tmp_path / "1", WHEEL) == text_of(tmp_path / "2", f"{line}\n{WHEEL}\n")


@pytest.mark.parametrize("line", ["a/b.py,sha256=CCCC,10", "a/__init__.py,sha256=CCCC,10"])
def test_a_file_of_the_wheel_counts(tmp_path: Path, line: str) -> None:
    assert text_of(tmp_path / "1", WHEEL) != text_of(tmp_path / "2", f"{WHEEL}\n{line}")
