# SPDX-License-Identifier: Apache-2.0
"""read: a file that a record names, below one folder; nothing outside of it is ever opened, whatever the name is."""

import os
import random
import socket
from pathlib import Path

import pytest

from nndeploy.errors import DataError, InputError, MissingInputError, NndeployError, PolicyError, UsageError
from nndeploy.files import confined_file
from nndeploy.files.confined_file import read_confined
from nndeploy.processors.parameters import FilesBeside, no_files
from nndeploy.processors.registry import processor_from_table

SECRET = b"secret"


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with files, and around it what must not be read."""
    (tmp_path / "secret").write_bytes(SECRET)
    inside = tmp_path / "in"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "x").write_bytes(b"x")
    (inside / "a" / "b" / "y z.é").write_bytes(b"yz")
    (inside / "a" / "large").write_bytes(bytes(2000))
    (inside / "link").symlink_to("x")
    (inside / "out").symlink_to(tmp_path / "secret")
    (inside / "up").symlink_to("..")
    (inside / "loop").symlink_to("loop")
    (inside / "dangling").symlink_to("absent")
    os.mkfifo(inside / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(inside / "socket"))
    return inside


def step(folder, **table):
    beside = FilesBeside(no_files, folder.parent)
    return processor_from_table({"use": "read", "folder": folder.name, **table}, "p.toml: step", beside)


def test_a_file_below_the_folder_is_read(folder) -> None:
    read = step(folder)
    assert read({"name": "x"}) == {"data": b"x"}
    assert read({"name": "a/b/y z.é"}) == {"data": b"yz"}
    assert len(read({"name": "a/large"})["data"]) == 2000


def test_the_folder_itself_may_be_a_link(folder) -> None:
    (folder.parent / "alias").symlink_to(folder)
    assert step(folder.parent / "alias")({"name": "x"}) == {"data": b"x"}


@pytest.mark.parametrize(("name", "message"), [
    ("../secret", "'../secret' is outside the folder"), ("a/../../secret", "is outside the folder"),
    ("a/..", "is outside the folder"), ("..", "is outside the folder"), ("/etc/passwd", "'/etc/passwd' is absolute"),
    ("//etc/passwd", "is absolute"), ("./x", "is not a plain name"), ("a//large", "is not a plain name"),
    ("x/", "is not a plain name"), ("", "'' is not a file name"), ("x\0", "is not a file name"),
    ("x\0/../../secret", "is not a file name"), ("\ud800", "is not a file name"),
    ("a/" * 3000 + "x", "is not a file name"), ("link", "'link' is a symbolic link, which is not followed"),
    ("out", "'out' is a symbolic link, which is not followed"),
    ("up/secret", "'up' is a symbolic link, which is not followed"),
    ("up/in/x", "'up' is a symbolic link, which is not followed"), ("loop", "is a symbolic link"),
    ("dangling", "is a symbolic link"), ("fifo", "is not a regular file"), ("socket", "is not a regular file"),
    ("a", "is not a regular file"), (b"x", "the name of a file is a text, this is a bytes"),
    (None, "this is a NoneType"), (["x"], "this is a list"), (Path("x"), "this is a "),
])  # fmt: skip
def test_a_hostile_name_is_the_error_of_its_record(folder, name, message) -> None:
    with pytest.raises(InputError) as caught:
        step(folder)({"name": name})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent", "a/absent", "x/y", "absent/x", "a/" * 200 + "x", "y" * 300])
def test_a_file_that_is_not_there_is_missing(folder, name) -> None:
    with pytest.raises(MissingInputError):
        step(folder)({"name": name})


def test_devices_are_refused() -> None:
    with pytest.raises(InputError, match="is not a regular file"):
        read_confined(Path("/dev"), "zero", 100)


def test_a_file_larger_than_the_limit_is_refused(folder) -> None:
    assert step(folder, **{"max-bytes": 2000})({"name": "a/large"})
    with pytest.raises(InputError, match="has 2000 bytes, more than 1999"):
        step(folder, **{"max-bytes": 1999})({"name": "a/large"})


def test_a_file_that_grows_while_it_is_read_costs_no_more_than_the_limit(folder, monkeypatch) -> None:
    real = os.fstat

    def smaller(descriptor):
        found = list(real(descriptor))
        found[6] = 1
        return os.stat_result(found)

    monkeypatch.setattr(confined_file.os, "fstat", smaller)
    with pytest.raises(InputError, match="has more than 100 bytes"):
        read_confined(folder, "a/large", 100)


def test_names_made_of_anything_never_give_what_lies_outside(folder) -> None:
    dice = random.Random(11)  # noqa: S311 - no secret
    pieces = [
        "..", ".", "/", "//", "a", "b", "x", "in", "up", "out", "link", "secret", "\0", "é", " ", "~", "\\", "%2e",
    ]  # fmt: skip
    num_read = 0
    for _ in range(3000):
        name = "".join(dice.choice([*pieces, "/", "/"]) for _ in range(dice.randint(1, 7)))
        try:
            data = read_confined(folder, name, 10_000)
        except NndeployError:
            continue
        num_read += 1
        assert data in (b"x", b"yz")
        assert Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder))
    assert num_read > 10


@pytest.mark.parametrize("moment", range(4))
@pytest.mark.parametrize("swapped", ["d", "d/e", "d/e/f"])
def test_a_part_that_is_swapped_for_a_link_meanwhile_gives_nothing_from_outside(
    folder, monkeypatch, moment, swapped
) -> None:
    outside = folder.parent / "elsewhere"
    for top, content in ((outside, SECRET), (folder, b"inside")):
        (top / "d" / "e").mkdir(parents=True)
        (top / "d" / "e" / "f").write_bytes(content)
    real, num_opened = os.open, 0

    def opened(*arguments, **options):
        nonlocal num_opened
        if num_opened == moment:
            (folder / swapped).rename(folder.parent / "taken away")
            (folder / swapped).symlink_to(outside / swapped)
        num_opened += 1
        return real(*arguments, **options)

    monkeypatch.setattr(confined_file.os, "open", opened)
    try:
        data = read_confined(folder, "d/e/f", 100)
    except NndeployError:
        data = b"refused"
    assert data in (b"inside", b"refused")
    assert num_opened > moment


def test_no_descriptor_is_left_open(folder) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("x", "a/b/y z.é", "../secret", "up/secret", "fifo", "absent", "a/absent/x", "a"):
        try:
            read_confined(folder, name, 100)
        except NndeployError:
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("value", "is_carried", "error", "message"), [
    ("absent", False, MissingInputError, "p.toml: step: read: folder"),
    ("absent", True, MissingInputError, "no such folder"),
    ("x.toml", False, MissingInputError, "no such folder"),
    ("/", True, PolicyError, "the folder '/' lies elsewhere"),
    ("../in", True, PolicyError, "the folder '../in' lies elsewhere"),
    ("in/../..", True, PolicyError, "lies elsewhere"),
    ("", False, DataError, "folder: must be the name of a folder, is ''"),
    (3, False, DataError, "folder: must be the name of a folder, is 3"),
])  # fmt: skip
def test_a_folder_that_cannot_be_is_found_before_anything_runs(folder, value, is_carried, error, message) -> None:
    (folder.parent / "x.toml").write_text("x", encoding="utf-8")
    beside = FilesBeside(no_files, folder.parent, is_carried=is_carried)
    with pytest.raises(error) as caught:
        processor_from_table({"use": "read", "folder": value}, "p.toml: step", beside)
    assert message in str(caught.value)


def test_a_bundle_is_made_where_the_folder_is_not(tmp_path) -> None:
    beside = FilesBeside(no_files, tmp_path, is_carried=True, is_here=False)
    assert processor_from_table({"use": "read", "folder": "later"}, "p.toml", beside).gives == ("data",)


def test_without_a_file_there_is_no_folder() -> None:
    with pytest.raises(UsageError, match="cannot be found here"):
        processor_from_table({"use": "read", "folder": "x"}, "p.toml: step")


def test_text_is_decoded() -> None:
    decode = processor_from_table({"use": "decode-text", "strip": True}, "p.toml")
    assert decode({"data": b"\xef\xbb\xbf zw\xc3\xb6\n"}) == {"text": "zwö"}
    assert processor_from_table({"use": "decode-text"}, "p.toml")({"data": b" a\n"}) == {"text": " a\n"}
    with pytest.raises(InputError, match="byte 1 is 0xff"):
        decode({"data": b"a\xff"})
    with pytest.raises(InputError, match="data must be bytes, this is a str"):
        decode({"data": "a"})
