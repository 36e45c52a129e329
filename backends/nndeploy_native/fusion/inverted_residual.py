# SPDX-License-Identifier: Apache-2.0
"""pointwise -> separable  =>  inverted residual: the expanded tensor, the widest of all, is not written to memory.

Only where the pointwise convolution makes more channels than it reads: then its output costs more to move than to
make again at the edges of windows, and not of images of one row, whose windows would be whole rows, however long. A
residual is the last step's epilogue.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy_native.steps.convolution import Convolution
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import NativeStep


def fuse_inverted_residual(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with each such triple as one step, at the place of its last."""
    readers, writers = readers_of(steps), writers_of(steps)
    found: dict[int, NativeStep] = {}
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, Separable) or step.is_of_lines or step.first.x.name in kept:
            continue
        expand = only_writer(writers, readers, step.first.x.name, number)
        maker = steps[expand] if expand is not None else None
        if expand is not None and isinstance(maker, Convolution) and _fits(maker, step):
            found[number] = InvertedResidual(maker, step)
            gone.add(expand)
    return [found.get(number, step) for number, step in enumerate(steps) if number not in gone]


def _fits(expand: Convolution, pair: Separable) -> bool:
    widens = expand.output.shape[1] > expand.x.shape[1]
    residual = pair.epilogue.residual
    is_read_once = residual is None or residual.name != expand.output.name
    is_plain = expand.epilogue.residual is None and expand.x.is_blocked
    return expand.is_pointwise and widens and is_plain and is_read_once and pair.first.x == expand.output
