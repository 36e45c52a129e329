# SPDX-License-Identifier: Apache-2.0
"""Arrays from anybody: what is whole is read, everything else is one clear line before anything is allocated."""

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nndeploy.errors import InputError
from nndeploy.stream.formats.npy import read_npy, write_npy


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


def header(descr="'<f4'", fortran="False", shape="(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


def read(data: bytes) -> np.ndarray:
    return read_npy(io.BytesIO(data).read, len(data))


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


NUMBERS = hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64))
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@given(hnp.arrays(NUMBERS | hnp.complex_number_dtypes(), SHAPES), st.booleans())
def test_reads_what_numpy_saves(array, is_fortran) -> None:
    found = read(saved(np.asfortranarray(array) if is_fortran else array))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "array", [np.array(["a", "ünï"]), np.array([b"ab", b"c"]), np.array([""]), np.zeros((0,), "U3")]
)
def test_reads_text(array) -> None:
    np.testing.assert_array_equal(read(saved(array)), array)


def test_writes_what_numpy_reads() -> None:
    for array in (np.arange(6.0).reshape(2, 3).T, np.array(["a", "bc"], object), np.array(3)):
        file = io.BytesIO()
        write_npy(file, array)
        file.seek(0)
        np.testing.assert_array_equal(
            np.load(file, allow_pickle=False), array.astype(str) if array.dtype == object else array
        )


@pytest.mark.parametrize(("data", "message"), [
    (b"", "does not begin as one"),
    (b"\x93NUMPY\x01", "does not begin as one"),
    (b"PK\x03\x04 something", "does not begin as one"),
    (npy(header(), bytes(8), version=9), "unknown version 9"),
    (b"\x93NUMPY\x01\x00\x50\x00{'descr'", "ends inside its header"),
    (b"\x93NUMPY\x01\x00\x50", "ends inside its header"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "has a header of 4294967295 bytes"),
    (npy("__import__('os').system('true')"), "header that is no dict"),
    (npy("(" * 8000), "header that is no dict"),
    (npy("{'descr': '<f4'}"), "without descr"),
    (npy(header(fortran="1"), bytes(8)), "odd fortran_order 1"),
    (npy(header(descr="'|O'"), bytes(16)), "Python objects, which are never loaded"),
    (npy(header(descr="[('a', '<f4')]"), bytes(8)), "elements of the kind"),
    (npy(header(descr="'<M8[ns]'"), bytes(16)), "elements of the kind"),
    (npy(header(descr="'<f3'"), bytes(6)), "unknown kind"),
    (npy(header(descr="'<U99999999'"), bytes(8)), "but 8 follow"),
    (npy(header(shape="(-1,)"), bytes(8)), r"odd shape \(-1,\)"),
    (npy(header(shape="(True, 2)"), bytes(8)), "odd shape"),
    (npy(header(shape=f"({2**80},)"), bytes(8)), "odd shape"),
    (npy(header(shape=f"({2**40}, {2**40}, 0)")), "odd shape"),
    (npy(header(shape=str((1,) * 65)), bytes(4)), "odd shape"),
    (npy(header(shape=f"({2**40},)"), bytes(8)), r"float32\[1099511627776\], 4398046511104 bytes, but 8 follow"),
    (npy(header(), bytes(7)), "8 bytes, but 7 follow"),
])  # fmt: skip
def test_everything_else_is_refused(data, message) -> None:
    with pytest.raises(InputError, match=message):
        read(data)


def test_a_claim_of_terabytes_allocates_nothing() -> None:
    data = npy(header(shape=f"({2**42},)"), bytes(8))
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


VALID = saved(np.arange(4, dtype=np.float32))


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_and_nothing_else(at, byte) -> None:
    data = bytearray(VALID)
    data[at] = byte
    try:
        message = str(read(bytes(data)).shape)
    except InputError as err:
        message = str(err)
    assert "\n" not in message
