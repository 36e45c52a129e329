# SPDX-License-Identifier: Apache-2.0
"""A scheduler that does not come up is told by what ended it: a kill is no fault of the installation."""

import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra farm is not installed")

from nndeploy.errors import BusyError, UnavailableError
from nndeploy.farm.cluster.local_cluster import LocalCluster


@pytest.mark.parametrize(("script", "error"), [("kill -9 $$", BusyError), ("exit 3", UnavailableError)])
def test_a_scheduler_that_ends_at_once_is_told_and_leaves_nothing(
    script: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(error):
        LocalCluster(1)
    assert [path.name for path in tmp_path.iterdir()] == ["python"]
