# SPDX-License-Identifier: Apache-2.0
"""External tensors: what is read, and that no path leaves the model's folder."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from frontend_builders import model

from nndeploy.errors import ModelError, NndeployError
from nndeploy.frontend.external_data import embed_external_data, tensors_of
from nndeploy.frontend.load import load_model
from nndeploy.onnx_gate.gate import check_bytes

VALUES = np.arange(6, dtype=np.float32)


def external_model(*more: tuple[str, str], **entries: str | None) -> onnx.ModelProto:
    """Returns a model whose weight `w` (6 floats) lies in weights.bin; an entry of None is left out."""
    proto = model("g (float[6] x) => (float[6] y) <float[6] w = {0,0,0,0,0,0}> { y = Add(x, w) }")
    weight = proto.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": "weights.bin", "offset": "0", "length": "24"} | entries
    for key, value in (*entries.items(), *more):
        if value is not None:
            weight.external_data.add(key=key, value=value)
    return proto


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with good weights, beside a secret that no model may read."""
    inner = tmp_path / "model"
    inner.mkdir()
    (inner / "weights.bin").write_bytes(VALUES.tobytes())
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    return inner


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that `os.open` was asked for."""
    names: list[str] = []
    real = os.open

    def spy(path: str, *args: int, **options: int) -> int:
        names.append(os.fspath(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", spy)
    return names


def refusal(proto: onnx.ModelProto, folder: Path | None, exit_code: int, words: str) -> NndeployError:
    check_bytes(proto.SerializeToString())  # whatever is refused here has passed the gate
    with pytest.raises(NndeployError) as caught:
        embed_external_data(proto, folder)
    assert caught.value.exit_code == exit_code
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


def embedded(proto: onnx.ModelProto, folder: Path) -> list[bytes]:
    """Returns the data of initializers once those outside are embedded."""
    embed_external_data(proto, folder)
    return [tensor.raw_data for tensor in proto.graph.initializer]


def test_puts_the_data_into_the_tensor(folder: Path) -> None:
    proto = external_model()
    (tensor,) = embed_external_data(proto, folder)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(proto.graph.initializer[0]), VALUES)
    assert tensor.raw_data == VALUES.tobytes()
    assert (list(tensor.external_data), tensor.data_location) == ([], onnx.TensorProto.DEFAULT)


def test_a_model_without_external_data_needs_no_folder() -> None:
    assert embed_external_data(model("g (float[1] x) => (float[1] y) { y = Relu(x) }"), None) == []


def test_offset_and_length_may_be_missing_when_the_file_is_the_tensor(folder: Path) -> None:
    assert embedded(external_model(offset=None, length=None), folder) == [VALUES.tobytes()]


def test_reads_at_an_offset_and_several_tensors_of_one_file(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"\0" * 8 + VALUES.tobytes() + b"\1" * 24)
    proto = external_model(offset="8")
    second = proto.graph.initializer.add()
    second.CopyFrom(proto.graph.initializer[0])
    second.name = "v"
    second.external_data[1].value = "32"
    assert embedded(proto, folder) == [VALUES.tobytes(), b"\1" * 24]


@pytest.mark.parametrize("location", ["sub/weights.bin", "./sub/./weights.bin"])
def test_reads_from_folders_inside(folder: Path, location: str) -> None:
    (folder / "sub").mkdir()
    (folder / "weights.bin").rename(folder / "sub" / "weights.bin")
    embed_external_data(external_model(location=location), folder)


def test_finds_tensors_everywhere() -> None:
    proto = model(
        """g (float[2] x, bool c) => (float[2] y) <float[2] a = {1,1}> { k = Constant <value = float[2] {2,2}> ()
            y = If(c) <
                then_branch = t () => (float[2] p) <float[2] d = {3,3}> {
                    e = Constant <value = float[2] {4,4}> ()  p = Add(d, e) },
                else_branch = f () => (float[2] q) { q = local.f(x) }> }
        <domain: "local", opset_import: ["" : 17]> f (i) => (o) {
            z = Constant <value = float[2] {5,5}> ()  o = Add(i, z) }""",
        '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n',
    )
    sparse = proto.graph.sparse_initializer.add()
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.array([6, 6], np.float32)))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.array([7, 8])))
    first = sorted(float(onnx.numpy_helper.to_array(t).flat[0]) for t in tensors_of(proto))
    assert first == [1, 2, 3, 4, 5, 6, 7]


def test_without_a_folder_external_data_are_refused(folder: Path) -> None:
    refusal(external_model(), None, 65, "no folder to find it in")
    refusal(external_model(), folder / "none", 74, "the model's folder cannot be read")


@pytest.mark.parametrize(("location", "words"), [
    ("../secret.bin", "leaves the model's folder"), ("a/../../secret.bin", "leaves the model's folder"),
    ("weights.bin/..", "leaves the model's folder"), ("..", "leaves the model's folder"),
    ("/etc/passwd", "an absolute path"), ("//etc/passwd", "an absolute path"),
    ("..\\secret.bin", "a backslash or a NUL"), ("C:\\secret.bin", "a backslash or a NUL"),
    ("weights.bin\0.txt", "a backslash or a NUL"), ("", "not a file name"), (".", "not a file name"),
    ("a//b", "not a file name"), ("a/", "not a file name"), ("*/_ORT_MEM_ADDR_/*", "an address in memory"),
])  # fmt: skip
def test_a_location_that_could_leave_is_refused_before_anything_is_opened(
    folder: Path, opened: list[str], location: str, words: str
) -> None:
    assert "tensor 'w'" in refusal(external_model(location=location), folder, 77, words).where
    assert opened == []


LINK = "is a symbolic link (hint: copy the file itself into the model's folder)"


@pytest.mark.parametrize(("make", "location", "words"), [
    (lambda f: (f / "link.bin").symlink_to("weights.bin"), "link.bin", LINK),
    (lambda f: (f / "link.bin").symlink_to("../secret.bin"), "link.bin", LINK),
    (lambda f: (f / "sub").symlink_to(".."), "sub/secret.bin", LINK),
    (lambda f: (f / "it").hardlink_to(f.parent / "secret.bin"), "it", "hard link"),
    (lambda f: os.mkfifo(f / "it"), "it", "not a regular file"),
    (lambda f: (f / "it").mkdir(), "it", "not a regular file"),
    (lambda f: None, "weights.bin/w", "not a folder"),
])  # fmt: skip
def test_what_is_no_file_of_its_own_is_refused_without_waiting(
    folder: Path, opened: list[str], make: Callable[[Path], None], location: str, words: str
) -> None:
    make(folder)
    refusal(external_model(location=location), folder, 77, words)
    assert words != "not a regular file" or "it" not in opened


@pytest.mark.parametrize(("make", "words"), [
    (lambda place: place.symlink_to("../secret.bin"), "was replaced while it was opened"),
    (os.mkfifo, "not a regular file"),
])  # fmt: skip
def test_what_appears_between_look_and_open_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], words: str
) -> None:
    make(folder / "it")
    regular = (folder / "weights.bin").stat()
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)  # what was there when we looked
    refusal(external_model(location="it"), folder, 77, words)


@pytest.mark.parametrize(("key", "value", "words"), [
    ("offset", "-1", "offset of external data is '-1'"), ("offset", "1", "ends at byte 25 of a file of 24"),
    ("offset", str((1 << 63) - 1), "of a file of 24"), ("offset", str(1 << 63), "past the end of any file"),
    ("offset", "9" * 5000, "offset of external data is '999"), ("offset", "abc", "offset of external data is 'abc'"),
    ("offset", "", "offset of external data is ''"), ("offset", "1.5", "offset of external data is '1.5'"),
    ("offset", "\u0664", "offset of external data is"), ("length", "-24", "length of external data is '-24'"),
    ("length", "0", "have 0 bytes, but the tensor needs 24"),
    ("length", "25", "have 25 bytes, but the tensor needs 24"),
    ("length", str(1 << 62), "but the tensor needs 24"), ("size", "24", "unknown key 'size' of external data"),
    ("location", None, "the external data name no file"), ("location", "a" * 300, ""),
    ("checksum", "0" * 40, "the file's checksum is"),
])  # fmt: skip
def test_a_wrong_entry_is_refused(folder: Path, key: str, value: str | None, words: str) -> None:
    refusal(external_model(**{key: value}), folder, 65, words)


def test_what_does_not_fit_the_file_is_refused(folder: Path) -> None:
    refusal(external_model(location="other.bin"), folder, 66, "'other.bin'")
    refusal(external_model(("location", "other.bin")), folder, 65, "have the key 'location' twice")
    proto = external_model(length=None)
    proto.graph.initializer[0].dims[:] = [1 << 28]  # more than there is, before memory is taken
    refusal(proto, folder, 65, "ends at byte 1073741824 of a file of 24")
    (folder / "weights.bin").write_bytes(b"\0" * 25)
    refusal(external_model(length=None), folder, 65, "names no length")


def test_a_right_checksum_passes(folder: Path) -> None:
    digest = hashlib.sha1(VALUES.tobytes(), usedforsecurity=False).hexdigest()
    assert embedded(external_model(checksum=digest.upper()), folder) == [VALUES.tobytes()]


def test_a_file_that_changes_or_fails_while_it_is_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread

    def grow_and_read(fd: int, num_bytes: int, offset: int) -> bytes:
        with (folder / "weights.bin").open("ab") as file:
            file.write(b"more")
        return real(fd, num_bytes, offset)

    def fail(*_: int) -> bytes:
        raise OSError(5, "Input/output error")

    for read, exit_code, words in (
        (lambda *_: b"", 65, "became shorter while it was read"), (fail, 74, ""),
        (grow_and_read, 65, "changed while it was read"),
    ):  # fmt: skip
        monkeypatch.setattr(os, "pread", read)
        refusal(external_model(), folder, exit_code, words)


def test_short_reads_are_continued(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, num_bytes, offset: real(fd, min(num_bytes, 5), offset))
    assert embedded(external_model(), folder) == [VALUES.tobytes()]


def test_no_descriptor_stays_open(folder: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    embed_external_data(external_model(), folder)
    for location, exit_code in (("../secret.bin", 77), ("none.bin", 66), ("weights.bin/w", 77)):
        refusal(external_model(location=location), folder, exit_code, "")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_finds_its_data_beside_it_and_both_are_hashed(folder: Path) -> None:
    path = folder / "m.onnx"
    path.write_bytes(external_model().SerializeToString())
    loaded = load_model(path)
    assert loaded.sha256 == hashlib.sha256(path.read_bytes() + VALUES.tobytes()).hexdigest()
    np.testing.assert_array_equal(loaded.model.graph.initializers["w"].const_value.numpy(), VALUES)


def test_a_model_from_memory_needs_a_folder(folder: Path) -> None:
    with pytest.raises(ModelError, match="no folder to find it in"):
        load_model(external_model())
    assert load_model(external_model(), folder=folder).inputs[0].name == "x"


def test_the_onnx_library_never_resolves_a_path(folder: Path, opened: list[str]) -> None:
    path = folder / "m.onnx"
    path.write_bytes(external_model().SerializeToString())
    loaded = load_model(path)
    assert [Path(name).name for name in opened] == ["m.onnx", "model", "weights.bin"]
    assert all(not t.external_data for t in tensors_of(loaded.original))
