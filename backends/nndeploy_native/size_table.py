# SPDX-License-Identifier: Apache-2.0
"""The table of a program whose shapes are not fixed: every size that depends on the inputs, and the C that fills it.

    nnd_compose(symbols, num_symbols, sizes, num_sizes)
        symbols: the atoms that the shapes of the inputs give, in the order of `solved`
        sizes: the table, whose entries steps read as call->sizes[k]

A symbol is solved from one axis of one input: size = factor * symbol + offset. Where an axis holds a quotient that no
axis gives the parts of, the quotient itself is taken as a symbol. Law: the same sizes in the same order give the same
text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nndeploy.plugin.interface import BuildRefusedError
from nndeploy.sizes.size import Atom, Dim, Extreme, Quotient, Size, Symbol, bounds, of_atom
from nndeploy_native.tensors import Shape


@dataclass(frozen=True, slots=True)
class Solved:
    """A symbol: (the size of `axis` of input `number` - `offset`) / `factor`, between `low` and `high`."""

    atom: Atom
    number: int
    axis: int
    offset: int
    factor: int
    low: int
    high: int


def solved_symbols(shapes: Iterable[Shape]) -> tuple[Solved, ...]:
    """Returns the symbols that the shapes of the inputs give, each from the first axis that gives it alone."""
    found: dict[Atom, Solved] = {}
    for number, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            one = _solved(size, number, axis)
            if one is not None and (one.atom not in found):
                found[one.atom] = one
    return tuple(found.values())


def _solved(size: Dim, number: int, axis: int) -> Solved | None:
    if isinstance(size, int):
        return None
    terms = dict(size.terms)
    offset = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((atoms, factor),) = terms.items()
    if len(atoms) != 1 or factor < 1:
        return None
    low, high = bounds(of_atom(atoms[0]))
    return Solved(atoms[0], number, axis, offset, factor, low, high)


@dataclass(slots=True)
class SizeTable:
    """The entries as steps ask for them, and the C lines that make them."""

    solved: tuple[Solved, ...]
    sizes: dict[Size, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _named: dict[Atom, str] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        """Names the symbols."""
        self._named = {one.atom: f"symbols[{number}]" for number, one in enumerate(self.solved)}

    @property
    def num_entries(self) -> int:
        """The entries of the table."""
        return self._count

    def entry_of(self, size: Size) -> int:
        """Returns the entry that holds a size.

        Raises:
            BuildRefusedError: the shapes of the inputs do not give it.
        """
        if size not in self.sizes:
            self.sizes[size] = self.added(self.code_of(size))
        return self.sizes[size]

    def added(self, code: str) -> int:
        """Returns a new entry that holds what a C expression gives."""
        self._count += 1
        self.lines.append(f"sizes[{self._count - 1}] = {code};")
        return self._count - 1

    def code_of(self, size: Dim) -> str:
        """Returns a C expression of a size.

        Raises:
            BuildRefusedError: the shapes of the inputs do not give it.
        """
        if isinstance(size, int):
            return f"(nnd_size){size}" if abs(size) < 2**31 else f"(nnd_size){size}ll"
        if size in self.sizes:
            return f"sizes[{self.sizes[size]}]"
        parts = ["*".join((f"{count}", *map(self._atom, atoms))) for atoms, count in size.terms]
        return f"({' + '.join(parts)})"

    def _atom(self, atom: Atom) -> str:
        if atom not in self._named:
            code = self._computed(atom)
            self._named[atom] = f"t{len(self._named)}"
            self.lines.append(f"const nnd_size {self._named[atom]} = {code};")
        return self._named[atom]

    def _computed(self, atom: Atom) -> str:
        match atom:
            case Quotient():
                return f"nnd_floor_div({self.code_of(atom.dividend)}, {self.code_of(atom.divisor)})"
            case Extreme():
                return f"nnd_{atom.kind}({self.code_of(atom.first)}, {self.code_of(atom.second)})"
            case Symbol():
                raise BuildRefusedError(f"the size {atom.name!r} cannot be told from the shapes of the inputs here")


def largest_code(codes: Iterable[str]) -> str:
    """Returns a C expression of the largest of some, 0 of none."""
    result = "(nnd_size)0"
    for code in dict.fromkeys(codes):
        result = f"nnd_max({result}, {code})"
    return result
