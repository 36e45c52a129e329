# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise  =>  separable: the tensor between is not written to memory.

What stands between them (bias, activation) is already the depthwise step's epilogue, which never adds a residual. The
pointwise convolution must be the only reader. A convolution of one channel from the order of ONNX is depthwise too: it
is joined where the kernel for planes can do the pair.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy_native.steps.convolution import Convolution
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import NativeStep


def fuse_separable(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with each such pair as one step, at the place of its second."""
    readers, writers = readers_of(steps), writers_of(steps)
    found: dict[int, NativeStep] = {}
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, Convolution) or not step.is_pointwise or step.x.name in kept:
            continue
        first = only_writer(writers, readers, step.x.name, number)
        maker = steps[first] if first is not None else None
        if first is not None and isinstance(maker, Convolution) and _fits(maker, step):
            found[number] = Separable(maker, step)
            gone.add(first)
    return [found.get(number, step) for number, step in enumerate(steps) if number not in gone]


def _fits(first: Convolution, second: Convolution) -> bool:
    residual = second.epilogue.residual
    is_read_once = residual is None or residual.name != first.output.name
    is_pair = first.is_depthwise and second.x == first.output and is_read_once
    return is_pair and (first.x.is_blocked or Separable(first, second).takes_planes)
