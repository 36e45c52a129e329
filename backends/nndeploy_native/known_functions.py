# SPDX-License-Identifier: Apache-2.0
"""Functions that models spell out, found in expressions: each is one operator of the library, or a cheaper expression.

    x * (1 + erf(x / sqrt(2))) / 2                                    =>  gelu(x)
    x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2           =>  gelu_tanh(x)
    x * sigmoid(x)                                                    =>  silu(x)
    tanh(softplus(x))                                                 =>  p / (p + 2), p = e * (e + 2), e = exp(x)

A product is the set of its factors and one number, so the order in which they are multiplied, and where the halves
stand, does not matter. Law: the value stays the same but for rounding.

Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016); Misra, Mish (2019).
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce

from nndeploy_native.expressions import Expression, const

NEAR = 1e-5
"""What a number may differ from the one that a function needs, as a part of it: models round them."""
_CUBE = 0.044715
_KNOWN = ("gelu", "gelu_tanh", "silu")


@dataclass(frozen=True, slots=True)
class _Product:
    """A number times factors."""

    number: float
    factors: Counter[Expression] = field(default_factory=Counter)

    def over(self, other: "_Product") -> "_Product | None":
        """Returns the quotient where every factor of the other is one of this product, else None."""
        if not other.factors <= self.factors or other.number == 0.0:
            return None
        return _Product(self.number / other.number, self.factors - other.factors)


def with_known_functions(expression: Expression) -> Expression:
    """Returns an expression of float32 with the functions in it."""
    if expression[0] in ("operand", "const"):
        return expression
    whole: Expression = (
        expression[0],
        *(with_known_functions(one) for one in expression[1:] if isinstance(one, tuple)),
    )
    match whole:
        case ("tanh", ("softplus", tuple(x))):
            return _tanh_of_softplus(x)
        case ("mul" | "div", _, _):
            return _with_gate(_product_of(whole)) or whole
    return whole


def _tanh_of_softplus(x: Expression) -> Expression:
    exponential: Expression = ("exp", ("min", x, const(20)))  # beyond, the quotient is 1
    product: Expression = ("mul", exponential, ("add", exponential, const(2)))
    return ("div", product, ("add", product, const(2)))


def _product_of(expression: Expression) -> _Product:
    match expression:
        case ("const", float(number) | int(number)):
            return _Product(float(number))
        case ("neg", tuple(x)):
            return _times(_Product(-1.0), _product_of(x))
        case ("mul", tuple(a), tuple(b)):
            return _times(_product_of(a), _product_of(b))
        case ("div", tuple(a), ("const", float(number) | int(number))) if number != 0 and math.isfinite(number):
            return _times(_product_of(a), _Product(1.0 / number))
    return _Product(1.0, Counter([expression]))


def _times(a: _Product, b: _Product) -> _Product:
    return _Product(a.number * b.number, a.factors + b.factors)


def _expression_of(product: _Product) -> Expression:
    first, *others = product.factors.elements()
    numbers = [] if product.number == 1.0 else [const(product.number)]
    return reduce(lambda a, b: ("mul", a, b), [*others, *numbers], first)


def _with_gate(product: _Product) -> "Expression | None":
    """Returns a product with a function for two of its factors; None where there is nothing to be found."""
    for gate in product.factors:
        others = _Product(product.number, product.factors - Counter([gate]))
        found = _gated(gate, others)
        if found is not None:
            return _expression_of(found)
    return _expression_of(product) if any(one[0] in _KNOWN for one in product.factors) else None


def _gated(gate: Expression, others: _Product) -> _Product | None:
    """Returns others * gate as a product with a function."""
    match gate:
        case ("sigmoid", tuple(x)):
            return _with_function("silu", others, _product_of(x))
        case ("add", ("erf", tuple(u)), ("const", one)) | ("add", ("const", one), ("erf", tuple(u))) if one == 1:
            argument = _times(_product_of(u), _Product(math.sqrt(2)))
            return _with_function("gelu", _times(others, _Product(2.0)), _without_rounding(argument))
        case ("add", ("tanh", tuple(u)), ("const", one)) | ("add", ("const", one), ("tanh", tuple(u))) if one == 1:
            inner = _inside_tanh(_times(_product_of(u), _Product(math.sqrt(math.pi / 2))))
            return inner and _with_function("gelu_tanh", _times(others, _Product(2.0)), inner)
    return None


def _with_function(name: str, others: _Product, x: _Product) -> _Product | None:
    rest = others.over(x)
    return None if rest is None or not x.factors else _times(rest, _Product(1.0, Counter([(name, _expression_of(x))])))


def _without_rounding(x: _Product) -> _Product:
    return _Product(1.0, x.factors) if _is_near(x.number, 1.0) else x


def _inside_tanh(u: _Product) -> _Product | None:
    """Returns x of u = x + 0.044715 x^3, spelled so or as x * (1 + 0.044715 x^2); None where u is none."""
    if not _is_near(u.number, 1.0):
        return None
    for factor in u.factors:
        match factor:
            case ("add", tuple(a), tuple(b)):
                x = _Product(1.0, u.factors - Counter([factor]))
                for one, more in ((_product_of(a), _product_of(b)), (_product_of(b), _product_of(a))):
                    whole, cube = _times(x, one), _times(x, more)
                    if whole.number == 1.0 and cube.factors == _times(whole, _times(whole, whole)).factors:
                        return whole if _is_near(cube.number, _CUBE) else None
    return None


def _is_near(number: float, wanted: float) -> bool:
    return abs(number - wanted) <= NEAR * abs(wanted)
