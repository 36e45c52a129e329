# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise  =>  separable: the tensor between is not written to memory.

The pointwise convolution must be the only reader, read the whole tensor, have no groups and not be transposed.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy_triton.steps.convolution import Convolution, Depthwise, Separable
from nndeploy_triton.steps.step import TritonStep


def fuse_separable(steps: list[TritonStep], kept: Set[str]) -> list[TritonStep]:
    """Returns the steps with each such pair as one step, at the place of its second."""
    readers, writers = readers_of(steps), writers_of(steps)
    found: dict[int, TritonStep] = {}
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, Convolution) or step.x.name in kept:
            continue
        first = only_writer(writers, readers, step.x.name, number)
        maker = steps[first] if first is not None else None
        if first is not None and isinstance(maker, Depthwise) and _fits(maker, step):
            found[number] = Separable(step.output, maker, step.weights, step.epilogue)
            gone.add(first)
    return [found.get(number, step) for number, step in enumerate(steps) if number not in gone]


def _fits(first: Depthwise, second: Convolution) -> bool:
    is_point = second.is_pointwise and second.num_groups == 1
    reads_all = second.x == first.output
    is_read_once = all(extra.name != first.output.name for extra in second.epilogue.extras)
    return is_point and reads_all and is_read_once and first.multiplier == 1
