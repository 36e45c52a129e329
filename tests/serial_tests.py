# SPDX-License-Identifier: Apache-2.0
"""The marker `serial`: such a test runs while no other test of the run does, however many processes run tests.

Two locks on files that all processes of the run share. Every test holds `running`, a serial one alone. `turn` is
passed by everybody on the way in; a serial test keeps it while it waits for the others to end, so that no new ones
start before it.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def beside_others(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps other tests from running beside a serial one."""
    if not hasattr(request.config, "workerinput"):
        yield  # one process runs one test at a time
        return
    shared = tmp_path_factory.getbasetemp().parent
    kind = fcntl.LOCK_EX if request.node.get_closest_marker("serial") else fcntl.LOCK_SH
    with _locked(shared / "turn.lock", fcntl.LOCK_EX) as turn, _locked(shared / "running.lock", kind):
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    with path.open("a") as file:
        fcntl.flock(file, kind)
        yield file.fileno()
