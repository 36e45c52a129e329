# SPDX-License-Identifier: Apache-2.0
"""Joins elementwise steps with what makes their input: with each other, and with the end of heavier steps.

    elementwise(elementwise(a), b)      =>  elementwise(a, b)            one pass over memory
    elementwise(convolution(x), b)      =>  convolution(x) with epilogue
    copy to a part of a Concat(step)    =>  the step writes there

The maker must be read by that one step only, as a whole and in order. The joined step stands where the second stood,
so all its inputs are there.
"""

from collections.abc import Set
from dataclasses import replace
from typing import TypeAlias

from nndeploy.backend_kit.kernels.joining import with_makers_joined
from nndeploy_triton.program import MAX_STEPS, Program
from nndeploy_triton.steps.convolution import Convolution, Depthwise, Separable
from nndeploy_triton.steps.elementwise import MAX_INPUTS, Elementwise
from nndeploy_triton.steps.matmul import Matmul
from nndeploy_triton.steps.step import TritonStep, epilogue_arguments
from nndeploy_triton.views import View

Heavy: TypeAlias = Convolution | Depthwise | Separable | Matmul

MAX_EXTRAS = 6
EXACT_BETWEEN = ("float16", "float32", "bool")
"""Element types that may stay float32 on the chip; a cast to whole numbers in between must really be made."""


def fuse_elementwise(steps: list[TritonStep], kept: Set[str]) -> list[TritonStep]:
    """Returns the steps with every possible join made."""
    steps = [_with_distinct_operands(step) if isinstance(step, Elementwise) else step for step in steps]
    return with_makers_joined(steps, kept, _operand_names, _joined)


def _operand_names(step: TritonStep) -> list[str]:
    return [operand.name for operand in step.operands] if isinstance(step, Elementwise) else []


def _with_distinct_operands(step: Elementwise) -> Elementwise:
    distinct = list(dict.fromkeys(step.operands))
    if len(distinct) == len(step.operands):
        return step
    places = [distinct.index(operand) for operand in step.operands]
    return replace(step, operands=tuple(distinct), program=step.program.with_inputs_merged(places))


def _joined(maker: TritonStep, step: TritonStep, number: int) -> TritonStep | None:
    assert isinstance(step, Elementwise)
    operand = step.operands[number]
    is_read_once = [view.name for view in step.operands].count(operand.name) == 1
    is_exact = maker.output.dtype in EXACT_BETWEEN or (isinstance(maker, Elementwise) and maker.is_copy)
    if not is_read_once or not is_exact or not _is_whole(operand, maker.output):
        return None
    if isinstance(maker, Elementwise):
        return _joined_elementwise(maker, step, number)
    if isinstance(maker, Convolution | Depthwise | Separable | Matmul):
        return _joined_epilogue(maker, step, number)
    return None


def _is_whole(read: View, written: View) -> bool:
    """Whether a step reads every element that was written, once and in order."""
    return read.is_dense and written.is_dense and (read.size, read.offset) == (written.size, written.offset)


def _joined_elementwise(maker: Elementwise, step: Elementwise, number: int) -> Elementwise | None:
    seen = [operand.reshaped(step.output.shape) for operand in maker.operands]
    inner = [view for view in seen if view is not None]
    others = [operand for place, operand in enumerate(step.operands) if place != number]
    operands = (*inner, *others)
    distinct = list(dict.fromkeys(operands))
    if len(inner) != len(seen) or len(distinct) > MAX_INPUTS or _is_too_long(maker.program, step.program):
        return None
    program = step.program.after(maker.program, number).with_inputs_merged([distinct.index(one) for one in operands])
    return Elementwise(step.output, tuple(distinct), program)


def _joined_epilogue(maker: Heavy, step: Elementwise, number: int) -> TritonStep | None:
    output = step.output.reshaped(maker.output.shape)
    seen = [operand.reshaped(maker.output.shape) for place, operand in enumerate(step.operands) if place != number]
    others = [view for view in seen if view is not None]
    if output is None or len(others) != len(seen) or not _can_write(maker, output):
        return None
    if _is_too_long(maker.epilogue.program, step.program):
        return None
    epilogue = maker.epilogue.joined(step.program, number, others)
    if len(epilogue.extras) > MAX_EXTRAS or epilogue_arguments(epilogue, maker.epilogue_axes) is None:
        return None
    return maker.with_epilogue(epilogue, output)


def _can_write(maker: Heavy, output: View) -> bool:
    """Whether the maker's kernel can write there: images may lie apart, matrices may not."""
    if isinstance(maker, Matmul):
        return output.is_dense
    inner = View(output.name, output.dtype, output.shape[1:], output.strides[1:])
    return inner.is_dense


def _is_too_long(first: Program, second: Program) -> bool:
    return len(first.steps) + len(second.steps) > MAX_STEPS
