# SPDX-License-Identifier: Apache-2.0
"""Steps that make a byte of one byte  =>  the end of the product or convolution that makes it, or a table.

    f(bytes of a product)     =>  the product of bytes, which become f of them last
    f(bytes)                  =>  a table of 256 bytes

f is whatever was joined: DequantizeLinear, an activation, more of both, QuantizeLinear. The kernel library makes the
table with f itself when a plan is opened, so that nothing is rounded otherwise than step by step.
"""

from collections.abc import Set
from dataclasses import replace

from nndeploy.backend_kit.kernels.joining import with_makers_joined
from nndeploy_native.expressions import Domain
from nndeploy_native.fusion.byte_lines import RANGES
from nndeploy_native.steps.bytes import ByteTable
from nndeploy_native.steps.elementwise import Elementwise
from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor


def join_byte_tables(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with functions of a byte as ends of what makes it, where nobody else reads it."""
    return with_makers_joined(steps, kept, _operand_names, _joined)


def fuse_byte_tables(steps: list[NativeStep]) -> list[NativeStep]:
    """Returns the steps with functions of a byte as tables."""
    return [_table_of(step) or step for step in steps]


def _operand_names(step: NativeStep) -> list[str | None]:
    x = byte_of(step)
    return [] if x is None else [x.name]


def byte_of(step: NativeStep) -> Tensor | None:
    """Returns the bytes of which alone, one by one, a step makes others; None where it does something else."""
    if not isinstance(step, Elementwise) or step.domain is not Domain.FLOAT32 or len(step.operands) != 1:
        return None
    x = step.operands[0].tensor
    fits = x is not None and x.element in RANGES and step.output.element in RANGES and not x.is_blocked
    return x if fits and step.operands[0].shape == step.output.shape and not step.output.is_blocked else None


def _joined(maker: NativeStep, step: NativeStep, number: int) -> NativeStep | None:  # noqa: ARG001
    assert isinstance(step, Elementwise)
    is_free = isinstance(maker, IntegerSums) and maker.table is None and maker.output == byte_of(step)
    if not is_free or step.output.element != maker.output.element or step.output.shape != maker.output.shape:
        return None
    assert isinstance(maker, IntegerSums)
    return replace(maker, output=step.output, table=step.expression)


def _table_of(step: NativeStep) -> ByteTable | None:
    x = byte_of(step)
    if x is None:
        return None
    assert isinstance(step, Elementwise)
    return ByteTable(step.output, x, step.expression)
