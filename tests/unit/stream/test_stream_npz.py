# SPDX-License-Identifier: Apache-2.0
"""Values by name in npz files: they come back as they went, and hostile archives are refused."""

import io
import random
import zipfile

import ml_dtypes
import numpy as np
import pytest

from nndeploy.errors import DataError, InputError, MissingInputError
from nndeploy.stream.formats import npz
from nndeploy.stream.formats.npz import read_npy_file, read_npz_file, write_npz
from nndeploy.values.types import MapType, OptionalType, SequenceType, TensorType

F32 = TensorType("float32", None)


def written(values) -> bytes:
    file = io.BytesIO()
    write_npz(file, values)
    return file.getvalue()


def read(tmp_path, data: bytes, types=None):
    (tmp_path / "x.npz").write_bytes(data)
    return read_npz_file(tmp_path / "x.npz", types or {"x": F32})


def zipped(members, **options) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_saves(tmp_path, save) -> None:
    save(tmp_path / "x.npz", **{"a/b:0": np.ones((2, 3), np.float32), "t": np.array(["a", "b"])})
    found = read_npz_file(tmp_path / "x.npz", {"a/b:0": F32})
    assert found["a/b:0"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert found["t"].tolist() == ["a", "b"]


def test_every_kind_of_value_comes_back(tmp_path) -> None:
    values = {
        "file": np.ones(2, np.float32), "bf16": np.array([1.5, 2], ml_dtypes.bfloat16),
        "int4": np.array([-8, 7], ml_dtypes.int4), "many": [np.zeros(1, np.float32), np.zeros((2, 2), np.float32)],
        "none": [], "rows": [{1: np.float32(0.5), 2: np.float32(1)}, {3: np.float32(2)}], "absent": None,
        "text": np.array(["a", "b"], object),
    }  # fmt: skip
    types = {
        "file": F32, "bf16": TensorType("bfloat16", (2,)), "int4": OptionalType(TensorType("int4", (2,))),
        "many": SequenceType(F32), "none": SequenceType(F32), "rows": SequenceType(MapType("int64", F32)),
        "absent": OptionalType(F32), "text": TensorType("string", None),
    }  # fmt: skip
    found = read(tmp_path, written(values), types)
    assert "absent" not in found
    assert found["bf16"].dtype == ml_dtypes.bfloat16
    assert found["int4"].dtype == ml_dtypes.int4
    assert [item.shape for item in found["many"]] == [(1,), (2, 2)]
    assert found["none"] == []
    assert found["rows"] == values["rows"]
    assert found["text"].tolist() == ["a", "b"]
    assert found["file"].tolist() == [1, 1]


def test_numpy_reads_what_is_written() -> None:
    found = np.load(io.BytesIO(written({"y": np.arange(3), "s": [np.ones(2)]})), allow_pickle=False)
    assert found["y"].tolist() == [0, 1, 2]
    assert found["s[0]"].tolist() == [1, 1]


def test_the_same_values_give_the_same_bytes() -> None:
    assert written({"y": np.arange(3)}) == written({"y": np.arange(3)})


def test_names_that_collide_are_refused() -> None:
    with pytest.raises(DataError, match=r"two values are both called 's\[0\]'"):
        written({"s": [np.ones(1)], "s[0]": np.ones(1)})


@pytest.mark.parametrize(("data", "message"), [
    (b"", "is no npz archive"),
    (b"hello", "is no npz archive"),
    (zipped([("x.npy", b"hello")]), "x.npz: x.npy: is no npy array"),
    (zipped([("x.npy", npy(np.ones(2)) + b"!")]), "but 17 follow"),
    (zipped([("x.txt", b"hello")]), "holds 'x.txt', which is no npy array"),
    (zipped([("x.npy", npy(np.ones(2)))], compression=zipfile.ZIP_LZMA), "packed in an unknown way"),
    (zipped([(f"{i}.npy", b"") for i in range(5000)]), "has 5000 members"),
    (zipped([("x.npy", npy(np.ones(2)))])[:-10], "is no npz archive"),
])  # fmt: skip
def test_hostile_archives_are_refused(tmp_path, data, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, data)
    assert "x.npz" in str(caught.value)


def test_an_archive_that_unpacks_to_far_more_than_it_weighs_is_refused(tmp_path, monkeypatch) -> None:
    data = zipped([("x.npy", npy(np.zeros(1 << 20, np.uint8)))], compression=zipfile.ZIP_DEFLATED)
    assert read(tmp_path, data)["x"].size == 1 << 20
    monkeypatch.setattr(npz, "RATIO_FREE_BYTES", 1 << 19)
    with pytest.raises(InputError, match=r"more than 100 times its size \(hint: save it with np.savez"):
        read(tmp_path, data)
    monkeypatch.setattr(npz, "MAX_UNPACKED_BYTES", 1 << 18)
    with pytest.raises(InputError, match="more than 262144"):
        read(tmp_path, data)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_changed_number_is_found(tmp_path, packing) -> None:
    data = bytearray(zipped([("x.npy", npy(np.arange(100.0)))], compression=packing))
    at = data.index(b"PK\x01\x02") - 40  # inside the data, near their end
    data[at] ^= 1
    with pytest.raises(InputError, match="is no npz archive"):
        read(tmp_path, bytes(data))


def test_a_damaged_archive_is_refused_or_read_and_nothing_else(tmp_path) -> None:
    valid = zipped([("x.npy", npy(np.arange(20.0))), ("y.npy", npy(np.ones(3)))], compression=zipfile.ZIP_DEFLATED)
    dice = random.Random(7)  # noqa: S311 - no secret
    for _ in range(400):
        data = bytearray(valid)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            message = str(sorted(read(tmp_path, bytes(data))))
        except InputError as err:
            message = str(err)
        assert "\n" not in message


def test_single_arrays_are_read_as_declared(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.5], ml_dtypes.bfloat16))
    assert read_npy_file(tmp_path / "x.npy", TensorType("bfloat16", (1,))).dtype == ml_dtypes.bfloat16
    (tmp_path / "x.npy").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"x.npy: is no npy array"):
        read_npy_file(tmp_path / "x.npy", F32)
    with pytest.raises(MissingInputError, match="no such file"):
        read_npy_file(tmp_path / "nowhere.npy", F32)
