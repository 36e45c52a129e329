# SPDX-License-Identifier: Apache-2.0
"""Containers built by buildah (Debian: buildah) on a Debian of this machine's architecture, without a network.

They and their images lie in a folder of the test, and nothing of this machine changes.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from wheel_builds import ROOT

BASE = ROOT / "build" / "container-base"
CONTAINER_FILE = ROOT / "configs" / "container" / "Containerfile"
PYTHON = (3, 11)
"""That of Debian 12."""


class Builder:
    """Calls of buildah with a store of their own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str) -> str:
        """Returns the last line that a call prints."""
        done = self._call(*words)
        assert done.returncode == 0, done.stderr + done.stdout
        return (done.stdout.splitlines() or [""])[-1]

    def refusal(self, *words: str) -> str:
        """Returns why a call does not work, or nothing."""
        done = self._call(*words)
        return done.stderr.strip() if done.returncode else ""

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        store = ["--root", str(self.folder / "store"), "--runroot", str(self.folder / "run"), "--storage-driver", "vfs"]
        return subprocess.run(["unshare", "--net", "buildah", *store, *words], capture_output=True, text=True)


@contextmanager
def bare_builder(folder: Path) -> Iterator[Builder]:
    """Gives a builder that has no image but "base", which is empty; skips where it cannot build."""
    if not (shutil.which("buildah") and shutil.which("unshare")):
        pytest.skip("buildah is not installed (Debian: buildah)")
    found = Builder(folder)
    try:
        refusal = found.refusal("from", "--name", "base", "scratch")
        if refusal:
            pytest.skip(f"buildah cannot build here: {refusal}")
        yield found
    finally:
        found.refusal("rm", "--all")
        found.refusal("rmi", "--all", "--force")


@contextmanager
def builder(folder: Path) -> Iterator[Builder]:
    """Gives a builder that has the image which the container file begins with; skips where it cannot build."""
    if sys.version_info[:2] != PYTHON:
        pytest.skip("the wheels of this environment are not for the Python of Debian 12")
    if not (BASE / "ready").exists():
        pytest.skip(f"no Debian in {BASE}; `make container-base` fetches it")
    with bare_builder(folder) as found:
        found("copy", "base", str(BASE / "root"), "/")
        found("commit", "--quiet", "base", base_image())
        yield found


def base_image() -> str:
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", CONTAINER_FILE.read_text(), re.MULTILINE)
    names = re.findall(r"^FROM (\S+)", CONTAINER_FILE.read_text(), re.MULTILINE)
    assert len(set(names)) == 1, "the container file begins with two images"
    return str(names[0]).replace("${PYTHON}", python)
