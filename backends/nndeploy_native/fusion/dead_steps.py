# SPDX-License-Identifier: Apache-2.0
"""Leaves out steps whose result nobody reads."""

from collections.abc import Set

from nndeploy_native.steps.step import Step


def without_dead_steps(steps: list[Step], kept: Set[str]) -> list[Step]:
    """Returns the steps that an output needs, in their order."""
    needed, found = set(kept), list[Step]()
    for step in reversed(steps):
        if step.output.root in needed:
            needed.update(tensor.root for tensor in step.inputs)
            found.append(step)
    return found[::-1]
