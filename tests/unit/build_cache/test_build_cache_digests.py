# SPDX-License-Identifier: Apache-2.0
"""Digests that are remembered are those of the files as they are."""

import hashlib
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from nndeploy.build_cache import file_digests
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.errors import MissingInputError


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour later: files that are made now have settled."""
    monkeypatch.setattr(file_digests.time, "time_ns", lambda: time.monotonic_ns() + (1 << 62))


@pytest.mark.usefixtures("now")
def test_a_file_that_was_not_touched_is_not_read_again(tmp_path: Path) -> None:
    path, kept = tmp_path / "x", tmp_path / "kept.json"
    path.write_bytes(b"content")
    first = FileDigests(kept)
    assert first.file(path) == hashlib.sha256(b"content").hexdigest()
    first.keep()
    path.chmod(0o000)
    path.chmod(0o644)  # its entry changed
    again = FileDigests(kept)
    text = kept.read_text().replace(hashlib.sha256(b"content").hexdigest(), "0" * 64)
    kept.write_text(text)
    assert again.file(path) == hashlib.sha256(b"content").hexdigest()


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize("how", ["content", "size", "replaced"])
def test_a_file_that_changed_is_read_again(tmp_path: Path, how: str) -> None:
    path, kept = tmp_path / "x", tmp_path / "kept.json"
    path.write_bytes(b"content")
    first = FileDigests(kept)
    first.file(path)
    first.keep()
    if how == "replaced":
        path.unlink()
    path.write_bytes(b"CONTENT" + b"!" * (how == "size"))
    assert FileDigests(kept).file(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_young_file_is_not_remembered(tmp_path: Path) -> None:
    path, kept = tmp_path / "x", tmp_path / "kept.json"
    path.write_bytes(b"content")
    digests = FileDigests(kept)
    digests.file(path)
    digests.keep()
    assert not kept.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": [1, 2]}', "\x00"])
def test_a_damaged_memory_is_none(tmp_path: Path, text: str) -> None:
    path, kept = tmp_path / "x", tmp_path / "kept.json"
    path.write_bytes(b"content")
    kept.write_text(text)
    assert FileDigests(kept).file(path) == hashlib.sha256(b"content").hexdigest()


def test_a_model_names_the_files_of_its_weights(tmp_path: Path) -> None:
    weight = helper.make_tensor("w", TensorProto.FLOAT, (2,), bytes(8), raw=True)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2,))], [weight],
    )  # fmt: skip
    model = helper.make_model(graph)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert FileDigests().model(tmp_path / "m.onnx").names == ("w.bin",)


def test_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        FileDigests().file(tmp_path / "none")
