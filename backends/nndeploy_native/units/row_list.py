# SPDX-License-Identifier: Apache-2.0
"""Element-wise units and those along the last axis, by the number that a table's row names them by.

Law: c/units/links.h and along.h have the same numbers; a test compiles them and compares.
"""

_ONE = (
    "relu", "neg", "abs", "sqrt", "reciprocal", "floor", "ceil", "exp", "log", "erf", "sigmoid", "tanh", "silu",
    "hardswish", "gelu", "softplus",
)  # fmt: skip
_TWO = ("add", "sub", "mul", "div", "max", "min", "sub_from", "div_into")
_ALONG = ("softmax", "layer_norm", "sum", "mean", "largest")
ONE_OPERAND = {name: 32 + number for number, name in enumerate(_ONE)}
TWO_OPERANDS = {name: 64 + number for number, name in enumerate(_TWO)}
"""`sub_from` is the second operand minus the first, `div_into` the second by the first."""
ALONG = {name: 80 + number for number, name in enumerate(_ALONG)}
ELEMENTWISE = ONE_OPERAND | TWO_OPERANDS
ROW_UNITS = ELEMENTWISE | ALONG
KEEPS_ROWS = frozenset(("softmax", "layer_norm"))
MOST_OPERANDS = 16
RUN_FLOATS, NARROW, ALONG_VECTORS = 2048, 256, 8
"""Floats of a block, of the longest row that shares a block with others, and vectors of a row in registers."""
