# SPDX-License-Identifier: Apache-2.0
"""The symbols of a program whose shapes are not fixed, solved from the shapes of a call's inputs.

A symbol is solved from one axis of one input: size = factor * symbol + offset. Where an axis holds a quotient whose
parts no axis gives, the quotient itself is taken as a symbol. Both halves use it, so it imports nothing of onnx.
"""

from collections.abc import Iterable, Sequence

from nndeploy.errors import InputError
from nndeploy.values.size import Atom, Dim, Symbol, bounds, of_atom
from nndeploy.values.solved_symbol import SolvedSymbol


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


def check_shapes(names: Sequence[str], shapes: Sequence[tuple[int, ...]], expected: Sequence[tuple[int, ...]]) -> None:
    """Passes inputs whose shapes are those that follow from the symbols.

    Raises:
        InputError: one has another shape.
    """
    for name, shape, wanted in zip(names, shapes, expected, strict=True):
        if shape != wanted:
            raise InputError(f"input {name!r}: expected {wanted}, got {shape}")
