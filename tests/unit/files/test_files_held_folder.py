# SPDX-License-Identifier: Apache-2.0
"""Folders that killed processes left are removed by the next one; those of the living and of others are not."""

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from nndeploy.files import held_folder
from nndeploy.files.held_folder import HeldFolder

MAKER = """
from nndeploy.files.held_folder import HeldFolder
folder = HeldFolder("x")
(folder.path / "file").write_text("large")
print(folder.path, flush=True)
input()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for temporary ones."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(held_folder, "_swept", set())
    return tmp_path


def started(temporary: Path) -> tuple["subprocess.Popen[str]", Path]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen([sys.executable, "-c", MAKER], stdin=pipe, stdout=pipe, text=True, env=environment)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(temporary: Path) -> None:
    killed, left = started(temporary)
    living, kept = started(temporary)
    with killed, living:
        killed.kill()
        killed.wait()
        assert left.is_dir()
        with HeldFolder("y") as own:
            assert own.is_dir()
            assert not left.exists()
            assert (kept / "file").read_text() == "large"
        assert not own.exists()
        living.communicate("\n")
    assert list(temporary.iterdir()) == []


def test_nothing_else_is_swept(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere/file").touch()
    names = ("nndeploy-compile-abc", "other-abc.held", "nndeploy-shared.held")
    for name in names:
        (temporary / name).mkdir(mode=0o700)
    (temporary / "nndeploy-shared.held").chmod(0o755)
    (temporary / "nndeploy-link.held").symlink_to(temporary / "elsewhere")
    (temporary / "nndeploy-file.held").touch(mode=0o600)
    HeldFolder("x").close()
    assert {path.name for path in temporary.iterdir()} == {
        "elsewhere", *names, "nndeploy-link.held", "nndeploy-file.held"
    }  # fmt: skip
    assert (temporary / "elsewhere/file").exists()


def test_folders_of_other_users_stay(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "nndeploy-theirs.held").mkdir(mode=0o700)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    HeldFolder("x").close()
    assert (temporary / "nndeploy-theirs.held").exists()


def test_age_does_not_count(temporary: Path) -> None:
    living, kept = started(temporary)
    with living:
        os.utime(kept, (0, 0))
        HeldFolder("x").close()
        assert kept.exists()
        living.kill()
    (temporary / "nndeploy-left.held").mkdir(mode=0o700)
    os.utime(temporary / "nndeploy-left.held", (time.time() + 9999,) * 2)
    held_folder._swept.clear()
    HeldFolder("x").close()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(temporary, monkeypatch) -> None:
    real, made = tempfile.mkdtemp, []

    def swept_at_once(*arguments: str) -> str:
        made.append(real(*arguments))
        if len(made) == 1:
            held_folder._remove_if_left(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_once)
    with HeldFolder("x") as folder:
        assert len(made) == 2
        assert folder == Path(made[1])
        assert folder.is_dir()
    assert list(temporary.iterdir()) == []


def test_a_disk_that_fails_while_a_folder_goes_raises_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, real = HeldFolder("x"), os.close

    def failing(descriptor: int) -> None:
        real(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", failing)
        held.close()
    assert list(temporary.iterdir()) in ([], [held.path])


def test_a_process_that_was_forked_off_removes_nothing(temporary: Path) -> None:
    folder = HeldFolder("x")
    pid = os.getpid()
    held_folder._let_go(str(folder.path), os.dup(0), pid + 1)
    assert folder.path.is_dir()
    folder.close()
    assert not folder.path.exists()
    folder.close()
