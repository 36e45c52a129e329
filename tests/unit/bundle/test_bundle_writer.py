# SPDX-License-Identifier: Apache-2.0
"""Writing a bundle: the same bytes each time, and after every failure the old file or the new one, nothing between."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nndeploy.bundle.manifest import Golden, Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import RESERVED_NAMES, check_can_create, write_bundle
from nndeploy.errors import BundleError, CannotCreateError, InputOutputError

OLD = b"the old file"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_only(folder: Path, content: bytes | None) -> None:
    """Asserts that the folder holds out.nnd with `content` and nothing else; None: that it is empty."""
    assert names_in(folder) == ([] if content is None else ["out.nnd"])
    if content is not None:
        assert (folder / "out.nnd").read_bytes() == content


@pytest.fixture
def whole(bundle_path: Path) -> bytes:
    """The bytes that the small bundle has."""
    return bundle_path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


Write = Callable[..., Manifest]


@pytest.fixture
def write(folder: Path, manifest: Manifest, members: dict[str, bytes]) -> Write:
    """Returns a function that writes the small bundle, by default to out.nnd, with some parts changed."""

    def written(path: Path = folder / "out.nnd", *, add: Any = (), report: Any = None, **changes: Any) -> Manifest:
        return write_bundle(path, replace(manifest, **changes), {**members, **dict(add)}, report or {})

    return written


def test_the_reader_finds_what_was_written(tmp_path: Path, manifest: Manifest, members: dict[str, bytes]) -> None:
    complete = write_bundle(tmp_path / "a.nnd", manifest, members, {"model": "digits"})
    with open_bundle(tmp_path / "a.nnd") as bundle:
        bundle.verify()
        assert bundle.manifest == complete
        assert bundle.report() == {"model": "digits"}
        assert {name: bytes(bundle.member(name)) for name in members} == members
    assert complete.members.keys() == {*members, "report.json"}
    assert replace(complete, members={}) == manifest


def test_the_same_content_gives_the_same_bytes(folder: Path, manifest: Manifest, members: dict[str, bytes]) -> None:
    (folder / "sub").mkdir()
    write_bundle(folder / "a.nnd", manifest, members, {"a": 1, "b": 2})
    write_bundle(folder / "sub" / "b.nnd", manifest, dict(reversed(members.items())), {"b": 2, "a": 1})
    assert (folder / "a.nnd").read_bytes() == (folder / "sub" / "b.nnd").read_bytes()


def test_members_may_be_views_of_any_format(folder, write, manifest, members) -> None:
    write(folder / "a.nnd")
    views = {name: memoryview(data) for name, data in members.items()}
    views["submodels/tail/portable/model.onnx"] = memoryview(b"tail").cast("I")
    write_bundle(folder / "b.nnd", manifest, views, {})
    assert (folder / "a.nnd").read_bytes() == (folder / "b.nnd").read_bytes()


def test_somebody_who_reads_the_old_bundle_keeps_it(bundle_path: Path, write: Write) -> None:
    old = open_bundle(bundle_path)
    write(bundle_path, add={"submodels/tail/portable/model.onnx": b"new"})
    old.verify()
    assert bytes(old.member("submodels/tail/portable/model.onnx")) == b"tail"


def test_the_mode_of_the_file_follows_the_umask(folder: Path, write: Write) -> None:
    before = os.umask(0o027)
    try:
        write(folder / "a.nnd")
    finally:
        os.umask(before)
    assert (folder / "a.nnd").stat().st_mode & 0o777 == 0o640


LOST = (Golden("lost", "lost", "", "generated"),)
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"add": {name: b""}}, f"the member name '{name}' is reserved") for name in RESERVED_NAMES),
    ({"add": {"../x": b""}}, r"'\.\./x' leaves its folder"),
    ({"add": {"report.json/x": b""}}, r"'report\.json' is also the folder"),
    ({"report": {"checks": [{"max_abs": float("inf")}]}}, r"report\.json: checks\[0\]\.max_abs is inf"),
    ({"goldens": LOST}, "manifest.json: goldens.*'lost'"),
    ({"model_sha256": "short"}, "manifest.json: model_sha256: expected 64"),
    ({"provenance": {"x": float("nan")}}, "manifest.json: provenance.x is nan"),
    ({"provenance": {"x": "y" * (5 << 20)}}, "bytes of JSON; at most 4194304"),
    ({"provenance": {"x": {}, "y": b""}}, "provenance.y is a bytes"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=range(len(REFUSED)))
def test_writes_nothing_that_the_reader_would_refuse(folder, write, changes, message) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        write(**changes)
    assert caught.value.where.startswith(str(folder / "out.nnd"))
    assert_only(folder, None)


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


def make_link(path: Path) -> Path:
    (path.parent / "target").write_bytes(OLD)
    path.symlink_to("target")
    return path


def make_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


UNUSABLE = [
    (lambda tmp: tmp / "missing" / "x.nnd", "there is no folder"),
    (lambda tmp: make_folder(tmp / "x.nnd"), "is a folder.*name a file"),
    (lambda tmp: make_link(tmp / "x.nnd"), "is a symbolic link"),
    (lambda tmp: make_pipe(tmp / "x.nnd"), "is not a regular file"),
    (lambda tmp: (tmp / "file").write_bytes(OLD) and tmp / "file" / "x.nnd", "there is no folder"),
    (lambda tmp: tmp / ("x" * 300), "File name too long"),
    (lambda tmp: tmp / "x\0.nnd", "null (byte|character)"),
]


@pytest.mark.parametrize(("make", "message"), UNUSABLE, ids=[message for _, message in UNUSABLE])
def test_refuses_an_output_that_cannot_be_created(tmp_path, write, make, message) -> None:
    path = make(tmp_path)
    before = names_in(tmp_path)
    with pytest.raises(CannotCreateError, match=message) as caught:
        check_can_create(path)
    assert caught.value.exit_code == 73
    with pytest.raises(CannotCreateError, match=message):
        write(path)
    assert names_in(tmp_path) == before


def test_refuses_a_folder_that_is_not_writable(folder: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(CannotCreateError, match="is not writable"):
        write()
    assert_only(folder, None)


def test_refuses_a_folder_that_only_seems_writable(write: Write) -> None:
    for create in (check_can_create, write):
        with pytest.raises(CannotCreateError, match=r"cannot be created|is not writable"):
            create(Path("/proc/x.nnd"))


def test_what_a_killed_writer_left_is_removed_by_the_next(folder: Path, write: Write) -> None:
    left, held = (folder / f".nndeploy-{digit * 16}.tmp" for digit in "01")
    other = folder / ".nndeploy-notes.tmp"
    for path in (left, held, other):
        path.write_bytes(OLD)
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write()
    assert {path.name for path in folder.iterdir()} == {"out.nnd", held.name, other.name}


def test_checking_an_output_changes_nothing(folder: Path) -> None:
    check_can_create(folder / "out.nnd")
    assert_only(folder, None)
    (folder / "out.nnd").write_bytes(OLD)
    check_can_create(folder / "out.nnd")
    assert_only(folder, OLD)


def failing(name: str, code: int, at: int) -> Callable[..., Any]:
    """A stand-in for os.`name` that fails with `code` the `at`-th time."""
    real, count = getattr(os, name), iter(range(1, 1000))

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(count) == at:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    return call


@pytest.mark.parametrize("old", [None, OLD], ids=["no old file", "an old file"])
@pytest.mark.parametrize(("code", "error"), [
    (errno.ENOSPC, InputOutputError), (errno.EDQUOT, InputOutputError), (errno.EIO, InputOutputError),
    (errno.EACCES, CannotCreateError), (errno.EROFS, CannotCreateError),
], ids=lambda value: errno.errorcode.get(value, "") if isinstance(value, int) else value.__name__)  # fmt: skip
@pytest.mark.parametrize("call", ["open", "fsync", "rename"])
def test_a_failed_step_leaves_the_old_file_and_no_other(folder, write, monkeypatch, call, code, error, old) -> None:
    if old is not None:
        (folder / "out.nnd").write_bytes(old)
    name = "replace" if call == "rename" else call
    monkeypatch.setattr(os, name, failing(name, code, at=1))
    with pytest.raises(error, match=os.strerror(code)):
        write()
    assert_only(folder, old)


def test_a_full_disk_leaves_the_old_file_and_no_other(folder: Path, write: Write) -> None:
    """The limit on the size of files stands for the disk: the kernel cuts the write short, then refuses it."""
    (folder / "out.nnd").write_bytes(OLD)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputOutputError, match="File too large") as caught:
            write(add={"weights/w": bytes(1 << 20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.exit_code == 74
    assert_only(folder, OLD)


def test_a_failure_to_sync_the_folder_is_told_and_the_new_file_is_whole(folder, write, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", failing("fsync", errno.EIO, at=2))
    with pytest.raises(InputOutputError, match="perhaps not to stay"):
        write()
    open_bundle(folder / "out.nnd").verify()


def test_an_interrupt_leaves_the_old_file_and_no_other(folder, write, monkeypatch) -> None:
    (folder / "out.nnd").write_bytes(OLD)

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write()
    assert_only(folder, OLD)


KILLED_AT_A_CALL = """
    import os, signal, sys
    from pathlib import Path
    from nndeploy.bundle.manifest import Golden, Manifest
    from nndeploy.bundle.writer import write_bundle

    path, name, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
    real, count = getattr(os, name), iter(range(1, 1000))

    def killed(*args, **kwargs):
        if next(count) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, name, killed)
    write_bundle(path, Manifest("m", "0" * 64, (), (), (), {}), {"w/x": bytes(100000)}, {})
"""


STATES_AFTER_A_KILL = [
    ("open", 2, "old"),  # the folder's descriptor comes first
    ("fsync", 1, "old"), ("replace", 1, "old"), ("open", 3, "new"), ("fsync", 2, "new"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "at", "state"), STATES_AFTER_A_KILL)
def test_a_kill_leaves_the_old_file_or_the_new_one(folder: Path, call: str, at: int, state: str) -> None:
    path = folder / "out.nnd"
    path.write_bytes(OLD)
    script = textwrap.dedent(KILLED_AT_A_CALL)
    done = subprocess.run([sys.executable, "-c", script, path, call, str(at)], check=False)
    assert done.returncode == -signal.SIGKILL
    if state == "old":
        assert path.read_bytes() == OLD
    else:
        open_bundle(path).verify()
    assert [name for name in names_in(folder) if not name.startswith(".nndeploy-")] == ["out.nnd"]


def test_two_writers_at_once_leave_one_whole_bundle(folder: Path, write: Write, whole: bytes) -> None:
    def written(_: int) -> None:
        write(report={"model": "digits"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(written, range(20)))
    assert_only(folder, whole)
