# SPDX-License-Identifier: Apache-2.0
"""A cluster of real processes on loopback: a worker without the files builds what a killed one left."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

pytest.importorskip("distributed", reason="the extra farm is not installed")

import nndeploy
from nndeploy.farm.batch_flow import opened_batch
from nndeploy.farm.cluster.certificates import make_certificates
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.gates import Gates
from nndeploy.farm.run_batch import Events
from nndeploy.sandbox.child_process import descendants

SECONDS = 300.0
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { h = MatMul(x, w) y = Softmax(h) }"""
FLEET = '[[models]]\nfiles = ["m.onnx"]\noptions = { objective = "priority" }\n'
HIDDEN = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']

Started = Callable[..., "subprocess.Popen[str]"]


def can_hide() -> bool:
    """Returns whether a process may have mounts of its own here."""
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Returns a function that starts `nndeploy farm` with folders of its own, below one of the name."""

    def start(name: str, *arguments: object, hiding: Path | None = None) -> "subprocess.Popen[str]":
        own = tmp_path / name
        folders = {f"XDG_{what}_HOME": str(own / what) for what in ("CACHE", "CONFIG", "DATA")}
        command = [sys.executable, "-m", "nndeploy", "farm", *map(str, arguments), "--certificates", tmp_path / "certs"]
        before = [*HIDDEN, str(hiding)] if hiding is not None else []
        own.mkdir()
        process = subprocess.Popen(
            [*before, *map(str, command)], env=os.environ | folders | {"HOME": str(own)}, cwd=own, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        held.enter_context(process)
        held.callback(process.kill)
        return process

    make_certificates(tmp_path / "certs")
    with ExitStack() as held:
        yield start


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_a_worker_without_the_files_builds_what_a_killed_one_left(tmp_path, started, monkeypatch) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    onnx.save(onnx.parser.parse_model(MODEL), mine / "m.onnx")
    (mine / "fleet.toml").write_text(FLEET)
    scheduler = started("scheduler", "scheduler", "tls://127.0.0.1:0")
    address = scheduler.stdout.readline().split()[-1]
    worker = ("worker", address, "-j", 1)
    first = started("first", *worker, "--name", "first")
    seconds: list[subprocess.Popen[str]] = []
    children: list[int] = []
    outcomes: list[Outcome] = []

    class Kill(Events):
        """Ends the first worker when it is at work, and starts another."""

        def stage(self, job: str, stage: str, detail: str) -> None:
            if not seconds:
                children.extend(descendants(first.pid))
                first.kill()
                hiding = mine if can_hide() else None
                seconds.append(started("second", *worker, "--name", "second", hiding=hiding))

        def finished(self, outcome: Outcome) -> None:
            outcomes.append(outcome)

    options = BatchOptions(cluster=address, certificates=str(tmp_path / "certs"), worker_wait=SECONDS)
    with opened_batch(mine / "fleet.toml", options, Gates(), lambda line: None) as opened:
        ended = opened.run(Kill(), {}, datetime.now(UTC))
    assert [(one.status, one.worker, one.tries) for one in outcomes] == [("infra", "first", 1), ("ok", "second", 2)]
    assert ended.batch.counts["ok"] == 1
    x = np.ones((2, 4), np.float32)
    found = nndeploy.load_bundle(mine / "dist" / "m" / "host.nnd").run({"x": x})["y"]
    scores = np.exp(x @ np.arange(1, 13, dtype=np.float32).reshape(4, 3))
    np.testing.assert_allclose(found, scores / scores.sum(axis=1, keepdims=True), rtol=1e-5)

    assert children, "it was killed while it built"
    deadline = time.monotonic() + SECONDS
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline, "what a worker started outlives it"
        time.sleep(0.02)
    scheduler.kill()
    assert seconds[0].wait(SECONDS) == 75
    assert "the scheduler is gone" in seconds[0].stderr.read()


def test_dask_is_loaded_and_sockets_are_opened_for_a_cluster_alone(tmp_path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    (tmp_path / "fleet.toml").write_text(FLEET + '[cluster]\naddress = "tls://192.0.2.1:8786"\n')
    code = (
        "import socket, sys; from nndeploy.cli.main import run_command; import nndeploy.cli.commands.farm\n"
        "socket.socket.__init__ = lambda *_, **__: sys.exit('a socket')\n"
        f"code = run_command(['batch', {str(tmp_path / 'fleet.toml')!r}, '--plan'])\n"
        "sys.exit(code or ', '.join({'distributed', 'dask', 'tornado'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
