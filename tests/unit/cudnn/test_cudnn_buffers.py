# SPDX-License-Identifier: Apache-2.0
"""The memory plan: who shares bytes, what is written where its reader will look, what groups grow to."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nndeploy_cudnn.buffers import ALIGNMENT, Buffer, lay_out, places_of, readers_of
from nndeploy_cudnn.groups import MAX_OPERATIONS, groups_from, is_classic
from nndeploy_cudnn.operations import Convolution, Join, Operation, Pointwise, Reshaped, Transposed, Value


def value(name: str, dims: tuple[int, ...] = (1, 4, 3, 3)) -> Value:
    return Value(name, dims, "float32")


def pointwise(mode: str, *values: Value) -> Pointwise:
    return Pointwise(mode, values[:-1], values[-1])


def convolution(x: Value, y: Value) -> Convolution:
    return Convolution(x, value("w", (4, 4, 1, 1)), y, (1, 1), (0, 0), (0, 0), (1, 1))


USES = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=12)
SIZES = st.lists(st.integers(1, 3000), min_size=10, max_size=10)


@given(USES, SIZES)
def test_values_that_live_at_the_same_time_never_share_bytes(uses: list[set[int]], sizes: list[int]) -> None:
    buffers = [Buffer("arena", size) for size in sizes]
    _, arena = lay_out(buffers, uses)
    for one in set().union(*uses):
        assert buffers[one].offset % ALIGNMENT == 0
        assert buffers[one].offset + buffers[one].num_bytes <= arena
        for other in set().union(*uses) - {one}:
            if _meet(uses, one, other):
                apart = (
                    buffers[one].offset + buffers[one].num_bytes <= buffers[other].offset
                    or buffers[other].offset + buffers[other].num_bytes <= buffers[one].offset
                )
                assert apart


def _meet(uses: list[set[int]], one: int, other: int) -> bool:
    spans = [[step for step, used in enumerate(uses) if number in used] for number in (one, other)]
    return spans[0][0] <= spans[1][-1] and spans[1][0] <= spans[0][-1]


@given(USES, SIZES)
def test_arena_is_never_larger_than_all_values_together(uses: list[set[int]], sizes: list[int]) -> None:
    _, arena = lay_out([Buffer("arena", size) for size in sizes], uses)
    assert arena <= sum(-(-sizes[number] // ALIGNMENT) * ALIGNMENT for number in set().union(*uses))


def test_values_one_after_the_other_share_bytes() -> None:
    buffers = [Buffer("arena", 1000) for _ in range(4)]
    _, arena = lay_out(buffers, [{0, 1}, {1, 2}, {2, 3}])
    assert arena == 2048


def test_constants_that_no_step_reads_take_no_memory() -> None:
    constants, _ = lay_out([Buffer("constant", 100), Buffer("constant", 300)], [{1}])
    assert constants == 512


def test_output_is_written_where_the_caller_looks_through_reshapes_too() -> None:
    x, a, y = value("x"), value("a"), value("y", (36,))
    relu, reshape = pointwise("relu", x, a), Reshaped(a, y)
    assert places_of([relu, reshape], [y]).homes == {a: 0}


def test_transposed_output_has_no_home_and_will_be_copied() -> None:
    x, a, y = value("x"), value("a"), value("y", (3, 3, 4, 1))
    assert places_of([pointwise("relu", x, a), Transposed(a, y, (3, 2, 1, 0))], [y]).homes == {}


def test_value_that_is_two_outputs_has_one_home() -> None:
    x, y, z = value("x"), value("y"), value("z", (36,))
    assert places_of([pointwise("relu", x, y), Reshaped(y, z)], [y, z]).homes == {y: 0}


def test_joined_parts_have_slots_one_after_the_other() -> None:
    x, a, b, y = value("x"), value("a"), value("b"), value("y", (1, 12, 3, 3))
    join = Join((a, x, b), y, 1)
    slots = places_of([pointwise("relu", x, a), pointwise("abs", x, b), join], [y]).slots
    assert {part.name: slot.start for part, slot in slots.items()} == {"a": 0, "b": 8}


def test_value_joined_twice_has_a_slot_in_the_first_only() -> None:
    x, a, y, z = value("x"), value("a"), value("y", (1, 8, 3, 3)), value("z", (1, 8, 3, 3))
    first, second = Join((a, a), y, 1), Join((a, x), z, 1)
    places = places_of([pointwise("relu", x, a), first, second], [y, z])
    assert [(slot.join, slot.start) for slot in places.slots.values()] == [(first, 0)]


def groups(operations: list[Operation], ready: list[Value], wanted: list[Value]) -> list[list[str]]:
    found = groups_from(operations[0], readers_of(operations), ready, (), wanted)
    return [[operation.y.name for operation in group] for group in found]


X, A, B, C, Z = (value(name) for name in "xabcz")
SMALL = value("small", (1, 4, 1, 1))
GROUPS = {
    "takes what follows and may end after each": (
        [convolution(X, A), pointwise("add", A, Z, B), pointwise("relu", B, C)], [X, Z], [C],
        [["a", "b", "c"], ["a", "b"], ["a"]],
    ),
    "does not wait for what is not there": ([convolution(X, A), pointwise("add", A, Z, B)], [X], [B], [["a"]]),
    "ends only where one value leaves it": (
        [convolution(X, A), pointwise("sigmoid", A, B), pointwise("mul", A, B, C)], [X], [C], [["a", "b", "c"], ["a"]],
    ),
    "keeps what somebody else reads": (
        [convolution(X, A), pointwise("relu", A, B), convolution(A, C)], [X], [B, C], [["a"]],
    ),
    "does not grow to another size": (
        [pointwise("relu", X, SMALL), pointwise("add", SMALL, X, A)], [X], [A], [["small"]],
    ),
}  # fmt: skip
"""Operations, the values that are there, those that are wanted, and the groups from the first one."""


@pytest.mark.parametrize(("operations", "ready", "wanted", "found"), GROUPS.values(), ids=GROUPS)
def test_group(operations: list[Operation], ready: list[Value], wanted: list[Value], found: list[list[str]]) -> None:
    assert groups(operations, ready, wanted) == found


def test_group_has_a_largest_size() -> None:
    values = [value(str(i)) for i in range(MAX_OPERATIONS + 5)]
    chain = [pointwise("relu", x, y) for x, y in pairwise(values)]
    assert len(groups(chain, values[:1], values[-1:])[0]) == MAX_OPERATIONS


def test_convolution_with_additions_and_relu_is_classic() -> None:
    x, a, b = value("x"), value("a"), value("b")
    assert is_classic((convolution(x, a), pointwise("add", a, x, b), pointwise("relu", b, x)))
    assert not is_classic((convolution(x, a), pointwise("tanh", a, b)))
    assert not is_classic((pointwise("add", x, x, a),))
