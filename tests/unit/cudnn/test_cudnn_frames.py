# SPDX-License-Identifier: Apache-2.0
"""Frames: cuDNN's dims and strides address the same elements as the view, whatever broadcasts."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nndeploy_cudnn.frames import (
    MAX_RANK,
    MisfitError,
    batch_frame,
    copy_runs,
    image_frame,
    merged_image_frame,
    pointwise_frame,
    rows_frame,
    stacked_frame,
)
from nndeploy_cudnn.views import View, channels_last, row_major, strides_in_order
from test_cudnn_views import elements

DIMS = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=0, max_size=5).map(tuple)


def dense(dims: tuple[int, ...], order: tuple[int, ...] | None = None) -> View:
    return View(0, 0, dims, strides_in_order(dims, order or range(len(dims))), "float32")


def broadcast(view: View, dims: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(elements(view), dims)


@given(DIMS, st.data())
def test_pointwise_frame_pairs_the_same_elements(dims: tuple[int, ...], data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(dims)))))
    y = dense(dims, order)
    kept = data.draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    some = tuple(size if keep else 1 for size, keep in zip(dims, kept, strict=True))
    operands = [dense(dims, order), dense(some, order)]
    try:
        frame = pointwise_frame(y, [(view.dims, view.strides) for view in operands])
    except MisfitError:
        assume(False)
    pairs = [broadcast(view, dims).reshape(-1) for view in (y, *operands)]
    sizes, steps = frame.fit(y.dims, y.strides)
    assert math.prod(sizes) == math.prod(dims)
    assert len(sizes) <= MAX_RANK
    assert all(step > 0 for step in steps)
    seen = [View(0, 0, *frame.fit(view.dims, view.strides), "float32") for view in (y, *operands)]
    found = [broadcast(view, sizes).reshape(-1) for view in seen]
    assert set(zip(*(p.tolist() for p in pairs), strict=True)) == set(zip(*(f.tolist() for f in found), strict=True))


@given(DIMS)
def test_dense_values_of_one_size_are_rows_and_columns(dims: tuple[int, ...]) -> None:
    frame = pointwise_frame(dense(dims), [(dims, row_major(dims))])
    sizes, steps = frame.fit(dims, row_major(dims))
    assert len(sizes) == 3
    assert sizes[0] == 1
    assert steps[-1] == 1
    assert frame.inside(dims) == (sizes, steps)


def test_scalar_has_size_one_in_cut_rows() -> None:
    frame = pointwise_frame(dense((4, 1000)), [((), ())])
    assert frame.fit((), ()) == ((1, 1, 1), (1, 1, 1))
    assert frame.inside((4, 1000))[0] == (1, 4, 1000)


def test_bias_of_channels_last_images_is_a_row() -> None:
    dims = (2, 8, 5, 5)
    y = View(0, 0, dims, channels_last(dims), "float16")
    frame = pointwise_frame(y, [((8, 1, 1), (1, 1, 1))])
    assert frame.fit((8, 1, 1), (1, 1, 1))[0] == (1, 1, 8)
    assert frame.fit(dims, y.strides)[0] == (1, 50, 8)


def test_operand_whose_last_axis_is_not_dense_does_not_fit() -> None:
    with pytest.raises(MisfitError, match="not dense"):
        pointwise_frame(dense((4, 6)), [((4, 6), (12, 2))])


def test_more_axes_than_cudnn_takes_do_not_fit() -> None:
    dims = (2, 3, 2, 3, 2, 3)
    bias = ((2, 1, 2, 1, 2, 1), (4, 4, 2, 2, 1, 1))
    with pytest.raises(MisfitError, match="6 axes"):
        pointwise_frame(dense(dims), [bias])


def test_broadcast_along_a_part_of_a_dimension_does_not_fit() -> None:
    with pytest.raises(MisfitError, match="part of a dimension"):
        rows_frame((2, 3, 4)).fit((2, 1, 4), (4, 4, 1))


def test_axes_that_are_apart_do_not_fit_one_dimension() -> None:
    with pytest.raises(MisfitError, match="one inside the other"):
        batch_frame((2, 3, 4, 5)).fit((2, 3, 4, 5), (20, 40, 5, 1))


def test_image_of_one_axis_gets_a_height_of_one() -> None:
    assert image_frame((2, 8, 9), is_channels_last=False).fit((2, 8, 9), (72, 9, 1)) == ((2, 8, 1, 9), (72, 9, 9, 1))


def test_planes_are_images_of_one_channel() -> None:
    dims = (2, 8, 5, 6)
    assert merged_image_frame(dims).fit(dims, row_major(dims)) == ((16, 1, 5, 6), (30, 30, 6, 1))


def test_rows_of_a_matrix_are_pixels() -> None:
    assert rows_frame((2, 3, 4)).fit((2, 3, 4), (12, 4, 1)) == ((1, 4, 6, 1), (24, 1, 4, 4))


def test_matrices_are_stacked() -> None:
    assert stacked_frame((2, 3, 4)).fit((2, 3, 4), (12, 4, 1)) == ((1, 6, 4, 1), (24, 4, 1, 1))


@given(DIMS, st.data())
def test_runs_of_a_copy_pair_the_same_elements(dims: tuple[int, ...], data: st.DataObject) -> None:
    source = dense(dims, tuple(data.draw(st.permutations(range(len(dims))))))
    target = dense(dims, tuple(data.draw(st.permutations(range(len(dims))))))
    runs = copy_runs(source, target)
    sizes = tuple(size for size, _, _ in runs)
    seen = [View(0, 0, sizes, tuple(run[i] for run in runs), "float32") for i in (1, 2)]
    expected = zip(elements(source).reshape(-1).tolist(), elements(target).reshape(-1).tolist(), strict=True)
    assert set(zip(*(elements(view).reshape(-1).tolist() for view in seen), strict=True)) == set(expected)
