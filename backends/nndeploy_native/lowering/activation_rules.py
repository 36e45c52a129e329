# SPDX-License-Identifier: Apache-2.0
"""Rules for activations with attributes: each an expression of one operand.

Source: ONNX Celu, Elu, Gelu, HardSigmoid, LeakyRelu, Mish, Selu, Shrink, Softsign, Swish, ThresholdedRelu.
"""

from collections.abc import Callable

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, text_attribute
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit

OPERATORS = (
    "Celu", "Elu", "Gelu", "HardSigmoid", "LeakyRelu", "Mish", "Selu", "Shrink", "Softsign", "Swish", "ThresholdedRelu",
)  # fmt: skip
_ZERO, _ONE = const(0), const(1)


def activation(node: ir.Node, context: Context) -> None:
    """Lowers one of `OPERATORS`, of float32."""
    context.shape_of(node.outputs[0])
    approximate = text_attribute(node, "approximate", "none")

    def number(name: str, default: float) -> Expression:
        return const(float_attribute(node, name, default))

    def compute(x: Expression) -> Expression:
        if node.op_type == "Gelu":
            return ("gelu", x) if approximate == "none" else ("gelu_tanh", x)
        return expression_of(node.op_type, x, number)

    emit(node, context, [node.inputs[0]], compute)


def expression_of(operator: str, x: Expression, number: Callable[[str, float], Expression]) -> Expression:
    """Returns one of `OPERATORS` but Gelu of x; `number` gives an attribute by its name and what it is by default.

    Raises:
        BuildRefusedError: it is none of them.
    """
    match operator:
        case "HardSigmoid":
            line: Expression = ("add", ("mul", x, number("alpha", 0.2)), number("beta", 0.5))
            return ("min", ("max", line, _ZERO), _ONE)
        case "LeakyRelu":
            return _below_zero(x, ("mul", x, number("alpha", 0.01)))
        case "Elu":
            return _below_zero(x, ("mul", _exp_less_one(x), number("alpha", 1.0)))
        case "Celu":
            alpha = number("alpha", 1.0)
            return _below_zero(x, ("mul", _exp_less_one(("div", x, alpha)), alpha))
        case "Selu":
            below: Expression = ("mul", _exp_less_one(x), number("alpha", 1.67326319217681884765625))
            return ("mul", _below_zero(x, below), number("gamma", 1.05070102214813232421875))
        case "Mish":
            return ("mul", x, ("tanh", ("softplus", x)))
        case "Shrink":
            bound, bias = number("lambd", 0.5), number("bias", 0.0)
            above: Expression = ("where", ("less", bound, x), ("sub", x, bias), _ZERO)
            return ("where", ("less", x, ("neg", bound)), ("add", x, bias), above)
        case "Softsign":
            return ("div", x, ("add", _ONE, ("abs", x)))
        case "Swish":
            return ("mul", x, ("sigmoid", ("mul", x, number("alpha", 1.0))))
        case "ThresholdedRelu":
            return ("where", ("less", number("alpha", 1.0), x), x, _ZERO)
    raise BuildRefusedError(f"no activation {operator!r:.40}")


def _below_zero(x: Expression, below: Expression) -> Expression:
    return ("where", ("less", x, _ZERO), below, x)


def _exp_less_one(x: Expression) -> Expression:
    return ("sub", ("exp", x), _ONE)
