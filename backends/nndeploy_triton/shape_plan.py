# SPDX-License-Identifier: Apache-2.0
"""A plan whose shapes are not fixed + the shapes of a call's inputs -> the plan of numbers for that call.

This is the table of a shape: every launch's sizes, strides and offsets, from which its grid follows. No compiler is
asked. Law: kernels read and write only what the shapes say: every symbol is checked against its range, every input
against the sizes that follow, every place against the arena that was made for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from nndeploy.errors import BundleError, InputError
from nndeploy.values.size import Dim, evaluated, fixed
from nndeploy.values.solving import check_shapes
from nndeploy_triton.plan import ALIGNMENT, Border, Launch, Place, TritonPlan, check_numbers


def plan_at(plan: TritonPlan, shapes: Sequence[tuple[int, ...]]) -> TritonPlan:
    """Returns the plan of numbers for inputs of `shapes`, in their order.

    Raises:
        InputError: the kernels are not for these shapes.
        BundleError: the plan addresses memory that it does not declare.
    """
    assert plan.shapes is not None
    names = [border.name for border in plan.inputs]
    for border, shape in zip(plan.inputs, shapes, strict=True):
        if len(shape) != len(border.shape):
            raise InputError(f"input {border.name!r}: expected {len(border.shape)} axes, got {shape}")
    values = {f"s{number}": one.value(names, shapes) for number, one in enumerate(plan.shapes.symbols)}
    ends = list[int]()
    for number, one in enumerate(plan.shapes.arena):
        begin = values[f"a{number}"] = max((ends[other] for other in one.below), default=0)
        ends.append(begin + max(1, -(-evaluated(one.num_bytes, values) // ALIGNMENT)))
    numbers: dict[Dim, int] = {}

    def number_of(size: Dim) -> int:
        if size not in numbers:
            numbers[size] = evaluated(size, values)
        return numbers[size]

    found = replace(with_sizes(plan, number_of), arena_bytes=ALIGNMENT * max(ends, default=0), shapes=None)
    check_shapes(names, shapes, [tuple(map(fixed, border.shape)) for border in found.inputs])
    if found.arena_bytes > plan.arena_bytes:
        raise BundleError(f"an arena of {found.arena_bytes} bytes, at most {plan.arena_bytes} were declared")
    check_numbers(found)
    return found


def with_sizes(plan: TritonPlan, change: Callable[[Dim], Dim]) -> TritonPlan:
    """Returns the plan with every size and offset changed."""

    def place(one: Place) -> Place:
        return Place(one.memory, change(one.offset))

    def border(one: Border) -> Border:
        return Border(one.name, place(one.place), one.dtype, tuple(map(change, one.shape)))

    def launch(one: Launch) -> Launch:
        tensors = tuple((name, place(found)) for name, found in one.tensors)
        return Launch(one.kernel, tensors, tuple((name, change(size)) for name, size in one.sizes))

    return replace(
        plan,
        inputs=tuple(map(border, plan.inputs)),
        outputs=tuple(map(border, plan.outputs)),
        launches=tuple(map(launch, plan.launches)),
    )
