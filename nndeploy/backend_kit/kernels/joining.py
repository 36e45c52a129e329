# SPDX-License-Identifier: Apache-2.0
"""Joins steps with what makes their operands: the search; what may be joined, and to what, each backend says."""

from collections.abc import Callable, Sequence, Set
from typing import TypeVar

from nndeploy.backend_kit.kernels.step import KernelStep
from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of

AnyStep = TypeVar("AnyStep", bound=KernelStep)


def with_makers_joined(
    steps: list[AnyStep],
    kept: Set[str],
    operand_names: Callable[[AnyStep], Sequence[str | None]],
    join: Callable[[AnyStep, AnyStep, int], AnyStep | None],
) -> list[AnyStep]:
    """Returns the steps with every possible join made; `kept` names the values that are read outside.

    `operand_names` gives the names of the values that a step could be joined with the makers of, None for operands
    that are none. `join(maker, step, number)` gives the two as one where operand `number` lets it: a maker is offered
    that the step alone reads, the latest first. The joined step stands where the second stood.
    """
    at = 0
    while at < len(steps):
        joined = _joined_with_a_maker(steps, at, kept, operand_names(steps[at]), join)
        if joined is None:
            at += 1
            continue
        maker, step = joined
        steps = [*steps[:maker], *steps[maker + 1 : at], step, *steps[at + 1 :]]
        at -= 1  # the step moved up by one, and may be joined again
    return steps


def _joined_with_a_maker(
    steps: list[AnyStep],
    at: int,
    kept: Set[str],
    names: Sequence[str | None],
    join: Callable[[AnyStep, AnyStep, int], AnyStep | None],
) -> tuple[int, AnyStep] | None:
    """Returns the number of a maker of step `at` and the two as one step; the latest maker that fits."""
    if not names:
        return None
    readers, writers = readers_of(steps), writers_of(steps)
    makers = {
        maker: number
        for number, name in enumerate(names)
        if name is not None and name not in kept and (maker := only_writer(writers, readers, name, at)) is not None
    }
    for maker in sorted(makers, reverse=True):
        joined = join(steps[maker], steps[at], makers[maker])
        if joined is not None:
            return maker, joined
    return None
