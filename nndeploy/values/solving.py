# SPDX-License-Identifier: Apache-2.0
"""The symbols of a program whose shapes are not fixed, solved from the shapes of a call's inputs.

A symbol is solved from one axis of one input: size = factor * symbol + offset. Where an axis holds a quotient whose
parts no axis gives, the quotient itself is taken as a symbol. Both halves use it, so it imports nothing of onnx.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from nndeploy.errors import InputError
from nndeploy.values.size import Atom, Dim, Symbol, bounds, of_atom

_FAR = 2**40


@dataclass(frozen=True, slots=True)
class SolvedSymbol:
    """A symbol: (the size of `axis` of input `number` - `offset`) / `factor`, between `low` and `high`."""

    number: int
    axis: int
    offset: int
    factor: int
    low: int
    high: int

    def value(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> int:
        """Returns the symbol's value; inputs are called `names` and have `shapes`.

        Raises:
            InputError: the axis has a size that is out of range.
        """
        size = shapes[self.number][self.axis]
        value, rest = divmod(size - self.offset, self.factor)
        if rest or not self.low <= value <= self.high:
            low, high = (self.offset + self.factor * end for end in (self.low, self.high))
            steps = f" in steps of {self.factor}" if self.factor > 1 else ""
            raise InputError(
                f"input {names[self.number]!r}: axis {self.axis} has size {size}, kernels are for {low}..{high}{steps}"
            )
        return value


def solved_symbols(shapes: Iterable[Sequence[Dim]]) -> dict[Atom, SolvedSymbol]:
    """Returns the symbols that the shapes of the inputs give, each from the first axis that gives it alone."""
    found: dict[Atom, SolvedSymbol] = {}
    for number, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            atom, solved = _solved(size, number, axis)
            if atom is not None and solved is not None:
                found.setdefault(atom, solved)
    alone = {atom for atom in found if isinstance(atom, Symbol)}
    return {atom: one for atom, one in found.items() if atom in alone or not of_atom(atom).symbols <= alone}


def _solved(size: Dim, number: int, axis: int) -> tuple[Atom, SolvedSymbol] | tuple[None, None]:
    if isinstance(size, int):
        return None, None
    terms = dict(size.terms)
    offset = terms.pop((), 0)
    if len(terms) != 1:
        return None, None
    ((atoms, factor),) = terms.items()
    if len(atoms) != 1 or factor < 1:
        return None, None
    low, high = bounds(of_atom(atoms[0]))
    return atoms[0], SolvedSymbol(number, axis, offset, factor, low, high)


def solved_from_json(data: Any, ranks: Sequence[int]) -> tuple[SolvedSymbol, ...]:
    """Returns the symbols that plain data describes, for inputs of `ranks`.

    Raises:
        ValueError, TypeError, KeyError: it is malformed, or names an axis that is not there.
    """
    names = [field.name for field in fields(SolvedSymbol)]
    symbols = tuple(SolvedSymbol(*(_whole(one[name]) for name in names)) for one in data)
    for one in symbols:
        if not (0 <= one.number < len(ranks) and 0 <= one.axis < ranks[one.number]):
            raise ValueError(f"a symbol of axis {one.axis} of input {one.number}")
        if one.factor < 1 or one.low > one.high:
            raise ValueError(f"a symbol between {one.low} and {one.high} by {one.factor}")
    return symbols


def check_shapes(names: Sequence[str], shapes: Sequence[tuple[int, ...]], expected: Sequence[tuple[int, ...]]) -> None:
    """Passes inputs whose shapes are those that follow from the symbols.

    Raises:
        InputError: one has another shape.
    """
    for name, shape, wanted in zip(names, shapes, expected, strict=True):
        if shape != wanted:
            raise InputError(f"input {name!r}: expected {wanted}, got {shape}")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _FAR:
        raise ValueError(f"not a number: {value!r:.40}")
    return value
