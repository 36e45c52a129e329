# SPDX-License-Identifier: Apache-2.0
"""Functions that models spell out: every spelling is found and right, nothing else is taken for one."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from native_models import assert_right, built, each_float_level, model_of, reals
from nndeploy_native.expression_program import OPERATORS, program_of
from nndeploy_native.expressions import Domain, Expression, const, operand
from nndeploy_native.known_functions import with_known_functions

NUMBERS = "<float half = {0.5}, float one = {1}, float root = {1.4142135}, float k = {0.7978846}, float c = {0.044715}>"
ERF = "u = Div(x, root) e = Erf(u) g = Add(e, one)"
CUBE = "xx = Mul(x, x) xxx = Mul(xx, x) cube = Mul(c, xxx) s = Add(x, cube) u = Mul(k, s) t = Tanh(u) g = Add(one, t)"
SPELLINGS = {
    "erf, x first": f"{ERF} h = Mul(x, half) y = Mul(h, g)", "erf, half last": f"{ERF} h = Mul(x, g) y = Mul(half, h)",
    "erf, half within": f"{ERF} h = Mul(half, g) y = Mul(x, h)", "tanh": f"{CUBE} h = Mul(x, half) y = Mul(h, g)",
    "tanh of x (1 + c x x)": """xx = Mul(x, x) cube = Mul(c, xx) s = Add(cube, one) kx = Mul(k, x) u = Mul(kx, s)
        t = Tanh(u) g = Add(t, one) h = Mul(half, g) y = Mul(x, h)""",
    "silu": "s = Sigmoid(x) y = Mul(x, s)", "quick gelu": "u = Mul(root, x) s = Sigmoid(u) y = Mul(x, s)",
    "mish": "p = Softplus(x) t = Tanh(p) y = Mul(x, t)",
}  # fmt: skip
X = np.array([-80, -9, -5.5, -3, -1.2, -1e-3, 0, 1e-4, 0.3, 0.7, 1, 2.5, 3.9, 6, 9, 30, 80], np.float32)


@each_float_level
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_are_right(spelling: str, level: str) -> None:
    model = model_of(f"g (float[17] x) => (float[17] y) {NUMBERS} {{ {SPELLINGS[spelling]} }}")
    assert_right(model, built(model), {"x": X}, level, rtol=2e-6, atol=1e-6)


@each_float_level
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_are_ends_of_products(spelling: str, level: str) -> None:
    """The second operand is a residual, so that the function is one of several operators of the end."""
    body = f"x = MatMul(a, w) {SPELLINGS[spelling]} z = Add(y, r)"
    model = model_of(
        f"g (float[3, 5] a, float[3, 17] r) => (float[3, 17] z) {NUMBERS} {{ {body} }}", {"w": reals(5, 17)}
    )
    artifact = built(model)
    assert_right(model, artifact, {"a": reals(3, 5, seed=1), "r": reals(3, 17, seed=2)}, level)
    assert b'"view_copy"' not in artifact.files["plan.json"]
    assert bytes(artifact.files["plan.json"]).count(b'"kernel"') == 1


def _operators(expression: Expression) -> set[str]:
    words = program_of(expression, 2).words
    count = words[2]
    return {OPERATORS[Domain.FLOAT32][one] for one in words[4 + count : -1 : 5]}


@pytest.mark.parametrize(("place", "swapped"), list(itertools.product(range(3), (False, True))))
def test_every_order_of_gelu_is_one_operator(place: int, swapped: bool) -> None:
    x, root = ("add", operand(0), operand(1)), const(math.sqrt(0.5))
    gate: Expression = ("add", const(1), ("erf", ("mul", root, x))) if swapped else (
        "add", ("erf", ("mul", x, root)), const(1.0))  # fmt: skip
    parts = [x, gate]
    parts.insert(place, const(0.5))
    for first, second, third in (parts, parts[::-1]):
        assert with_known_functions(("mul", ("mul", first, second), third)) == ("gelu", x)
        assert with_known_functions(("mul", first, ("mul", second, third))) == ("gelu", x)


@pytest.mark.parametrize("expression", [
    ("mul", operand(0), ("add", ("erf", operand(0)), const(1))),
    ("mul", operand(1), ("add", ("erf", ("mul", operand(0), const(0.7071068))), const(1))),
    ("mul", operand(0), ("add", ("erf", ("mul", operand(0), const(0.7071068))), const(2))),
    ("mul", operand(0), ("add", ("tanh", operand(0)), const(1))), ("mul", operand(1), ("sigmoid", operand(0))),
    ("mul", const(2), ("sigmoid", const(2))), ("div", operand(0), ("sigmoid", operand(0))),
    ("div", operand(0), const(0.0)), ("tanh", ("mul", ("softplus", operand(0)), const(2))),
])  # fmt: skip
def test_other_expressions_keep_their_value(expression: Expression) -> None:
    found = with_known_functions(expression)
    x = {0: 0.7, 1: -1.3}
    np.testing.assert_allclose(_value(found, x), _value(expression, x), rtol=1e-9)


@pytest.mark.parametrize("spelling", ["gelu", "silu"])
def test_a_factor_of_the_argument_stays_outside(spelling: str) -> None:
    """f(2 x) * y, where the product has x * y only, is f(2 x) * y / 2 of what it would be of 2 x."""
    u = ("mul", operand(0), const(2.0))
    gate: Expression = ("sigmoid", u) if spelling == "silu" else ("add", ("erf", ("mul", u, const(0.5**0.5))), const(1))
    expression: Expression = ("mul", ("mul", operand(1), operand(0)), gate)
    assert spelling in _operators(expression)
    x = {0: 0.7, 1: -1.3}
    np.testing.assert_allclose(_value(with_known_functions(expression), x), _value(expression, x), rtol=1e-7)


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b if b else math.inf, "erf": math.erf,
    "exp": math.exp, "min": min, "tanh": math.tanh, "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x)),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
}  # fmt: skip


def _value(expression: Expression, operands: dict[int, float]) -> float:
    match expression:
        case ("operand", int(number)):
            return operands[number]
        case ("const", float(number) | int(number)):
            return number
    parts = [_value(one, operands) for one in expression[1:] if isinstance(one, tuple)]
    return _FUNCTIONS[str(expression[0])](*parts)
