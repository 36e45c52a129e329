# SPDX-License-Identifier: Apache-2.0
"""Rules for comparisons, truths, bits and conversions; a chain of them and of arithmetic is one step.

Source: ONNX And, BitShift, BitwiseAnd, Cast, Equal, Greater, IsInf, IsNaN, Mod, Not, Where and the like.
"""

from collections.abc import Callable

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, is_inference_dropout, operand, text_attribute
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering import movement_rules
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit, emit_constant

OPERATORS: dict[str, Callable[..., Expression]] = {
    "And": lambda a, b: ("and", a, b),
    "BitwiseAnd": lambda a, b: ("bit_and", a, b),
    "BitwiseNot": lambda a: ("invert", a),
    "BitwiseOr": lambda a, b: ("bit_or", a, b),
    "BitwiseXor": lambda a, b: ("bit_xor", a, b),
    "Equal": lambda a, b: ("equal", a, b),
    "Greater": lambda a, b: ("less", b, a),
    "GreaterOrEqual": lambda a, b: ("less_equal", b, a),
    "IsNaN": lambda a: ("not", ("equal", a, a)),
    "Less": lambda a, b: ("less", a, b),
    "LessOrEqual": lambda a, b: ("less_equal", a, b),
    "Not": lambda a: ("not", a),
    "Or": lambda a, b: ("or", a, b),
    "Where": lambda c, a, b: ("where", c, a, b),
    "Xor": lambda a, b: ("xor", a, b),
}
"""What becomes of the operands, without attributes."""


def plain(node: ir.Node, context: Context) -> None:
    """Lowers one of `OPERATORS`."""
    emit(node, context, node.inputs, OPERATORS[node.op_type])


def cast(node: ir.Node, context: Context) -> None:
    """Lowers Cast and CastLike; the model says the type."""
    source, target = (context.element_of(value) for value in (operand(node, 0), node.outputs[0]))
    if source == target:
        movement_rules.reshape(node, context)
    elif target == "bool":
        emit(node, context, [node.inputs[0]], lambda x: ("not", ("not", x)))
    elif source == "fp64" and node.outputs[0].dtype == ir.DataType.FLOAT16:
        emit(node, context, [node.inputs[0]], lambda x: ("float_odd", x))
    else:
        emit(node, context, [node.inputs[0]], lambda x: x)


def modulo(node: ir.Node, context: Context) -> None:
    """Lowers Mod: the sign is that of the divisor, or with `fmod` that of the dividend."""
    name = "fmod" if int_attribute(node, "fmod", 0) else "mod"
    emit(node, context, node.inputs, lambda a, b: (name, a, b))


def shift(node: ir.Node, context: Context) -> None:
    """Lowers BitShift; to the right of numbers with a sign keeps it."""
    name = "shift_left" if text_attribute(node, "direction", "") == "LEFT" else "shift_right"
    emit(node, context, node.inputs, lambda a, b: (name, a, b))


def is_infinite(node: ir.Node, context: Context) -> None:
    """Lowers IsInf, of either sign or of one."""
    finds_negative, finds_positive = (int_attribute(node, name, 1) for name in ("detect_negative", "detect_positive"))
    if not (finds_negative or finds_positive):
        emit_constant(node.outputs[0], context, 0)
        return
    infinity = const(float("inf" if finds_positive else "-inf"))
    is_both = finds_negative and finds_positive
    emit(node, context, [node.inputs[0]], lambda x: ("equal", ("abs", x) if is_both else x, infinity))


def dropout(node: ir.Node, context: Context) -> None:
    """Lowers Dropout of inference: the input as it is, and a mask that keeps all."""
    if not is_inference_dropout(node, context.opset):
        raise BuildRefusedError("a Dropout in training")
    movement_rules.reshape(node, context)
    if len(node.outputs) > 1 and node.outputs[1].name:
        emit_constant(node.outputs[1], context, 1)
