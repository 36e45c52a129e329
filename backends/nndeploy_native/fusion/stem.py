# SPDX-License-Identifier: Apache-2.0
"""first convolution -> separable  =>  stem: the widest tensor of a light network is not written to memory.

The separable pair must be its only reader, and read it once: a residual may be that tensor too. Windows are whole rows:
images of one row would be one window, however long.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy_native.steps.convolution import Convolution
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.stem import Stem
from nndeploy_native.steps.step import NativeStep


def fuse_stem(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with each such pair as one step, at the place of its second."""
    readers, writers = readers_of(steps), writers_of(steps)
    found: dict[int, NativeStep] = {}
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, Separable) or step.is_of_lines or not step.output.is_blocked:
            continue
        if step.first.x.name in kept:
            continue
        before = only_writer(writers, readers, step.first.x.name, number)
        maker = steps[before] if before is not None else None
        if before is None or not isinstance(maker, Convolution) or not _is_first(maker):
            continue
        if _fits(maker, step):
            found[number] = Stem(maker, step)
            gone.add(before)
    return [found.get(number, step) for number, step in enumerate(steps) if number not in gone]


def _is_first(maker: Convolution) -> bool:
    """Whether it is a dense convolution from the order of ONNX."""
    return not maker.x.is_blocked and maker.groups == 1 and not maker.is_transposed


def _fits(wide: Convolution, pair: Separable) -> bool:
    residual = pair.epilogue.residual
    is_read_once = residual is None or residual.name != wide.output.name
    return wide.epilogue.residual is None and wide.output == pair.first.x and is_read_once
