# SPDX-License-Identifier: Apache-2.0
"""Half a download is no loss: what came is kept beside the output, checked, and not sent again."""

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from registry_server import BLOB, Asked, Handler, RegistryServer
from weighty_bundles import QUICK, write_weights

from nndeploy.errors import BundleError, BusyError, InputOutputError, UnavailableError
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push

Fault = Callable[[Handler, Asked], bool]


def cut_after(num_bytes: int, times: int = 10**9) -> Fault:
    """Cuts answers with a large blob after so many bytes of them."""
    left = [times]

    def fault(handler: Handler, asked: Asked) -> bool:
        found = BLOB.fullmatch(asked.path)
        data = handler.owner.blobs.get(found["name"], b"") if found and asked.method == "GET" else b""
        if len(data) < 100_000 or not left[0]:
            return False
        left[0] -= 1
        given = re.fullmatch(r"bytes=(\d+)-", asked.headers.get("Range", ""))
        begin = int(given[1]) if given else 0
        handler.send_response(206 if given else 200)
        handler.send_header("Content-Length", str(len(data) - begin))
        if given:
            handler.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        handler.wfile.write(data[begin : begin + num_bytes])
        if begin + num_bytes < len(data):
            handler.cut()
        return True

    return fault


def gone_after_a_part() -> Fault:
    """Cuts the first large blob in its midst, and gives no more of any."""
    stages = [cut_after(100_000, times=1), cut_after(0)]
    return lambda handler, asked: any(stage(handler, asked) for stage in stages)


def served(handler: Handler, asked: Asked) -> bool:
    """Leaves all to the registry."""
    return False


def ignoring_ranges(inner: Fault) -> Fault:
    """Answers as a registry does that knows no Range."""

    def fault(handler: Handler, asked: Asked) -> bool:
        asked.headers.pop("Range", None)
        del handler.headers["Range"]
        return inner(handler, asked)

    return fault


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def kept_bytes(box: Path) -> int:
    return sum(path.stat().st_size for path in box.glob(".nndeploy-pull-*/*"))


@pytest.mark.parametrize("num_bytes", [70_000, 299_999])
def test_a_connection_that_is_cut_again_and_again_is_gone_on_with(pushed, bundle, box, num_bytes) -> None:
    pushed.fault = cut_after(num_bytes)
    pulled = pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert 900_000 < pulled.fetched_bytes < 905_000  # nothing came twice
    assert names_in(box) == ["m.nnd"]


def test_what_came_before_the_registry_went_away_is_not_asked_for_again(pushed, bundle, box) -> None:
    (box / "m.nnd").write_bytes(b"the old file")
    pushed.fault = gone_after_a_part()
    with pytest.raises(InputOutputError, match="cut at 100000 of 300000 bytes") as caught:
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert caught.value.exit_code == 74
    assert (box / "m.nnd").read_bytes() == b"the old file"
    assert kept_bytes(box) > 100_000
    pushed.fault = served
    pushed.asked.clear()
    pulled = pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert "bytes=100000-" in [one.headers.get("Range") for one in pushed.asked]
    assert pulled.kept_bytes > 100_000
    assert 900_000 < pulled.fetched_bytes + pulled.kept_bytes < 905_000
    assert names_in(box) == ["m.nnd"]


def test_a_registry_without_ranges_begins_anew(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    pushed.fault = ignoring_ranges(cut_after(100_000, times=3))
    pulled = pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert pulled.fetched_bytes > 1_000_000


def test_a_registry_that_never_brings_a_blob_to_its_end_is_given_up(pushed: RegistryServer, box: Path) -> None:
    pushed.fault = ignoring_ranges(cut_after(100_000))
    with pytest.raises(InputOutputError, match="cut at 100000 of 300000"):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)


@pytest.mark.parametrize("change", ["other", "longer", "folder", "link"])
def test_what_is_kept_is_taken_on_no_trust(pushed: RegistryServer, bundle: Path, box: Path, change: str) -> None:
    pushed.fault = cut_after(0)
    with pytest.raises(InputOutputError):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    (folder,) = box.glob(".nndeploy-pull-*")
    victim = box.parent / "victim"
    victim.write_bytes(b"of somebody else")
    for digest in (name.removeprefix("sha256:") for name, data in pushed.blobs.items() if len(data) > 100_000):
        path = folder / digest
        path.unlink(missing_ok=True)
        match change:
            case "other":
                path.write_bytes(bytes(1000))
            case "longer":
                path.write_bytes(bytes(300_001))
            case "folder":
                path.mkdir()
                (path / "file").write_bytes(b"x")
            case "link":
                path.symlink_to(victim)
    pushed.fault = served
    pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert names_in(box) == ["m.nnd"]
    assert victim.read_bytes() == b"of somebody else"


