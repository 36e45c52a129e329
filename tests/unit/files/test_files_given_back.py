# SPDX-License-Identifier: Apache-2.0
"""Memory that is given back: whole pages of the part alone."""

import mmap

import numpy as np

from nndeploy.files.given_back import give_back, give_heap_back
from nndeploy.files.huge_pages import HUGE_PAGE, memory_to_fill


def test_whole_pages_of_the_part_are_given_back_and_nothing_beside_it() -> None:
    page = mmap.PAGESIZE
    for num_pages in (4, 2 * HUGE_PAGE // page):
        memory = memory_to_fill(num_pages * page)
        memory[:] = 7
        give_back(memory.data, page // 2, 3 * page - 1)
        assert not memory[page : 2 * page].any()
        assert np.all(memory[:page] == 7)
        assert np.all(memory[2 * page :] == 7)


def test_a_part_within_a_page_and_no_memory_change_nothing() -> None:
    memory = memory_to_fill(mmap.PAGESIZE)
    memory[:] = 7
    give_back(memory.data, 1, mmap.PAGESIZE)
    assert np.all(memory == 7)
    give_back(memory.data[:0], 0, 0)
    give_heap_back()
