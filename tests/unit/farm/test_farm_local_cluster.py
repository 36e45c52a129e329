# SPDX-License-Identifier: Apache-2.0
"""A scheduler that does not come up is told by what ended it: a kill is no fault of the installation."""

import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra farm is not installed")

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.errors import BusyError, UnavailableError
from nndeploy.farm.cluster import engine as cluster_engine
from nndeploy.farm.cluster.local_cluster import LocalCluster
from nndeploy.farm.cluster.place import Place
from nndeploy.farm.resources import Slots


def python_that_runs(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.mark.parametrize(("script", "error"), [("kill -9 $$", BusyError), ("exit 3", UnavailableError)])
def test_a_scheduler_that_ends_at_once_is_told_and_leaves_nothing(script, error, tmp_path, monkeypatch) -> None:
    python_that_runs(script, tmp_path, monkeypatch)
    with pytest.raises(error):
        LocalCluster(1)
    assert [path.name for path in tmp_path.iterdir()] == ["python"]


@pytest.mark.parametrize(("script", "error"), [("kill -9 $$", BusyError), ("exit 3", UnavailableError)])
def test_so_is_one_that_ends_before_the_batch_has_reached_it(script, error, tmp_path, monkeypatch) -> None:
    python_that_runs(f"echo tls://127.0.0.1:1; {script}", tmp_path, monkeypatch)
    monkeypatch.setattr(cluster_engine, "CONNECT_SECONDS", 0.2)
    with pytest.raises(error):
        cluster_engine.cluster_engine(Place(""), Slots(1, 1, 1, 1, ""), print, print, FileDigests(), 60.0)
    assert [path.name for path in tmp_path.iterdir()] == ["python"]
