# SPDX-License-Identifier: Apache-2.0
"""convert -> separable, separable -> convert  =>  separable: the layout is changed window by window, in the cache.

Only where no residual, which lies in blocks, is added.
"""

from collections.abc import Set
from dataclasses import replace

from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import NativeStep


def fuse_layout(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with such conversions as part of the pair; `kept` names the roots that are read outside."""
    readers, writers = readers_of(steps), writers_of(steps)
    found: dict[int, Separable] = {}
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, Separable) or not step.takes_planes:
            continue
        before = only_writer(writers, readers, step.first.x.name, number)
        maker = steps[before] if before is not None else None
        if (
            before is not None
            and isinstance(maker, Convert)
            and not maker.x.is_blocked
            and maker.output.name not in kept
        ):
            x = replace(maker.x, shape=step.first.x.shape)  # elements may have been reshaped between the two
            step = replace(step, first=replace(step.first, x=x))
            gone.add(before)
            found[number] = step
        after = readers.get(step.output.name, [])
        reader = steps[after[0]] if len(after) == 1 else None
        if isinstance(reader, Convert) and step.output.name not in kept and len(writers[step.output.name]) == 1:
            output = replace(reader.output, shape=step.output.shape)
            found[after[0]] = replace(step, second=replace(step.second, output=output))
            gone.add(number)
    return [found.get(number, step) for number, step in enumerate(steps) if number not in gone]
