# SPDX-License-Identifier: Apache-2.0
"""Views against numpy's own strides, and the laws of programs and of the memory plan."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_triton.plan import ALIGNMENT
from nndeploy_triton.program import Program, ProgramBuilder, identity
from nndeploy_triton.views import View, collapsed, dense

from nndeploy.backend_kit.kernels.memory import Lifetime, aligned, piled, placed

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def read(view: View, data: np.ndarray) -> np.ndarray:
    """Returns the elements of a view over the values in `data`."""
    steps = tuple(stride * data.itemsize for stride in view.strides)
    return np.lib.stride_tricks.as_strided(data[view.offset :], view.shape, steps)


@st.composite
def moved_views(draw: st.DrawFn) -> tuple[View, np.ndarray, np.ndarray]:
    """A view made by some moves, its value's data, and what numpy makes by the same moves."""
    shape = draw(shapes)
    data = np.arange(int(np.prod(shape)), dtype=np.int64)
    view, array = dense("x", "int64", shape), data.reshape(shape)
    for move in draw(st.lists(st.sampled_from(["transpose", "slice", "stretch", "reshape"]), max_size=4)):
        rank = len(view.shape)
        if move == "transpose":
            axes = draw(st.permutations(range(rank)))
            view, array = view.transposed(axes), array.transpose(axes)
        elif move == "slice" and rank:
            axis = draw(st.integers(0, rank - 1))
            step = draw(st.sampled_from([1, 2, -1, -2]))
            size = view.shape[axis]
            start = draw(st.integers(0, size - 1))
            chosen = range(start, size if step > 0 else -1, step)
            view = view.sliced(axis, start, step, len(chosen))
            array = array.take(list(chosen), axis=axis)
        elif move == "stretch":
            target = tuple(draw(st.integers(1, 3)) if size == 1 else size for size in (1, *view.shape))
            stretched = view.broadcast_to(target)
            assert stretched is not None
            view, array = stretched, np.broadcast_to(array, target)
        elif move == "reshape":
            target = draw(st.permutations([size for size in view.shape if size != 1]))
            seen = view.reshaped(tuple(target))
            if seen is not None:
                view, array = seen, array.reshape(target)
    return view, data, array


@given(moved_views())
def test_a_view_reads_what_numpy_reads(case: tuple[View, np.ndarray, np.ndarray]) -> None:
    view, data, array = case
    assert view.shape == array.shape
    np.testing.assert_array_equal(read(view, data), array)


@given(moved_views())
def test_a_dense_view_reads_its_elements_one_after_the_other(case: tuple[View, np.ndarray, np.ndarray]) -> None:
    view, data, array = case
    if view.is_dense:
        np.testing.assert_array_equal(data[view.offset : view.offset + view.size], array.reshape(-1))


@given(moved_views())
def test_a_collapsed_space_visits_the_same_elements_in_the_same_order(
    case: tuple[View, np.ndarray, np.ndarray],
) -> None:
    view, data, array = case
    shape, (strides,) = collapsed(view.shape, [view])
    steps = tuple(stride * data.itemsize for stride in strides)
    walked = np.lib.stride_tricks.as_strided(data[view.offset :], shape, steps)
    np.testing.assert_array_equal(walked.reshape(-1), array.reshape(-1))
    assert 1 not in shape


@given(moved_views(), st.data())
def test_strides_of_groups_walk_a_group_as_one_axis(
    case: tuple[View, np.ndarray, np.ndarray], chosen: st.DataObject
) -> None:
    view, data, array = case
    rank = len(view.shape)
    cuts = sorted(chosen.draw(st.lists(st.integers(0, rank), min_size=2, max_size=2)))
    groups = [tuple(range(a, b)) for a, b in zip([0, *cuts], [*cuts, rank], strict=True)]
    strides = view.strides_of_groups(groups)
    if strides is None:
        return
    sizes = [int(np.prod([view.shape[axis] for axis in group])) for group in groups]
    steps = tuple(stride * data.itemsize for stride in strides)
    walked = np.lib.stride_tricks.as_strided(data[view.offset :], sizes, steps)
    np.testing.assert_array_equal(walked.reshape(-1), array.reshape(-1))


def test_a_reshape_that_would_need_two_strides_is_none() -> None:
    assert dense("x", "float32", (2, 3)).transposed((1, 0)).reshaped((6,)) is None


def test_a_broadcast_against_numpys_rules_is_none() -> None:
    assert dense("x", "float32", (2, 3)).broadcast_to((2, 4)) is None
    assert dense("x", "float32", (2, 3)).broadcast_to((3,)) is None


# Programs: the law of `after` and of merged inputs.

OPERATORS = {"add": np.add, "mul": np.multiply, "max": np.maximum}


