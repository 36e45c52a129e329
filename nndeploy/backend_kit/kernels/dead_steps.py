# SPDX-License-Identifier: Apache-2.0
"""Leaves out steps whose result nobody reads."""

from collections.abc import Set
from typing import TypeVar

from nndeploy.backend_kit.kernels.step import KernelStep

AnyStep = TypeVar("AnyStep", bound=KernelStep)


def without_dead_steps(steps: list[AnyStep], kept: Set[str]) -> list[AnyStep]:
    """Returns the steps that an output needs, in their order."""
    needed, found = set(kept), list[AnyStep]()
    for step in reversed(steps):
        if step.output.name in needed:
            needed.update(view.name for view in step.inputs)
            found.append(step)
    return found[::-1]
