# SPDX-License-Identifier: Apache-2.0
"""The sliding windows follow from the buffer's capacity."""

from hypothesis import given
from hypothesis import strategies as st
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.packing import panels
from nndeploy_native.steps.step import Axis, Machine
from nndeploy_native.windows import (
    SlidingWindow,
    buffer_capacity,
    evened,
    inverted_scratch,
    inverted_window_for,
    shared_rows,
    window_for,
)

ISA = st.sampled_from(ISAS)
SIZES = st.integers(1, 400)
CAPACITIES = st.integers(1, 2**22)
V4 = ISAS[0]


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """An axis of a window with an output of at least one place."""
    kernel, stride, dilation = (
        draw(st.sampled_from([1, 3, 5, 7])),
        draw(st.sampled_from([1, 2, 3])),
        draw(st.integers(1, 3)),
    )
    reach = (kernel - 1) * dilation
    pad, end_pad = draw(st.integers(0, reach)), draw(st.integers(0, reach))
    size = draw(st.integers(max(1, reach + 1 - pad - end_pad), 120))
    return Axis(size, (size + pad + end_pad - reach - 1) // stride + 1, kernel, stride, dilation, pad)


def _buffer(window: SlidingWindow, isa: Isa) -> int:
    return isa.elem_bytes * window.rows * window.columns * window.channels


@given(CAPACITIES, SIZES, SIZES, SIZES, ISA)
def test_first_result_fits_the_buffer_or_is_one_pixel_of_one_vector(
    capacity: int, rows: int, columns: int, channels: int, isa: Isa
) -> None:
    window = window_for(capacity, rows, columns, channels, isa)
    assert _buffer(window, isa) <= capacity or window == SlidingWindow(1, 1, isa.lanes)
    assert 1 <= window.rows <= rows
    assert 1 <= window.columns <= columns
    assert window.channels % isa.lanes == 0
    assert isa.lanes <= window.channels < channels + isa.lanes


@given(CAPACITIES, SIZES, SIZES, SIZES, ISA)
def test_a_larger_buffer_never_gives_more_windows(
    capacity: int, rows: int, columns: int, channels: int, isa: Isa
) -> None:
    def number_of(window: SlidingWindow) -> int:
        parts = ((rows, window.rows), (columns, window.columns), (channels, window.channels))
        counts = [-(-whole // part) for whole, part in parts]
        return counts[0] * counts[1] * counts[2]

    small, large = (window_for(size, rows, columns, channels, isa) for size in (capacity, 2 * capacity))
    assert number_of(large) <= number_of(small)


def test_whole_rows_then_columns_then_channels() -> None:
    assert window_for(16 * 10 * 64 * 4, 40, 10, 64, V4) == SlidingWindow(14, 10, 64)
    assert window_for(15 * 64 * 4, 40, 20, 64, V4) == SlidingWindow(1, 10, 64)
    assert window_for(13 * 64 * 4, 40, 20, 64, V4) == SlidingWindow(1, 14, 48)
    assert window_for(1, 40, 20, 64, V4) == SlidingWindow(1, 1, 16)


@given(CAPACITIES, axes(), axes(), SIZES, ISA)
def test_an_inverted_residuals_window_fits_or_is_one_row(
    capacity: int, y: Axis, x: Axis, channels: int, isa: Isa
) -> None:
    window, all_panels = inverted_window_for(capacity, y, x, channels, isa), len(panels(channels, isa))
    fits = inverted_scratch(window, y, x, channels, isa).num_bytes <= capacity
    assert fits or (window.rows, window.group_panels) == (1, all_panels)
    assert 1 <= window.rows <= y.out_size
    assert 1 <= window.group_panels <= all_panels
    assert window.group_panels == all_panels or window.rows == y.out_size  # a ring keeps all hidden channels


@given(st.data(), SIZES, st.integers(1, 8), st.integers(2, 64))
def test_threads_share_smaller_windows_of_all_rows(
    data: st.DataObject, out_rows: int, images: int, threads: int
) -> None:
    rows = data.draw(st.integers(1, out_rows))
    shared = shared_rows(rows, out_rows, images, threads)
    count, shared_count = -(-out_rows // rows), -(-out_rows // shared)
    assert 1 <= shared <= rows
    assert shared_count <= count + threads
    assert shared == rows or images * count < 8 * threads


@given(SIZES, SIZES)
def test_evened_parts_are_as_many_and_no_larger(whole: int, most: int) -> None:
    part = evened(whole, most)
    assert part <= most
    assert -(-whole // part) == -(-whole // most)


def test_capacity_is_what_the_user_set_or_a_part_of_the_second_cache() -> None:
    assert buffer_capacity(Machine(V4, 2**20, 4096), 10) == 4096
    assert buffer_capacity(Machine(V4, 2**20), 10) == 2**18
    assert buffer_capacity(Machine(V4, 2**20), 2**24) == 2**17
    assert buffer_capacity(Machine(V4), 10) == 2**18
