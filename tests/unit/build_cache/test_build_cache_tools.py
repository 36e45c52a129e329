# SPDX-License-Identifier: Apache-2.0
"""Of a checkout those files count that are imported, and no others."""

import os
import sys
from pathlib import Path

import pytest

from nndeploy.build_cache import tools


def text() -> str:
    tools._of_sources.cache_clear()
    return tools._of_sources()


def test_a_checkout_that_another_hides_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "nndeploy" / "inner").mkdir(parents=True)
        (folder / "nndeploy" / "inner" / "a.py").write_text("1")
    (second / "nndeploy_more").mkdir()
    (second / "nndeploy_more" / "b.py").write_text("1")
    monkeypatch.setattr(sys, "path", [str(first), str(second)])
    before = text()
    os.utime(second / "nndeploy" / "inner" / "a.py", ns=(0, 0))
    assert text() == before
    os.utime(second / "nndeploy_more" / "b.py", ns=(0, 0))
    changed = text()
    assert changed != before
    (first / "nndeploy" / "inner" / "a.py").write_text("12")
    assert text() not in (before, changed)
    tools._of_sources.cache_clear()
