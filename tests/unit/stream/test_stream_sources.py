# SPDX-License-Identifier: Apache-2.0
"""What the texts of --input stand for."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from nndeploy.errors import InputError, MissingInputError, UsageError
from nndeploy.stream.sources.sources import source_from_texts
from nndeploy.values.types import TensorType

F32 = TensorType("float32", None)


@pytest.fixture
def one(make_manifest):
    return make_manifest({"x": F32})


@pytest.fixture
def two(make_manifest):
    return make_manifest({"x": F32, "n": TensorType("int64", ())})


@pytest.fixture
def vision(make_manifest, digits):
    return make_manifest({"image": F32, "n": TensorType("int64", ())}, image=digits)


def source(texts, manifest, stdin=b"", **options):
    return source_from_texts([str(text) for text in texts], manifest, lambda: io.BytesIO(stdin), **options)


def items(texts, manifest, stdin=b"", **options):
    return list(source(texts, manifest, stdin, **options).items)


def save(path, value=1.0):
    if path.suffix == ".npz":
        np.savez(path, x=np.full(2, value, np.float32))
    elif path.suffix == ".npy":
        np.save(path, np.full(2, value, np.float32))
    else:
        Image.new("L", (3, 2), 255).save(path)
    return path


def test_files_are_items_in_the_order_given(tmp_path, one) -> None:
    b, a = save(tmp_path / "b.npz", 2), save(tmp_path / "a.npy", 1)
    found = items([b, a], one)
    assert [(item.index, item.origin, item.stem) for item in found] == [(0, str(b), "b"), (1, str(a), "a")]
    assert [item.load()["x"][0] for item in found] == [2, 1]


def test_a_single_file_is_one_item_and_a_folder_is_not(tmp_path, one) -> None:
    path = save(tmp_path / "a.npz")
    assert source([path], one).is_one
    assert not source([tmp_path], one).is_one
    assert source([tmp_path], one).num_items == 1
    assert not source([path, path], one).is_one


def test_folders_are_sorted_as_people_count(tmp_path, one) -> None:
    for name in ("a10.npz", "a9.npz", "b.npy", ".hidden.npz", "notes.txt"):
        save(tmp_path / name) if name != "notes.txt" else (tmp_path / name).touch()
    assert [item.stem for item in items([tmp_path], one)] == ["a9", "a10", "b"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path, one) -> None:
    path = save(tmp_path / "a[1].npz")
    assert [item.origin for item in items([path], one)] == [str(path)]


def test_named_inputs_make_one_item(tmp_path, two) -> None:
    path = save(tmp_path / "a.npy", 3)
    (item,) = items([f"x=@{path}", "n=7"], two)
    values = item.load()
    assert values["x"].tolist() == [3, 3]
    assert values["n"].tolist() == 7
    assert item.stem == "a"


def test_a_named_image(tmp_path, vision) -> None:
    (item,) = items([f"image=@{save(tmp_path / 'a.png')}", "n=1"], vision)
    assert item.load()["image"].shape == (1, 1, 2, 3)
    with pytest.raises(UsageError, match="images become the input 'image', not 'n'"):
        items([f"n=@{tmp_path / 'a.png'}"], vision)


def test_images_of_a_folder(tmp_path, vision) -> None:
    save(tmp_path / "a.png")
    save(tmp_path / "b.JPG")
    (tmp_path / "c.jpeg").write_bytes(b"no")
    found = items([tmp_path], vision)
    assert [item.stem for item in found] == ["a", "b", "c"]
    assert found[0].load()["image"].max() == 1
    with pytest.raises(InputError, match=r"c\.jpeg: "):
        found[2].load()


def test_stdin_holds_an_item_a_line(two) -> None:
    found = items(["-"], two, b'{"x": [1], "n": 2}\n\nbad\n{"x": [3]}')
    assert [(item.index, item.origin, item.stem) for item in found] == [
        (0, "stdin, line 1", "stdin-1"), (1, "stdin, line 3", "stdin-3"), (2, "stdin, line 4", "stdin-4"),
    ]  # fmt: skip
    assert found[0].load()["n"] == 2
    with pytest.raises(InputError, match="no JSON"):
        found[1].load()


def test_files_of_lines_and_other_files_are_counted_on(tmp_path, one) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": [1]}\n{"x": [2]}\n')
    (tmp_path / "empty.jsonl").touch()
    found = items([tmp_path / "a.jsonl", tmp_path / "empty.jsonl", save(tmp_path / "b.npy")], one)
    assert [(item.index, item.stem) for item in found] == [(0, "a-1"), (1, "a-2"), (2, "b")]


@pytest.mark.parametrize("text", ["nowhere.npz", "nowhere/", "nowhere-*.npz", "x=@nowhere.npy", "a" * 5000])
def test_what_is_missing_is_found_at_once(text, one, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError) as caught:
        source([text], one)
    assert caught.value.exit_code == 66


def test_an_empty_folder_is_missing_input(tmp_path, one) -> None:
    with pytest.raises(MissingInputError, match=r"holds no .npz, .npy"):
        source([tmp_path], one)


@pytest.mark.parametrize(("texts", "message"), [
    (["X=@a.npy"], "no input is named 'X'"), (["z=3", "x=1"], "no input is named 'z'"),
    (["x=1", "a.npz"], "goes with other NAME="), (["x=1", "x=2"], "each once"),
    (["-", "a.npz"], "goes with no other --input"), (["-", "-"], "goes with no other --input"),
    (["x=@a.txt"], "must be an .npy or image file"), (["x=@a.npz"], "must be an .npy or image file"),
    (["a.txt"], "cannot tell what 'a.txt' is"),
])  # fmt: skip
def test_texts_without_meaning_are_refused(texts, message, one, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    save(tmp_path / "a.npz")
    with pytest.raises(UsageError, match=message):
        source(texts, one)


def test_a_bare_array_needs_a_name_where_there_are_two_inputs(tmp_path, two) -> None:
    with pytest.raises(UsageError, match=r"say which one: --input x=@a.npy, n=@a.npy"):
        source([save(tmp_path / "a.npy")], two)


def test_a_value_that_is_no_json_is_bad_input(one) -> None:
    (item,) = items(["x=hello"], one)
    with pytest.raises(InputError, match=r"'hello' is no JSON.*a file is x=@FILE"):
        item.load()
    for text in ("x=[NaN]", "x=[1e400]", "x=[1e39]"):
        (item,) = items([text], one)
        with pytest.raises(InputError):
            item.load()
    (item,) = items(["x=[NaN]"], one, allow_nan=True)
    assert np.isnan(item.load()["x"]).all()


def test_a_pipe_in_a_folder_is_one_bad_item(tmp_path, one) -> None:
    os.mkfifo(tmp_path / "a.npz")
    save(tmp_path / "b.npz")
    first, second = items([tmp_path], one)
    with pytest.raises(InputError, match="is not a regular file"):
        first.load()
    assert second.load()["x"].shape == (2,)


def test_names_that_are_no_text_are_read(tmp_path, one) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.npz")
    save(path)
    (item,) = items([tmp_path], one)
    assert item.load()["x"].shape == (2,)
