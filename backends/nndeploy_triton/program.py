# SPDX-License-Identifier: Apache-2.0
"""Elementwise programs on the host: how chains of operators become data for kernels/programs.py.

A program's value i < num_inputs is its i-th input, value num_inputs + j the result of its j-th step, and the last
value is what it gives. Law: `p.after(q, k)` computes p with input k replaced by what q gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Instruction: TypeAlias = tuple[str | int | float, ...]
"""An operator's name and the numbers of its operands, or "const" and a number."""

UNARY = (
    "neg", "abs", "reciprocal", "sqrt", "exp", "log", "sin", "cos", "erf", "sigmoid", "tanh", "softplus", "relu",
    "floor", "ceil", "round", "sign", "not", "isnan", "same", "float",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "max", "min", "less", "less_equal", "equal", "and", "or")
ARITY = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), "where": 3}
MAX_STEPS = 64
"""Longer programs are not fused further: each step may keep a block of values in registers."""


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over `num_inputs` inputs; no steps means the last input as it is. `labels` name it in a kernel's name."""

    num_inputs: int
    steps: tuple[Instruction, ...] = ()
    labels: tuple[str, ...] = ()

    def after(self, inner: "Program", at: int) -> "Program":
        """Returns this program with its input `at` computed by `inner`.

        The inputs are those of `inner`, followed by this program's others in their order.
        """
        num_inputs = inner.num_inputs + self.num_inputs - 1
        moved_inner = _moved(inner, {i: i for i in range(inner.num_inputs)}, num_inputs)
        result = num_inputs + len(moved_inner) - 1 if moved_inner else inner.num_inputs - 1
        places = {at: result}
        for i in range(self.num_inputs):
            if i != at:
                places[i] = inner.num_inputs + i - (i > at)
        moved = _moved(self, places, num_inputs + len(moved_inner))
        return Program(num_inputs, (*moved_inner, *moved), (*inner.labels, *self.labels))

    def with_inputs_merged(self, places: Sequence[int]) -> "Program":
        """Returns the program over fewer inputs: input i is now number `places[i]`."""
        num_inputs = max(places, default=-1) + 1
        moved = _moved(self, dict(enumerate(places)), num_inputs)
        return Program(num_inputs, moved, self.labels)


class ProgramBuilder:
    """Puts a program together step by step; each method returns the number of the new value."""

    def __init__(self, num_inputs: int) -> None:
        self._num_inputs = num_inputs
        self._steps: list[Instruction] = []

    def const(self, value: float) -> int:
        """Returns the number of a value that is always `value`."""
        return self._added(("const", float(value)))

    def apply(self, op: str, *operands: int) -> int:
        """Returns the number of the result of an operator of `ARITY` on earlier values."""
        assert ARITY[op] == len(operands)
        return self._added((op, *operands))

    def program(self, result: int, label: str) -> Program:
        """Returns what was put together, with value `result` as its result."""
        if result != self._num_inputs + len(self._steps) - 1:
            self.apply("same", result)
        return Program(self._num_inputs, tuple(self._steps), (label,))

    def _added(self, step: Instruction) -> int:
        self._steps.append(step)
        return self._num_inputs + len(self._steps) - 1


def identity() -> Program:
    """Returns the program that gives its only input."""
    return Program(1)


def _moved(program: Program, places: dict[int, int], first_result: int) -> tuple[Instruction, ...]:
    """Returns the steps with inputs at `places` and results from number `first_result` on."""
    for j in range(len(program.steps)):
        places[program.num_inputs + j] = first_result + j
    return tuple(
        step if step[0] == "const" else (step[0], *(places[int(i)] for i in step[1:])) for step in program.steps
    )