def evaluate(program: Program, inputs: list[float]) -> float:
    values = list(inputs)
    for step in program.steps:
        values.append(
            float(step[1])
            if step[0] == "const"
            else float(OPERATORS[str(step[0])](*(values[int(i)] for i in step[1:])))
        )
    return values[-1]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    num_inputs = draw(st.integers(1, 3))
    builder, last = ProgramBuilder(num_inputs), num_inputs - 1
    for _ in range(draw(st.integers(0 if num_inputs == 1 else 1, 4))):
        op = draw(st.sampled_from(["const", *OPERATORS]))
        if op == "const":
            last = builder.const(draw(st.integers(-3, 3)))
        else:
            last = builder.apply(op, draw(st.integers(0, last)), draw(st.integers(0, last)))
    return builder.program(last, "label")


@given(programs(), programs(), st.data())
def test_a_program_after_another_computes_both(outer: Program, inner: Program, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, outer.num_inputs - 1))
    numbers = st.lists(st.integers(-4, 4).map(float), min_size=6, max_size=6)
    given_values = data.draw(numbers)
    inner_values, others = given_values[: inner.num_inputs], given_values[inner.num_inputs :][: outer.num_inputs - 1]
    outer_values = [*others[:at], evaluate(inner, inner_values), *others[at:]]
    joined = outer.after(inner, at)
    assert joined.num_inputs == inner.num_inputs + outer.num_inputs - 1
    assert evaluate(joined, [*inner_values, *others]) == evaluate(outer, outer_values)


@given(programs(), st.data())
def test_merged_inputs_are_read_in_both_places(program: Program, data: st.DataObject) -> None:
    distinct = data.draw(st.integers(1, program.num_inputs))
    places = [
        *range(distinct),
        *(data.draw(st.integers(0, distinct - 1)) for _ in range(program.num_inputs - distinct)),
    ]
    values = [2.0, 3.0, 5.0][:distinct]
    merged = program.with_inputs_merged(places)
    if program.steps:
        assert evaluate(merged, values) == evaluate(program, [values[place] for place in places])


def test_the_identity_changes_nothing_on_either_side() -> None:
    builder = ProgramBuilder(2)
    program = builder.program(builder.apply("add", 0, 1), "add")
    assert program.after(identity(), 0).steps == identity().after(program, 0).steps == program.steps


def test_a_result_in_the_middle_is_still_the_result() -> None:
    builder = ProgramBuilder(1)
    builder.const(3.0)
    assert builder.program(0, "x").steps[-1] == ("same", 0)


# Memory: values that live at the same time do not overlap.

lifetimes = st.builds(
    lambda num_bytes, first, length: Lifetime(num_bytes, first, first + length), st.integers(0, 3000),
    st.integers(-1, 8), st.integers(0, 4),
)  # fmt: skip


@given(st.lists(lifetimes, max_size=12))
def test_values_that_meet_in_time_do_not_meet_in_memory(found: list[Lifetime]) -> None:
    named = {f"v{number}": lifetime for number, lifetime in enumerate(found)}
    offsets, num_bytes = placed(named, ALIGNMENT)
    for name, lifetime in named.items():
        assert offsets[name] % 256 == 0
        assert offsets[name] + lifetime.num_bytes <= num_bytes
        for other, other_lifetime in named.items():
            if other != name and lifetime.meets(other_lifetime):
                first, second = sorted(
                    [(offsets[name], lifetime), (offsets[other], other_lifetime)], key=lambda one: one[0]
                )
                assert first[0] + max(1, first[1].num_bytes) <= second[0]


@given(st.lists(lifetimes, max_size=12), st.data())
def test_values_piled_up_at_smaller_sizes_do_not_meet_either(found: list[Lifetime], data: st.DataObject) -> None:
    largest = {f"v{number}": lifetime for number, lifetime in enumerate(found)}
    small = {name: data.draw(st.integers(0, one.num_bytes)) for name, one in largest.items()}
    offsets, num_bytes = placed(largest, ALIGNMENT)
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for name, below in piled(largest, offsets).items():
        begins[name] = max((ends[other] for other in below), default=0)
        ends[name] = begins[name] + aligned(small[name], ALIGNMENT)
        assert begins[name] <= offsets[name]
        assert ends[name] <= num_bytes
    for name, lifetime in largest.items():
        for other in largest.keys() - {name}:
            if lifetime.meets(largest[other]):
                assert ends[name] <= begins[other] or ends[other] <= begins[name]


@given(st.lists(lifetimes, max_size=12))
def test_the_plan_is_no_larger_than_all_values_side_by_side_and_no_smaller_than_the_fullest_moment(
    found: list[Lifetime],
) -> None:
    _, num_bytes = placed({f"v{number}": lifetime for number, lifetime in enumerate(found)}, ALIGNMENT)
    assert num_bytes <= sum(aligned(lifetime.num_bytes, ALIGNMENT) for lifetime in found)
    for moment in range(-1, 14):
        assert num_bytes >= sum(aligned(one.num_bytes, ALIGNMENT) for one in found if one.first <= moment <= one.last)


@pytest.mark.parametrize(("num_bytes", "rounded"), [(0, 256), (1, 256), (256, 256), (257, 512)])
def test_sizes_are_rounded_up_and_never_nothing(num_bytes: int, rounded: int) -> None:
    assert aligned(num_bytes, ALIGNMENT) == rounded
