# SPDX-License-Identifier: Apache-2.0
"""The sliding window follows from the buffer's capacity."""

from hypothesis import given
from hypothesis import strategies as st
from nndeploy_native.isa import ISAS
from nndeploy_native.steps.step import Machine
from nndeploy_native.windows import MIN_COLUMNS, SlidingWindow, buffer_bytes, window_for

LANES = st.sampled_from([4, 8, 16])
SIZES = st.integers(1, 400)


@given(st.integers(1, 2**22), SIZES, SIZES, SIZES, LANES)
def test_first_result_fits_the_buffer_or_is_the_smallest(
    capacity: int, height: int, width: int, channels: int, lanes: int
) -> None:
    window = window_for(capacity, height, width, channels, lanes)
    smallest = SlidingWindow(1, min(width, MIN_COLUMNS), lanes)
    assert window.num_bytes <= capacity or window == smallest
    assert 1 <= window.rows <= height
    assert 1 <= window.columns <= width
    assert window.channels % lanes == 0
    assert window.channels < channels + lanes


@given(st.integers(1, 2**22), SIZES, SIZES, SIZES, LANES)
def test_a_larger_buffer_never_gives_more_windows(
    capacity: int, height: int, width: int, channels: int, lanes: int
) -> None:
    def number_of(window: SlidingWindow) -> int:
        parts = ((height, window.rows), (width, window.columns), (channels, window.channels))
        counts = [-(-whole // part) for whole, part in parts]
        return counts[0] * counts[1] * counts[2]

    small, large = (window_for(size, height, width, channels, lanes) for size in (capacity, 2 * capacity))
    assert number_of(large) <= number_of(small)


def test_whole_rows_then_columns_then_channels() -> None:
    assert window_for(16 * 10 * 64 * 4, 40, 10, 64, 16) == SlidingWindow(14, 10, 64)
    assert window_for(8 * 64 * 4, 40, 10, 64, 16) == SlidingWindow(1, 5, 64)
    assert window_for(6 * 32 * 4, 40, 10, 64, 16) == SlidingWindow(1, 6, 32)
    assert window_for(1, 40, 10, 64, 16) == SlidingWindow(1, 6, 16)


def test_capacity_is_what_the_user_set_or_a_part_of_the_second_cache() -> None:
    assert buffer_bytes(Machine(ISAS[0], 2**20, 4096), 10) == 4096
    assert buffer_bytes(Machine(ISAS[0], 2**20), 10) == 2**18
    assert buffer_bytes(Machine(ISAS[0], 2**20), 2**24) == 2**17
    assert buffer_bytes(Machine(ISAS[0]), 10) == 2**17
