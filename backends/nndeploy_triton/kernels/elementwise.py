# SPDX-License-Identifier: Apache-2.0
"""A chain of elementwise operators with broadcasting in one pass; also every copy between strided layouts.

    out[i...] = program(input0[i...], input1[i...], ...)       each side with strides of its own

Broadcast dimensions have stride 0. With an empty program and equal element types of any kind it is Transpose,
Expand, Slice, Concat (once for each part) and Split.
"""

import triton
import triton.language as tl

from nndeploy_triton.kernels.programs import as_operand, run_program


@triton.jit
def offsets_of(at, sizes, strides):
    """Returns the offsets, in elements, of row-major positions `at` in a view; no strides means dense."""
    if len(strides) == 0:
        return at
    else:
        offsets = tl.zeros_like(at)
        rest = at
        for back in tl.static_range(len(strides)):
            size, stride = sizes[len(strides) - 1 - back], strides[len(strides) - 1 - back]
            offsets, rest = _one_axis(offsets, rest, size, stride, back == len(strides) - 1)
        return offsets


@triton.jit
def _one_axis(offsets, rest, size, stride, is_first: tl.constexpr):
    if is_first:
        return offsets + rest * stride, rest
    else:
        return offsets + (rest % size) * stride, rest // size


@triton.jit
def elementwise(out, inputs, sizes, out_strides, in_strides, num_elements, PROGRAM: tl.constexpr, BLOCK: tl.constexpr):
    """Writes `num_elements`, BLOCK for each program; `sizes` and strides belong to the iteration space."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < num_elements
    values = ()
    for index in tl.static_range(len(inputs)):
        value = tl.load(inputs[index] + offsets_of(at, sizes, in_strides[index]), mask=mask)
        if len(PROGRAM) > 0:
            value = as_operand(value)
        values = values + (value,)
    result = run_program(values, PROGRAM)
    tl.store(out + offsets_of(at, sizes, out_strides), result.to(out.dtype.element_ty), mask=mask)
