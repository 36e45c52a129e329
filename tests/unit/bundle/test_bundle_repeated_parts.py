# SPDX-License-Identifier: Apache-2.0
"""Repeated parts: whatever is found is there, in order; every long part of a base is found, wherever it stands."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.bundle import repeated_parts
from nndeploy.bundle.repeated_parts import BLOCK, Repeated, RepeatedParts

DICE = np.random.default_rng(0)
A, B = DICE.bytes(5000), DICE.bytes(3001)


def parts_of(data: bytes, *bases: bytes) -> list[Repeated]:
    """The parts that are found, each of which is checked."""
    found, end = list(RepeatedParts(bases).of(data)), 0
    for part in found:
        assert end <= part.at
        end = part.at + part.size
        assert data[part.at : end] == bases[part.base][part.offset : part.offset + part.size]
        assert part.at + part.size <= len(data)
        assert part.offset >= 0
    return found


@pytest.mark.parametrize("shift", range(9))
def test_a_part_is_found_at_any_place(shift: int) -> None:
    before = bytes(range(100, 100 + shift))
    assert parts_of(before + A[777:4000] + b"end", A, B) == [Repeated(shift, 0, 777, 3223)]


def test_parts_of_several_bases_are_found_in_another_order() -> None:
    found = parts_of(b"x" + B + b"yy" + A[2000:] + A[:1000], A, B)
    assert [(part.base, part.offset, part.size) for part in found] == [(1, 0, 3001), (0, 2000, 3000), (0, 0, 1000)]


def test_the_least_part_that_must_be_found() -> None:
    for offset in range(BLOCK):
        assert parts_of(A[offset : offset + 2 * BLOCK], A) == [Repeated(0, 0, offset, 2 * BLOCK)]


@pytest.mark.parametrize("data", [b"", b"short", bytes(1000), DICE.bytes(1000), A[:60]])
def test_nothing_is_found_where_nothing_repeats(data: bytes) -> None:
    assert not parts_of(data, A, bytes(4096))


@pytest.mark.parametrize("bases", [(), (b"",), (b"x" * 63,)])
def test_bases_may_be_small(bases: tuple[bytes, ...]) -> None:
    assert not parts_of(A, *bases)


def test_blocks_that_begin_alike_hide_no_part() -> None:
    alike = b"".join(b"the same" + DICE.bytes(56) for _ in range(50))
    assert parts_of(b"!" + A[:100] + alike, A[:64] + A[:100] + alike) == [Repeated(1, 0, 64, 100 + len(alike))]


def test_sparse_weights_are_found_and_others_given_up_soon() -> None:
    sparse, other = ((DICE.random(1 << 20) < 0.02).astype(np.float32) for _ in range(2))
    weights = sparse * DICE.random(1 << 20, dtype=np.float32)
    found = parts_of(b"!" + weights.tobytes(), weights.tobytes())
    assert sum(part.size for part in found) > 0.99 * weights.nbytes
    begin = time.monotonic()
    assert not parts_of(other.tobytes(), sparse.tobytes())
    assert time.monotonic() - begin < 5


def test_whole_tensors_are_found_in_large_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_parts, "MAX_BLOCKS", 1 << 10)
    tensors = [DICE.bytes(100_000 + number) for number in range(8)]
    found = parts_of(b"head".join(tensors[::-1]), b"".join(tensors))
    assert sum(part.size for part in found) == sum(map(len, tensors))
    assert len(found) == len(tensors)


@given(st.lists(st.tuples(st.integers(0, 4999), st.integers(0, 700), st.binary(max_size=20)), max_size=12))
def test_what_is_found_is_always_there(cuts: list[tuple[int, int, bytes]]) -> None:
    data = b"".join(A[begin : begin + size] + between for begin, size, between in cuts)
    found = sum(part.size for part in parts_of(data, A, B))
    assert found >= sum(max(0, min(size, 5000 - begin) - 2 * BLOCK) for begin, size, _ in cuts) / 2
