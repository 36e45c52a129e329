# SPDX-License-Identifier: Apache-2.0
"""Who writes and who reads each root value among a list of steps."""

from collections.abc import Iterable

from nndeploy.backend_kit.kernels.step import KernelStep


def readers_of(steps: Iterable[KernelStep]) -> dict[str, list[int]]:
    """Returns, by root, the numbers of the steps that read it, each once."""
    found: dict[str, list[int]] = {}
    for number, step in enumerate(steps):
        for name in {view.name for view in step.inputs}:
            found.setdefault(name, []).append(number)
    return found


def writers_of(steps: Iterable[KernelStep]) -> dict[str, list[int]]:
    """Returns, by root, the numbers of the steps that write it."""
    found: dict[str, list[int]] = {}
    for number, step in enumerate(steps):
        found.setdefault(step.output.name, []).append(number)
    return found


def only_writer(writers: dict[str, list[int]], readers: dict[str, list[int]], name: str, reader: int) -> int | None:
    """Returns the step that alone writes `name`, if step `reader` alone reads it; None otherwise."""
    written_by = writers.get(name, [])
    return written_by[0] if len(written_by) == 1 and readers.get(name) == [reader] else None
