# SPDX-License-Identifier: Apache-2.0
"""A full disk below the temporary folders is one error, of whoever meets it: no backend refuses because of it."""

import errno
import stat
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from nndeploy.errors import BuildRefusedError, CannotCreateError, InputOutputError, lacks_space
from nndeploy.jobs import main, messages
from nndeploy.jobs.child import Child
from nndeploy.jobs.messages import Request, response_from_folder
from nndeploy.jobs.temporary import is_nearly_full, temporary_folder

REQUEST = Request("supports", {"backend": "any"})


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def refused_as_full(*_: object) -> None:
    try:
        full()
    except OSError as err:
        raise BuildRefusedError("the library cannot write its file") from err


def test_a_disk_that_runs_full_while_a_folder_is_used_says_so_and_the_folder_goes(tmp_path: Path) -> None:
    with pytest.raises(InputOutputError), temporary_folder("x-", inside=str(tmp_path)):
        full()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IsADirectoryError), temporary_folder("x-") as folder:
        folder.read_bytes()


@pytest.mark.parametrize("number", [errno.EIO, errno.EINTR])
def test_a_disk_that_fails_while_a_folder_is_used_is_no_bug_of_ours(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(InputOutputError, match="the disk of the temporary files has failed"),
        temporary_folder("x-", inside=str(tmp_path)),
    ):
        raise OSError(number, "it fails")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(CannotCreateError, match=r"cannot create a temporary folder: No such file .*TMPDIR"):
        temporary_folder("x-").__enter__()
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(InputOutputError):
        temporary_folder("x-").__enter__()


def refused_in_words(*_: object) -> None:
    raise RuntimeError("[Errno 28] No space left on device: 'x'")


@pytest.mark.parametrize("task", [full, refused_as_full, refused_in_words])
def test_a_task_that_finds_the_disk_full_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(messages, "request_from_folder", task)
    main.perform_in(tmp_path)
    with pytest.raises(InputOutputError):
        response_from_folder(tmp_path)


def test_a_child_that_cannot_write_its_answer_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nread folder\necho no space\nsleep 100\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(fake))
    with closing(Child()) as process, pytest.raises(InputOutputError):
        process.call(REQUEST, 10.0)


def test_other_errors_lack_no_space() -> None:
    assert not lacks_space(BuildRefusedError("no"))
    assert not lacks_space(FileNotFoundError(errno.ENOENT, "no such file"))


@pytest.mark.parametrize("ends", ["exit 1", "kill -BUS $$"])
def test_a_library_that_fails_where_no_space_is_left_is_not_believed(tmp_path, monkeypatch, ends) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nread folder\n{ends}\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(fake))
    with closing(Child()) as process, pytest.raises(BuildRefusedError):
        process.call(REQUEST, 10.0)
    monkeypatch.setattr("nndeploy.jobs.child.is_nearly_full", lambda *_: True)
    with closing(Child()) as process, pytest.raises(InputOutputError):
        process.call(REQUEST, 10.0)


def test_a_disk_is_nearly_full_where_copies_of_the_model_do_not_fit(tmp_path: Path) -> None:
    assert not is_nearly_full(str(tmp_path))
    assert is_nearly_full(str(tmp_path), 1 << 60)


def test_an_error_that_comes_of_itself_is_looked_at_once() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert not lacks_space(first)
