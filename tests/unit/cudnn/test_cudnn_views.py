# SPDX-License-Identifier: Apache-2.0
"""Views: what strides say, against numpy on an array of numbered elements."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_cudnn.views import (
    View,
    broadcast_dims,
    channels_last,
    filled,
    memory_order,
    reshaped,
    row_major,
    sliced,
    strides_in_order,
    transposed,
)

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=5).map(tuple)


def elements(view: View) -> np.ndarray:
    """Returns the numbers of the elements that a view sees in its buffer."""
    found = np.full(view.dims, view.offset)
    for axis, stride in enumerate(view.strides):
        shape = [1] * len(view.dims)
        shape[axis] = -1
        found = found + (np.arange(view.dims[axis]) * stride).reshape(shape)
    return found


def numbered(dims: tuple[int, ...]) -> View:
    return View(0, 0, dims, row_major(dims), "float32")


@st.composite
def views(draw: st.DrawFn) -> View:
    """A view made by transposing and slicing a dense one."""
    dims = draw(SIZES)
    view = transposed(numbered(dims), draw(st.permutations(range(len(dims)))))
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(dims) - 1))
        start = draw(st.integers(0, view.dims[axis] - 1))
        step = draw(st.integers(1, 2))
        view = sliced(view, axis, start, -(-(view.dims[axis] - start) // step), step)
    return view


@given(SIZES, st.data())
def test_transposed_view_sees_what_numpy_sees(dims: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(dims))))
    assert np.array_equal(elements(transposed(numbered(dims), order)), elements(numbered(dims)).transpose(order))


@given(SIZES, st.data())
def test_sliced_view_sees_what_numpy_sees(dims: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(dims) - 1))
    start, step = data.draw(st.integers(0, dims[axis] - 1)), data.draw(st.integers(1, 3))
    at = (slice(None),) * axis + (slice(start, None, step),)
    expected = elements(numbered(dims))[at]
    assert np.array_equal(elements(sliced(numbered(dims), axis, start, expected.shape[axis], step)), expected)


@given(views(), st.data())
def test_reshaped_view_sees_the_same_elements_in_the_same_order(view: View, data: st.DataObject) -> None:
    dims = data.draw(reshapings(math.prod(view.dims)))
    found = reshaped(view, dims)
    if found is not None:
        assert np.array_equal(elements(found), elements(view).reshape(dims))


@given(SIZES, st.data())
def test_reshape_of_a_dense_view_always_works(dims: tuple[int, ...], data: st.DataObject) -> None:
    assert reshaped(numbered(dims), data.draw(reshapings(math.prod(dims)))) is not None


@st.composite
def reshapings(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Dims with `size` elements, axes of size 1 among them."""
    dims = []
    while size > 1:
        factor = draw(st.sampled_from([f for f in range(2, size + 1) if size % f == 0]))
        dims += [1] * draw(st.integers(0, 1)) + [factor]
        size //= factor
    return tuple(dims) or (1,)


def test_reshape_that_would_need_a_copy_is_none() -> None:
    assert reshaped(transposed(numbered((2, 3)), (1, 0)), (6,)) is None


@given(views())
def test_end_is_one_past_the_last_element(view: View) -> None:
    assert view.end_bytes == (elements(view).max() + 1) * 4


@given(SIZES, st.data())
def test_dense_strides_follow_the_order_of_axes(dims: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(dims))))
    view = View(0, 0, dims, strides_in_order(dims, order), "float32")
    assert np.array_equal(elements(view).transpose(order).reshape(-1), np.arange(math.prod(dims)))


def test_memory_order_leaves_axes_of_size_one_where_they_are() -> None:
    dims = (1, 8, 5, 1)
    assert memory_order(dims, channels_last(dims)) == (0, 2, 1, 3)


def test_strides_of_axes_of_size_one_are_those_of_a_dense_array() -> None:
    assert filled((1, 8, 1, 1), (0, 1, 0, 0), (0, 2, 3, 1)) == (8, 1, 8, 8)
    assert filled((1, 8, 1, 1), (0, 1, 0, 0), (0, 1, 2, 3)) == (8, 1, 1, 1)


def test_shapes_broadcast_from_the_last_axis() -> None:
    assert broadcast_dims((2, 1, 4), (3, 1), ()) == (2, 3, 4)


def test_view_in_a_buffer_starts_at_its_offset_in_bytes() -> None:
    assert sliced(View(0, 5, (4,), (1,), "float16"), 0, 2, 1).offset_bytes == 14