def test_what_an_older_pull_left_is_swept(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    pushed.fault = gone_after_a_part()
    with pytest.raises(InputOutputError):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    before = {path.name for path in box.glob(".nndeploy-pull-*/*")}
    write_weights(bundle, (40, 50, 60))
    push(bundle, pushed.reference("2"), options=QUICK)
    pushed.fault = cut_after(0)
    with pytest.raises(InputOutputError):
        pull(pushed.reference("2"), box / "m.nnd", options=QUICK)
    after = {path.name for path in box.glob(".nndeploy-pull-*/*")}
    assert kept_bytes(box) < 100_000
    assert len(before & after) < len(before)


def test_one_process_at_a_time_pulls_to_a_file(pushed: RegistryServer, box: Path) -> None:
    with KeptBlobs(box / "m.nnd"):
        with pytest.raises(BusyError, match="another process"):
            pull(pushed.reference(), box / "m.nnd", options=QUICK)
        pull(pushed.reference(), box / "other.nnd", options=QUICK)
    pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert names_in(box) == ["m.nnd", "other.nnd"]


def test_blobs_with_wrong_bytes_are_not_kept(pushed: RegistryServer, box: Path) -> None:
    for digest, data in pushed.blobs.items():
        if len(data) > 100_000:
            pushed.blobs[digest] = bytes(len(data))
    with pytest.raises(BundleError, match="damaged"):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert names_in(box) == []


def test_a_disk_that_became_too_small_keeps_what_a_cut_pull_brought(pushed, box, monkeypatch) -> None:
    pushed.fault = gone_after_a_part()
    with pytest.raises(InputOutputError, match="cut"):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    before = kept_bytes(box)
    pushed.fault = served
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(InputOutputError, match="are free"):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert kept_bytes(box) >= before > 0


def test_a_disk_that_fails_when_all_is_there_costs_nothing(pushed, bundle, box, monkeypatch) -> None:
    real = os.close

    def failing(descriptor: int) -> None:
        real(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "close", failing)
    pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_pull_that_is_killed_loses_nothing(pushed, bundle, box, kind) -> None:
    def dripping(handler: Handler, asked: Asked) -> bool:
        found = BLOB.fullmatch(asked.path)
        data = pushed.blobs.get(found["name"], b"") if found else b""
        if len(data) < 100_000:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:150_000])
        time.sleep(2)
        return True

    pushed.fault = dripping
    command = [sys.executable, "-m", "nndeploy", "pull", pushed.reference(), "-o", str(box / "m.nnd")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while kept_bytes(box) < 100_000 and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(child.pid, kind)
    child.communicate()
    pushed.fault = served
    pulled = pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert pulled.kept_bytes > 100_000
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert names_in(box) == ["m.nnd"]


def dripping(part: str) -> Fault:
    """Answers blobs a byte now and then, in the part that is named; for ever, or until nobody reads."""

    def fault(handler: Handler, asked: Asked) -> bool:
        found = BLOB.fullmatch(asked.path)
        if found is None or asked.method != "GET":
            return False
        size = len(handler.owner.blobs[found["name"]])
        if part != "status":
            handler.send_response(200)
        if part in ("body", "chunk"):
            length = {"chunk": ("Transfer-Encoding", "chunked")}.get(part, ("Content-Length", str(size)))
            handler.send_header(*length)
            handler.end_headers()
        if part == "head":
            handler.flush_headers()
        handler.close_connection = True
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b"1")
                time.sleep(0.02)
        return True

    return fault


@pytest.mark.parametrize("part", ["status", "head", "body", "chunk"])
def test_a_registry_that_sends_a_byte_now_and_then_is_given_up(pushed, box, monkeypatch, part) -> None:
    pushed.fault = dripping(part)
    monkeypatch.setattr("nndeploy.registry.connection.ATTEMPTS", 2)
    monkeypatch.setattr("nndeploy.registry.blob_download.ATTEMPTS", 2)
    monkeypatch.setattr("nndeploy.registry.remote.ATTEMPTS", 2)
    with pytest.raises((InputOutputError, UnavailableError)):
        pull(pushed.reference(), box / "m.nnd", options=RegistryOptions(timeout=0.1))
    assert not (box / "m.nnd").exists()


def test_attempts_that_bring_hardly_anything_do_not_go_on_for_ever(pushed: RegistryServer, box: Path) -> None:
    pushed.fault = cut_after(10)
    with pytest.raises(InputOutputError, match=r"cut at \d+ of 300000"):
        pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert len(pushed.asked) < 30
