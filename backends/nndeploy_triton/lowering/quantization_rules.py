# SPDX-License-Identifier: Apache-2.0
"""Rules for quantised tensors: between whole numbers and reals, element by element, and products computed in reals.

    DequantizeLinear: (x - zero_point) * scale          QuantizeLinear: saturate(round(x / scale) + zero_point)
    QLinearConv:      quantize(convolution(dequantize(x), dequantize(weights)) + bias)

The products are summed in float32, so a result may differ by one step from one that is summed in whole numbers.
Source: ONNX QuantizeLinear, DequantizeLinear, QLinearConv.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, operand
from nndeploy_triton.lowering.context import FLOATS, Array, Context, as_image
from nndeploy_triton.lowering.window_rules import emit_convolution, window_of
from nndeploy_triton.program import Program, ProgramBuilder
from nndeploy_triton.steps.elementwise import Elementwise
from nndeploy_triton.steps.step import PLAIN, Epilogue
from nndeploy_triton.views import Shape, View

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
DEQUANTIZABLE = (*LIMITS, "int32")


def dequantize(node: ir.Node, context: Context) -> None:
    """Lowers DequantizeLinear with one scale, or one for each place of an axis."""
    x, target = context.view(node.inputs[0]), context.output(node.outputs[0])
    if x.dtype not in DEQUANTIZABLE or target.dtype not in FLOATS:
        raise BuildRefusedError(f"a DequantizeLinear from {x.dtype} to {target.dtype}")
    _refuse_blocks(node)
    parameters = _parameters(node, context, x.shape, x.dtype)
    context.emit(Elementwise(target, (x, *parameters), _dequantize_program(len(parameters) > 1)))


def quantize(node: ir.Node, context: Context) -> None:
    """Lowers QuantizeLinear with one scale, or one for each place of an axis."""
    x, target = context.view(node.inputs[0]), context.output(node.outputs[0])
    if x.dtype not in FLOATS or target.dtype not in LIMITS:
        raise BuildRefusedError(f"a QuantizeLinear from {x.dtype} to {target.dtype}")
    _refuse_blocks(node)
    parameters = _parameters(node, context, x.shape, target.dtype)
    context.emit(Elementwise(target, (x, *parameters), _quantize_program(target.dtype, len(parameters) > 1)))


def quantized_convolution(node: ir.Node, context: Context) -> None:
    """Lowers QLinearConv with constant weights: dequantised input and weights, quantised output.

    Inputs: x, its scale and zero point, weights, their scale and zero point, the output's scale and zero point, bias.
    """
    arrays = {index: context.constant(operand(node, index)) for index in range(1, 9)}
    if any(arrays[index] is None for index in range(1, 8)) or (operand(node, 8) is not None and arrays[8] is None):
        raise BuildRefusedError("a QLinearConv whose weights, scales or bias are not constant")
    known = {index: array for index, array in arrays.items() if array is not None}
    if any(known[index].size != 1 for index in (1, 2, 6, 7)):
        raise BuildRefusedError("a QLinearConv with more than one scale for its input or output")
    output = as_image(context.output(node.outputs[0]))
    x, weights = as_image(_dequantized(node, context, known)), as_image(context.new_constant(_real_weights(known)))
    window = window_of(node, x, output, weights.shape[2:])
    epilogue = _biased(context, known, output) if 8 in known else PLAIN
    reals = context.temporary("real", "float32", output.shape)
    emit_convolution(context, reals, x, weights, window, int_attribute(node, "group", 1), epilogue)
    scale, zero = float(known[6].reshape(-1)[0]), float(known[7].reshape(-1)[0])
    program = _quantize_constants(output.dtype, scale, zero)
    context.emit(Elementwise(output, (reals,), program))


def _dequantized(node: ir.Node, context: Context, known: dict[int, Array]) -> View:
    x = context.view(node.inputs[0])
    builder = ProgramBuilder(1)
    shifted = builder.apply("sub", builder.apply("float", 0), builder.const(float(known[2].reshape(-1)[0])))
    result = builder.apply("mul", shifted, builder.const(float(known[1].reshape(-1)[0])))
    reals = context.temporary("real", "float32", x.shape)
    context.emit(Elementwise(reals, (x,), builder.program(result, "dequantize")))
    return reals


def _real_weights(known: dict[int, Array]) -> Array:
    """Returns (weights - zero point) * scale, by output channel, computed in float64 and rounded once."""
    by_output = (-1, *(1,) * (known[3].ndim - 1))
    zero, scale = known[5].astype(np.float64).reshape(by_output), known[4].astype(np.float64).reshape(by_output)
    real: Array = ((known[3].astype(np.float64) - zero) * scale).astype(np.float32)
    return real


def _biased(context: Context, known: dict[int, Array], output: View) -> Epilogue:
    """Returns the epilogue that adds the bias, which is in steps of input scale times weight scale."""
    step = known[1].astype(np.float64).reshape(-1) * known[4].astype(np.float64).reshape(-1)
    bias = (known[8].astype(np.float64) * step).astype(np.float32).reshape(-1, 1, 1)
    builder = ProgramBuilder(2)
    program = builder.program(builder.apply("add", 0, 1), "bias")
    return Epilogue(program, (context.broadcast(context.new_constant(bias), output.shape),))


def _parameters(node: ir.Node, context: Context, shape: Shape, dtype: str) -> list[View]:
    """Returns the scale, and the zero point where there is one, stretched to `shape`."""
    axis = int_attribute(node, "axis", 1)
    found = []
    for index in (1, 2):
        if operand(node, index) is None:
            continue
        view = context.dense(operand(node, index))
        if len(view.shape) == 1 and view.shape != (1,):
            place = axis % len(shape)
            along = view.reshaped((*(1,) * place, view.shape[0], *(1,) * (len(shape) - place - 1)))
        else:
            along = view.reshaped(())
        if along is None or view.dtype not in (("float32",), (dtype,))[index - 1]:
            raise BuildRefusedError("a scale or zero point of another type or shape than kernels take")
        found.append(context.broadcast(along, shape))
    return found


def _refuse_blocks(node: ir.Node) -> None:
    if int_attribute(node, "block_size", 0):
        raise BuildRefusedError("scales by blocks")


def _dequantize_program(has_zero: bool) -> Program:
    builder = ProgramBuilder(3 if has_zero else 2)
    x = builder.apply("float", 0)
    x = builder.apply("sub", x, builder.apply("float", 2)) if has_zero else x
    return builder.program(builder.apply("mul", x, 1), "dequantize")


def _quantize_program(dtype: str, has_zero: bool) -> Program:
    builder = ProgramBuilder(3 if has_zero else 2)
    rounded = builder.apply("round", builder.apply("div", 0, 1))
    shifted = builder.apply("add", rounded, builder.apply("float", 2)) if has_zero else rounded
    return builder.program(_saturated(builder, shifted, dtype), "quantize")


def _quantize_constants(dtype: str, scale: float, zero: float) -> Program:
    builder = ProgramBuilder(1)
    rounded = builder.apply("round", builder.apply("div", 0, builder.const(scale)))
    return builder.program(_saturated(builder, builder.apply("add", rounded, builder.const(zero)), dtype), "quantize")


def _saturated(builder: ProgramBuilder, value: int, dtype: str) -> int:
    low, high = LIMITS[dtype]
    return builder.apply("min", builder.apply("max", value, builder.const(low)), builder.const(high))
