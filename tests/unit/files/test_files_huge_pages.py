# SPDX-License-Identifier: Apache-2.0
"""Memory that is about to be filled: as large as asked for, zero, at the beginning of a page, the caller's alone."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from nndeploy.files.huge_pages import HUGE_PAGE, HUGE_PAGES_FROM, memory_to_fill

SIZES = (1, 4097, HUGE_PAGES_FROM - 1, HUGE_PAGES_FROM, HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("num_bytes", SIZES)
def test_it_is_zeros_of_that_size_that_can_be_written(num_bytes: int, at_once: bool) -> None:
    made, other = (memory_to_fill(num_bytes, at_once=at_once) for _ in "ab")
    assert made.size == num_bytes
    assert not made.any()
    made[:] = 255
    assert not other.any()


@pytest.mark.parametrize("num_bytes", SIZES)
def test_it_begins_with_a_page_and_a_huge_one_where_it_is_of_these(num_bytes: int) -> None:
    address = memory_to_fill(num_bytes).__array_interface__["data"][0]
    assert address % (HUGE_PAGE if num_bytes >= HUGE_PAGES_FROM else mmap.PAGESIZE) == 0


def test_a_view_keeps_the_memory() -> None:
    view = memoryview(memory_to_fill(HUGE_PAGE))[5:9]
    view[:] = b"abcd"
    assert bytes(view) == b"abcd"


def test_pages_that_nobody_writes_take_no_memory() -> None:
    before = _resident_bytes()
    made = memory_to_fill(64 * HUGE_PAGE)
    assert _resident_bytes() - before < 2 * HUGE_PAGE
    made[0] = 1
    assert _resident_bytes() - before <= 4 * HUGE_PAGE


def test_more_than_there_is_is_an_error() -> None:
    with pytest.raises((OSError, ValueError, OverflowError)):
        memory_to_fill(1 << 62)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_it_is_bytes() -> None:
    assert memory_to_fill(8).dtype == np.uint8
