# SPDX-License-Identifier: Apache-2.0
"""The kinds of sources of a pipeline: every file and line is one record or one error."""

import io
import os
import threading

import numpy as np
import pytest
from PIL import Image

from nndeploy.errors import InputError, MissingInputError, UsageError
from nndeploy.stream.sources.record_sources import FIELDS, record_source


def no_stdin():
    raise AssertionError("stdin is not read")


def source(kind, *texts, stdin=None):
    return record_source(kind, [str(text) for text in texts], (lambda: io.BytesIO(stdin)) if stdin else no_stdin)


def test_files_come_as_people_count(tmp_path) -> None:
    for name in ("a10.bin", "a2.bin", ".hidden"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "folder").mkdir()
    found = source("files", tmp_path)
    assert [(item.index, item.stem, item.load()) for item in found.items] == [
        (0, "a2", {"data": b"a2.bin"}),
        (1, "a10", {"data": b"a10.bin"}),
    ]
    assert (found.num_items, found.is_one) == (2, False)
    assert source("files", tmp_path / ".hidden").is_one


def test_images_are_taken_by_their_suffix(tmp_path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "x.PNG", "png")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    items = list(source("images", tmp_path / "*").items)
    assert [item.stem for item in items] == ["x"]
    assert items[0].load()["data"].startswith(b"\x89PNG")


def test_wav_gives_samples_and_rate(tmp_path, tone) -> None:
    (tmp_path / "a.wav").write_bytes(tone)
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    one, two = source("wav", tmp_path).items
    assert one.load()["rate"] == 8000
    assert one.load()["samples"].shape == (100,)
    with pytest.raises(InputError, match=r"b\.wav: is no WAV file"):
        two.load()


def test_arrays_are_read_under_their_names(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.float32(2))
    np.save(tmp_path / "b.npy", np.arange(4))
    one, two = source("arrays", tmp_path).items
    assert {name: value.tolist() for name, value in one.load().items()} == {"x": [0, 1, 2], "y": 2}
    assert two.load()["array"].tolist() == [0, 1, 2, 3]


def test_lines_of_files_and_stdin(tmp_path) -> None:
    (tmp_path / "a.txt").write_bytes("one\n\nzwö\n".encode())
    (tmp_path / "b.txt").write_bytes(b"\xff\n")
    items = list(source("lines", tmp_path / "a.txt", tmp_path / "b.txt").items)
    assert [item.index for item in items] == [0, 1, 2]
    assert [item.load()["text"] for item in items[:2]] == ["one", "zwö"]
    assert items[1].origin == f"{tmp_path}/a.txt, line 3"
    with pytest.raises(InputError, match="not UTF-8"):
        items[2].load()
    (item,) = source("json-lines", "-", stdin=b'{"a": [1, 2], "b": "x"}\n').items
    assert (item.origin, item.load()) == ("stdin, line 1", {"a": [1, 2], "b": "x"})


@pytest.mark.parametrize("is_pipe", [False, True])
@pytest.mark.parametrize("kind", ["files", "images", "wav", "lines"])
def test_a_kind_gives_the_fields_that_it_says(tmp_path, tone, kind, is_pipe) -> None:
    path = tmp_path / {"wav": "a.wav", "lines": "a.txt"}.get(kind, "a.png")
    if is_pipe:
        os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(tone if kind == "wav" else b"text",), daemon=True)
    writer.start()
    if not is_pipe:
        writer.join()
    found = source(kind, path)
    assert (found.paths is None) == is_pipe
    (item,) = found.items
    assert set(item.load()) == set(FIELDS[kind])


@pytest.mark.parametrize(("kind", "texts", "error", "message"), [
    ("picture", ["x"], UsageError, "no source is of the kind 'picture'"),
    ("imags", ["x"], UsageError, "did you mean 'images'"),
    ("images", [], UsageError, "no input"),
    ("images", ["-"], UsageError, "--input - goes alone"),
    ("lines", ["-", "x"], UsageError, "--input - goes alone"),
    ("files", ["/no/such"], MissingInputError, "/no/such: no such file or folder"),
    ("wav", ["/usr"], MissingInputError, r"/usr: holds no \.wav files"),
    ("wav", ["/usr/*.no"], MissingInputError, r"matches no \.wav files"),
])  # fmt: skip
def test_what_cannot_be_read_is_found_before_anything_runs(kind, texts, error, message) -> None:
    with pytest.raises(error, match=message):
        source(kind, *texts)
