# SPDX-License-Identifier: Apache-2.0
"""Reading only what is a file; writing whole files or none, and only where they belong."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from nndeploy.errors import CannotCreateError, InputError, InputOutputError, MissingInputError
from nndeploy.files.whole_files import (
    OutputFolder,
    discard_unfinished,
    make_folders,
    new_file,
    open_regular,
    opened_folder,
    read_regular,
    safe_stem,
    sweep_temporary,
    temporary_file,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_reads_a_file(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_regular(tmp_path / "a") == b"abc"


def test_a_missing_file_is_missing(tmp_path) -> None:
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "nul\0"):
        with pytest.raises(MissingInputError, match="no such file"):
            open_regular(path)


def test_a_pipe_does_not_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        open_regular(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        open_regular(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="has 1099511627776 bytes, more than 2147483648"):
        read_regular(tmp_path / "a")


def test_a_loop_of_links_is_one_line(tmp_path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(MissingInputError, match="cannot be read"):
        open_regular(tmp_path / "a")


@pytest.mark.parametrize(("text", "stem"), [
    ("a b", "a_b"), ("../../etc/passwd", ".._.._etc_passwd"), ("", "item"), ("\x1b[31m", "_31m"), ("ü" * 99, "_")
])  # fmt: skip
def test_stems_have_no_surprises(text, stem) -> None:
    assert safe_stem(text) == stem


def test_stems_are_short() -> None:
    assert len(safe_stem("a" * 4096)) == 80


def test_a_file_is_written_whole_or_not_at_all(tmp_path) -> None:
    folder = OutputFolder(tmp_path / "new")
    folder.write("a", lambda file: file.write(b"one"))
    assert (folder.path / "a").read_bytes() == b"one"

    def fail(file) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputOutputError, match="writing failed: No space left on device"):
        folder.write("a", fail)
    with pytest.raises(ZeroDivisionError):
        folder.write("b", lambda file: 1 / 0)
    assert names(folder.path) == ["a"]
    assert (folder.path / "a").read_bytes() == b"one"
    folder.close()
    folder.close()


def test_a_link_in_the_folder_is_replaced_and_not_followed(tmp_path) -> None:
    (tmp_path / "victim").write_text("safe")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "victim")
    OutputFolder(tmp_path / "out").write("a", lambda file: file.write(b"new"))
    assert (tmp_path / "victim").read_text() == "safe"
    assert (tmp_path / "out" / "a").read_bytes() == b"new"


def test_what_cannot_be_created_says_so(tmp_path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "a").mkdir(parents=True)
    with pytest.raises(CannotCreateError, match="the folder cannot be made"):
        OutputFolder(tmp_path / "file")
    with pytest.raises(CannotCreateError, match="the folder cannot be made"):
        OutputFolder(tmp_path / "file" / "below")
    with pytest.raises(CannotCreateError, match="Is a directory"):
        OutputFolder(tmp_path / "folder").create("a")
    assert names(tmp_path / "folder") == ["a"]


def test_removing_what_is_not_there_is_fine(tmp_path) -> None:
    folder = OutputFolder(tmp_path)
    (tmp_path / "a").touch()
    folder.remove("a")
    folder.remove("a")
    assert names(tmp_path) == []
    (tmp_path / "d").mkdir()
    with pytest.raises(InputOutputError, match="cannot be removed"):
        folder.remove("d")


def test_a_sweep_leaves_what_is_being_written_however_long_that_takes(tmp_path: Path) -> None:
    new, other = new_file(tmp_path / "slow.jsonl"), new_file(tmp_path / "other.jsonl")
    left = tmp_path / f".nndeploy-{'0' * 16}.tmp"
    left.write_bytes(b"left by a kill just now")
    with opened_folder(tmp_path) as folder:
        sweep_temporary(folder)
    assert not left.exists()
    new.finish()
    discard_unfinished()
    other.discard()
    assert names(tmp_path) == ["slow.jsonl"]


def test_what_is_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, removed = fcntl.flock, list[str]()

    def locked_late(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(names(tmp_path)[0])
            (tmp_path / removed[0]).unlink()
        real(descriptor, how)

    with opened_folder(tmp_path) as folder:
        monkeypatch.setattr(fcntl, "flock", locked_late)
        name, descriptor = temporary_file(folder)
    os.close(descriptor)
    assert names(tmp_path) == [name] != removed


def test_a_disk_that_fails_is_no_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes a missing file for none would forget what is in it."""

    def fails(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(InputOutputError, match="Input/output error"):
        open_regular(tmp_path / "x")


def test_folders_are_made_from_the_top(tmp_path: Path) -> None:
    make_folders(tmp_path / "a" / "b")
    make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"Not a directory|exists"):
        make_folders(tmp_path / "file")
