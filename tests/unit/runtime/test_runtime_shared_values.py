# SPDX-License-Identifier: Apache-2.0
"""Values cross between processes whole, whatever they are; who writes nonsense misleads nobody."""

import os

import numpy as np
import pytest

from nndeploy.errors import DataError
from nndeploy.runtime.shared_values import SharedValues


def test_every_kind_of_value_crosses_and_small_ones_follow_large_ones() -> None:
    shared = SharedValues()
    other = SharedValues(os.dup(shared.descriptor))
    for size in (3, 100_000, 0, 7):
        values = {"x": np.arange(size, dtype=np.float32), "s": [np.ones((2, 2), np.int8)], "n": None}
        got = other.read(shared.write(values))
        np.testing.assert_array_equal(got["x"], values["x"])
        assert got["n"] is None
        assert isinstance(got["s"], list)
    text = np.array(["a", "ü"], object)
    np.testing.assert_array_equal(other.read(shared.write({"t": text}))["t"], text)
    for one in (shared, other, shared):
        one.close()


def test_what_was_read_does_not_change_with_the_memory() -> None:
    shared = SharedValues()
    num_bytes = shared.write({"x": np.zeros(4)})
    got = shared.read(num_bytes)["x"]
    shared.write({"x": np.ones(4)})
    np.testing.assert_array_equal(got, np.zeros(4))
    shared.close()


@pytest.mark.parametrize(("num_bytes", "spoilt", "message"), [
    (-1, b"", "there are no"), (1 << 40, b"", "there are no"), (None, b"\xff" * 8, "malformed values"),
])  # fmt: skip
def test_a_length_that_is_not_there_and_bytes_that_are_no_values_are_refused(num_bytes, spoilt, message) -> None:
    shared = SharedValues()
    written = shared.write({"x": np.zeros(4)})
    os.pwrite(shared.descriptor, spoilt, 0)
    with pytest.raises(DataError, match=message):
        shared.read(written if num_bytes is None else num_bytes)
    shared.close()


def test_the_memory_never_becomes_smaller() -> None:
    shared = SharedValues()
    shared.write({"x": np.zeros(4)})
    with pytest.raises(PermissionError):
        os.ftruncate(shared.descriptor, 1)
    shared.close()
