# SPDX-License-Identifier: Apache-2.0
"""The table of a program whose shapes are not fixed: every size that depends on the inputs, and the C that fills it.

    nnd_compose(symbols, num_symbols, sizes, num_sizes)
        symbols: the atoms that the shapes of the inputs give, in the order of `solved`
        sizes: the table, whose entries steps read as call->sizes[k]

`sizes/solving.py` solves the symbols. Law: the same sizes in the same order give the same text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Atom, Dim, Extreme, Quotient, Size, Symbol
from nndeploy.values.solving import SolvedSymbol


@dataclass(slots=True)
class SizeTable:
    """The entries as steps ask for them, and the C lines that make them."""

    solved: Mapping[Atom, SolvedSymbol]
    sizes: dict[Size, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    _named: dict[Atom, str] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        """Names the symbols."""
        self._named = {atom: f"symbols[{number}]" for number, atom in enumerate(self.solved)}

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
