# SPDX-License-Identifier: Apache-2.0
"""saturated(round(floats / scale) + zero)  =>  one pass; with the copy behind it that puts channels side by side.

So the image that a quantised network gets becomes bytes without a program, which divides, and without a second pass.
"""

from collections.abc import Set
from dataclasses import replace

import numpy as np

from nndeploy.backend_kit.kernels.joining import with_makers_joined
from nndeploy.values.size import product
from nndeploy_native.expressions import Domain
from nndeploy_native.fusion.byte_lines import RANGES
from nndeploy_native.steps.bytes import Quantise
from nndeploy_native.steps.elementwise import Elementwise
from nndeploy_native.steps.movement import StridedCopy, View
from nndeploy_native.steps.step import NativeStep

LEAST_SCALE = 2.0**-60
"""Scales below and above its reciprocal are left to programs: NND_LEAST_SCALE of the kernel library."""
MOST_TURNED = 4
"""Channels that come to lie side by side: NND_MOST_TURNED."""


def fuse_quantised_floats(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with such passes; `kept` names the roots that are read outside."""
    steps = [quantise_of(step) or step if isinstance(step, Elementwise) else step for step in steps]
    return with_makers_joined(steps, kept, _copied, _joined)


def quantise_of(step: Elementwise) -> Quantise | None:
    """Returns the pass that a step is; None where it is none."""
    element, domain = step.output.element, step.domain
    if element not in RANGES or domain is not Domain.FLOAT32 or len(step.operands) != 1 or step.output.is_blocked:
        return None
    x = step.operands[0].tensor
    if x is None or x.is_blocked or x.element != "fp32" or step.operands[0].shape != step.output.shape:
        return None
    zero: float = 0
    match step.expression:
        case (
            str(name),
            ("add", ("round", ("div", ("operand", 0), ("const", int(by) | float(by)))), ("const", int(to) | float(to))),
        ):
            zero = to
        case (str(name), ("round", ("div", ("operand", 0), ("const", int(by) | float(by))))):
            pass
        case _:
            return None
    (least, most), scale = RANGES[element], float(np.float32(by))
    is_usual = LEAST_SCALE <= scale <= 1 / LEAST_SCALE and least <= zero <= most and zero == int(zero)
    if name != f"saturated_{element}" or not is_usual:
        return None
    return Quantise(step.output, x, scale, int(zero), 1, 1, x.size)


def _copied(step: NativeStep) -> list[str | None]:
    return [step.view.base.name] if isinstance(step, StridedCopy) else []


def _joined(maker: NativeStep, step: NativeStep, _: int) -> NativeStep | None:
    assert isinstance(step, StridedCopy)
    if not isinstance(maker, Quantise) or maker.channels != 1 or len(maker.output.shape) < 3:
        return None
    images, channels, *places = maker.output.shape
    if not isinstance(channels, int) or not 1 < channels <= MOST_TURNED:
        return None
    last = View.of(maker.output).transposed((0, *range(2, len(maker.output.shape)), 1))
    if step.view.offset != 0 or (step.view.sizes, step.view.strides) != (last.sizes, last.strides):
        return None
    return replace(maker, output=step.output, outer=images, channels=channels, inner=product(places))
