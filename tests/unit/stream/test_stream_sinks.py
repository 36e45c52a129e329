# SPDX-License-Identifier: Apache-2.0
"""Where outcomes go: whole files or none, and lines."""

import io
import json

import numpy as np
import pytest

from nndeploy.errors import CannotCreateError, InputError, InputOutputError, UsageError
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.sinks import sink_from_text
from nndeploy.values.types import TensorType


def done(index=0, stem="a", value=1.0):
    return Outcome(index, f"{stem}.npz", stem, {"y": np.full(2, value, np.float32)})


def failed(index=0, stem="a"):
    return Outcome(index, f"{stem}.npz", stem, None, InputError("bad"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def sink(make_manifest, digits):
    def sink(text, stdout=None):
        manifest = make_manifest({"image": TensorType("float32", None)}, image=digits)
        return sink_from_text(None if text is None else str(text), manifest, stdout or io.StringIO())

    return sink


def test_a_folder_has_one_file_an_item(tmp_path, sink) -> None:
    out = sink(tmp_path / "out")
    out.write(done(0, "a"))
    out.write(failed(1, "../b c"))
    out.finish()
    assert names(tmp_path / "out") == ["000000_a.npz", "000001_.._b_c.error.json"]
    assert np.load(tmp_path / "out" / "000000_a.npz")["y"].tolist() == [1, 1]
    record = json.loads((tmp_path / "out" / "000001_.._b_c.error.json").read_text())
    assert record == {"index": 1, "origin": "../b c.npz", "error": {"code": "bad-input", "message": "bad"}}


def test_a_second_run_replaces_what_the_first_left(tmp_path, sink) -> None:
    for outcome, left in ((done(), "000000_a.npz"), (failed(), "000000_a.error.json"), (done(), "000000_a.npz")):
        out = sink(tmp_path)
        out.write(outcome)
        out.discard()
        assert names(tmp_path) == [left]


def test_one_npz_holds_one_item(tmp_path, sink) -> None:
    out = sink(tmp_path / "y.npz")
    out.write(done())
    with pytest.raises(UsageError, match="holds the outputs of one item"):
        out.write(done(1))
    out.finish()
    assert names(tmp_path) == ["y.npz"]
    assert np.load(tmp_path / "y.npz")["y"].tolist() == [1, 1]


def test_an_npz_appears_only_at_the_end(tmp_path, sink) -> None:
    (tmp_path / "y.npz").write_bytes(b"old")
    out = sink(tmp_path / "y.npz")
    out.write(done())
    assert (tmp_path / "y.npz").read_bytes() == b"old"
    out.discard()
    assert names(tmp_path) == ["y.npz"]
    assert (tmp_path / "y.npz").read_bytes() == b"old"


def test_lines_go_out_one_by_one(sink) -> None:
    stream = io.StringIO()
    out = sink("-", stream)
    out.write(done(value=0.5))
    out.write(failed(1))
    out.finish()
    out.discard()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["outputs"] == {"y": [0.5, 0.5]}
    assert (first["label"], first["probability"]) == ("no", 0.5)
    assert second["error"]["code"] == "bad-input"


def test_a_file_of_lines_appears_at_the_end(tmp_path, sink) -> None:
    out = sink(tmp_path / "y.jsonl")
    out.write(done())
    out.write(failed(1))
    assert "y.jsonl" not in names(tmp_path)
    out.finish()
    assert len((tmp_path / "y.jsonl").read_text().splitlines()) == 2
    sink(tmp_path / "z.jsonl").discard()
    assert names(tmp_path) == ["y.jsonl"]


@pytest.mark.parametrize("text", ["file/y.npz", "file/", "file/y.jsonl", "/proc/nowhere/y.npz", "/proc/nowhere/"])
def test_what_cannot_be_created_is_found_before_anything_runs(tmp_path, sink, monkeypatch, text) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreateError) as caught:
        sink(text)
    assert caught.value.exit_code == 73


def test_other_endings_are_refused_unless_they_name_a_folder(tmp_path, sink, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"cannot tell what 'y.txt' should be"):
        sink("y.txt")
    sink("y.txt/").finish()
    sink("y.txt").finish()
    assert names(tmp_path) == ["y.txt"]


def test_a_full_disk_is_an_io_error(tmp_path, sink, monkeypatch) -> None:
    def full(file, values):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nndeploy.stream.sinks.sinks.write_npz", full)
    for text in (tmp_path / "y.npz", tmp_path / "folder"):
        out = sink(text)
        with pytest.raises(InputOutputError, match="No space left"):
            out.write(done())
        out.discard()
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == []
