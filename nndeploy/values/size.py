# SPDX-License-Identifier: Apache-2.0
"""A size that depends on symbols, as a polynomial with whole coefficients over atoms.

An atom is a symbol, a quotient rounded down, or the smaller or larger of two sizes. Arithmetic with int works as
between ints and gives an int wherever nothing symbolic is left. A comparison is answered where the bounds of the
symbols decide it and raises `UndecidedError` otherwise; so does every attempt to make an int of a size: code that was
written for ints either gives what holds for every size in range, or says that it cannot.

Laws: equal polynomials are equal sizes; `parsed_size` of the text of a size gives an equal one; what `evaluated` gives
lies within `bounds`.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from nndeploy.errors import BuildRefusedError

Dim: TypeAlias = "int | Size"

MAX_SIZE = 2**31 - 1
MAX_WEIGHT = 256
"""Atoms and coefficients of a size, inner ones included: beyond, it is not worth following."""
_FAR = 2**62
_SHOWN = 60


class UndecidedError(BuildRefusedError):
    """What was asked depends on which of its sizes a symbol has."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that is known when the inputs are: low, low + step, ..., high."""

    name: str
    low: int = 0
    high: int = MAX_SIZE

    def __str__(self) -> str:
        return f"{{{self.name}}}"


@dataclass(frozen=True, slots=True)
class Quotient:
    """`dividend` // `divisor`, which is positive."""

    dividend: Dim
    divisor: Dim

    def __str__(self) -> str:
        return f"({self.dividend})//({self.divisor})"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smaller of two sizes, or the larger."""

    kind: str
    first: Dim
    second: Dim

    def __str__(self) -> str:
        return f"{self.kind}({self.first}, {self.second})"


Atom: TypeAlias = Symbol | Quotient | Extreme
Monomial: TypeAlias = tuple[Atom, ...]
Replacement: TypeAlias = "Callable[[Atom], Dim | None]"
_Terms: TypeAlias = Mapping[Monomial, int]


class Size:
    """A sum of products of atoms, each with a coefficient; never a plain number."""

    __slots__ = ("_bounds", "_hash", "_text", "terms", "weight")

    terms: tuple[tuple[Monomial, int], ...]
    weight: int

    def __init__(self, terms: Iterable[tuple[Monomial, int]]) -> None:
        """`terms` are sorted, without zeros; `made` is how to get a size."""
        self.terms = tuple(terms)
        self.weight = sum(1 + sum(map(_weight, atoms)) for atoms, _ in self.terms)
        if self.weight > MAX_WEIGHT:
            raise UndecidedError("a size that depends on the inputs in too many ways")
        self._hash = hash(self.terms)
        self._text = ""
        self._bounds: tuple[int, int] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether both are the same polynomial; sizes that only happen to be equal are not."""
        return isinstance(other, Size) and self.terms == other.terms

    def __lt__(self, other: Dim) -> bool:
        difference = self - other
        low, high = bounds(difference)
        if high < 0 or low >= 0:
            return high < 0
        raise UndecidedError(f"it depends on whether {_short(self)} is less than {_short(other)}")

    def __le__(self, other: Dim) -> bool:
        return self == other or self < other + 1

    def __gt__(self, other: Dim) -> bool:
        return not self <= other

    def __ge__(self, other: Dim) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise UndecidedError(f"it depends on whether {_short(self)} is zero")

    def __index__(self) -> int:
        raise UndecidedError(f"the size {_short(self)} is not fixed")

    def __add__(self, other: Dim) -> Dim:
        if not isinstance(other, int | Size):
            return NotImplemented
        terms = dict(self.terms)
        for atoms, count in _terms(other).items():
            terms[atoms] = terms.get(atoms, 0) + count
        return _made(terms)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _made({atoms: -count for atoms, count in self.terms})

    def __sub__(self, other: Dim) -> Dim:
        return self + (-other)

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        if not isinstance(other, int | Size):
            return NotImplemented
        terms: dict[Monomial, int] = {}
        for (left, a), (right, b) in itertools.product(self.terms, _terms(other).items()):
            atoms = tuple(sorted(left + right, key=str))
            terms[atoms] = terms.get(atoms, 0) + a * b
        return _made(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return _quotient(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _quotient(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return self - other * (self // other)

    def __rmod__(self, other: int) -> Dim:
        return other - self * (other // self)

    def __str__(self) -> str:
        if not self._text:
            self._text = " + ".join(_term_text(atoms, count) for atoms, count in self.terms)
        return self._text

    __repr__ = __str__

    @property
    def symbols(self) -> frozenset[Symbol]:
        """The symbols that the size depends on."""
        return frozenset(itertools.chain.from_iterable(_symbols(atom) for atoms, _ in self.terms for atom in atoms))


def symbol(name: str, low: int = 0, high: int = MAX_SIZE) -> Size:
    """Returns the size that is a symbol."""
    return Size([((Symbol(name, low, high),), 1)])


def of_atom(atom: Atom) -> Size:
    """Returns the size that is an atom."""
    return Size([((atom,), 1)])


def least(first: Dim, *others: Dim) -> Dim:
    """Returns the smallest of sizes, as a size where it depends."""
    return _extreme("min", first, others, operator.le)


def most(first: Dim, *others: Dim) -> Dim:
    """Returns the largest of sizes, as a size where it depends."""
    return _extreme("max", first, others, operator.ge)


def ceil_div(size: Dim, divisor: Dim) -> Dim:
    """Returns size / divisor, rounded up."""
    return (size + divisor - 1) // divisor


def exact_quotient(dividend: Dim, divisor: Dim) -> "Dim | None":
    """Returns dividend / divisor where each term is divided without a rest, else None; the divisor is not zero."""
    if divisor == 0 or (isinstance(divisor, Size) and len(divisor.terms) > 1):
        return None
    parts = [_divided(atoms, count, divisor) for atoms, count in _terms(dividend).items()]
    return _made(dict(part for part in parts if part is not None)) if None not in parts else None


def product(sizes: Iterable[Dim]) -> Dim:
    """Returns the product of sizes, 1 of none."""
    result: Dim = 1
    for size in sizes:
        result = result * size
    return result


def bounds(size: Dim) -> tuple[int, int]:
    """Returns numbers that the size lies between, both included; the nearest that follow term by term."""
    if isinstance(size, int):
        return size, size
    if size._bounds is None:
        low = high = 0
        for atoms, count in size.terms:
            ends = _product_bounds([(count, count), *map(_atom_bounds, atoms)])
            low, high = max(low + ends[0], -_FAR), min(high + ends[1], _FAR)
        size._bounds = low, high
    return size._bounds


def may_be_equal(first: Dim, second: Dim) -> bool:
    """Whether two sizes are equal for some values of their symbols, as far as their bounds tell."""
    low, high = bounds(first - second)
    return low <= 0 <= high


def is_fixed(sizes: Iterable[Dim]) -> bool:
    """Whether none of some sizes depends on the inputs."""
    return not any(isinstance(size, Size) for size in sizes)


def fixed(size: Dim) -> int:
    """Returns a size as a number.

    Raises:
        UndecidedError: it depends on the inputs.
    """
    return operator.index(size)


def typical(size: Dim) -> int:
    """Returns the number where each symbol is in the middle of its range: for choices that only speed depends on."""
    return cast(int, replaced(size, lambda one: (one.low + one.high) // 2 if isinstance(one, Symbol) else None))


def evaluated(size: Dim, values: Mapping[str, int]) -> int:
    """Returns the number where each symbol has its value.

    Raises:
        KeyError: a symbol has none.
    """
    if isinstance(size, int):
        return size
    return sum(count * math.prod(_number(atom, values) for atom in atoms) for atoms, count in size.terms)


def _number(atom: Atom, values: Mapping[str, int]) -> int:
    match atom:
        case Symbol():
            return values[atom.name]
        case Quotient():
            return evaluated(atom.dividend, values) // evaluated(atom.divisor, values)
    choose = min if atom.kind == "min" else max
    return choose(evaluated(atom.first, values), evaluated(atom.second, values))


def replaced(size: Dim, replacement: Replacement) -> Dim:
    """Returns the size with atoms replaced, simplified anew; of one that gets None the parts are asked for."""
    if isinstance(size, int):
        return size
    result: Dim = 0
    for atoms, count in size.terms:
        result = result + product([count, *(_replaced_atom(atom, replacement) for atom in atoms)])
    return result


def _replaced_atom(atom: Atom, replacement: Replacement) -> Dim:
    found = replacement(atom)
    if found is not None:
        return found
    match atom:
        case Symbol():
            return of_atom(atom)
        case Quotient():
            return replaced(atom.dividend, replacement) // replaced(atom.divisor, replacement)
    choose = least if atom.kind == "min" else most
    return choose(replaced(atom.first, replacement), replaced(atom.second, replacement))


def parts_of(atom: Atom) -> tuple[Dim, ...]:
    """Returns the sizes that an atom is made of."""
    match atom:
        case Quotient():
            return atom.dividend, atom.divisor
        case Extreme():
            return atom.first, atom.second
    return ()


def atoms_of(size: Dim) -> Iterator[Atom]:
    """Yields the outer atoms of a size."""
    if isinstance(size, Size):
        yield from itertools.chain.from_iterable(atoms for atoms, _ in size.terms)


def _short(size: Dim) -> str:
    text = str(size)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _made(terms: _Terms) -> Dim:
    kept = {atoms: count for atoms, count in terms.items() if count}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Size(sorted(kept.items(), key=lambda item: (-len(item[0]), [str(atom) for atom in item[0]])))


def _terms(size: Dim) -> _Terms:
    if isinstance(size, Size):
        return dict(size.terms)
    return {(): int(size)} if size else {}


def _quotient(dividend: Dim, divisor: Dim) -> Dim:
    """Returns dividend // divisor: exact parts are taken out, (4 h + r) // 2 is 2 h + r // 2."""
    if bounds(divisor)[0] < 1:
        raise UndecidedError(f"it divides by {_short(divisor)}, which may be zero")
    whole, rest = dict[Monomial, int](), dict[Monomial, int]()
    for atoms, count in _terms(dividend).items():
        exact = _divided(atoms, count, divisor)
        if exact is not None:
            whole[exact[0]] = whole.get(exact[0], 0) + exact[1]
        elif not atoms and isinstance(divisor, int):
            whole[()], rest[()] = whole.get((), 0) + count // divisor, count % divisor
        else:
            rest[atoms] = count
    left = _made(rest)
    if isinstance(left, int) and isinstance(divisor, int):
        return _made(whole) + left // divisor
    low, high = bounds(left)
    if low >= 0 and high < bounds(divisor)[0]:
        return _made(whole)
    return _made(whole) + of_atom(Quotient(left, divisor))


def _divided(atoms: Monomial, count: int, divisor: Dim) -> tuple[Monomial, int] | None:
    """Returns a term divided by a divisor of one term, None where that leaves a rest."""
    (taken, by), *others = _terms(divisor).items()
    if others or count % by:
        return None
    left = list(atoms)
    for atom in taken:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left), count // by


def _extreme(kind: str, first: Dim, others: Iterable[Dim], is_first: Callable[[Dim, Dim], bool]) -> Dim:
    result = first
    for other in others:
        if _holds(is_first, other, result):
            result = other
        elif not _holds(is_first, result, other):
            pairs = ((result, other), (other, result))
            absorbed = [one for one in (_absorbed(kind, *pair) for pair in pairs) if one is not None]
            result = absorbed[0] if absorbed else of_atom(Extreme(kind, *sorted((result, other), key=str)))
    return result


def _absorbed(kind: str, whole: Dim, part: Dim) -> "Dim | None":
    """Returns which of two sizes is the extreme where the first is one of the second: max(min(a, b), b) is b."""
    match whole:
        case Size(terms=(((Extreme() as one,), 1),)) if part in (one.first, one.second):
            return whole if one.kind == kind else part
    return None


def _holds(relation: Callable[[Dim, Dim], bool], one: Dim, other: Dim) -> bool:
    """Whether a relation holds for sure."""
    try:
        return relation(one, other)
    except UndecidedError:
        return False


def _weight(atom: Atom) -> int:
    return 1 + sum(part.weight if isinstance(part, Size) else 1 for part in parts_of(atom))


def _symbols(atom: Atom) -> Iterator[Symbol]:
    if isinstance(atom, Symbol):
        yield atom
    for part in parts_of(atom):
        if isinstance(part, Size):
            yield from part.symbols


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    match atom:
        case Symbol():
            return atom.low, atom.high
        case Quotient():
            ends, divisors = bounds(atom.dividend), bounds(atom.divisor)
            found = [end // max(1, divisor) for end in ends for divisor in divisors]
            return min(found), max(found)
    first, second = bounds(atom.first), bounds(atom.second)
    choose = min if atom.kind == "min" else max
    return choose(first[0], second[0]), choose(first[1], second[1])


def _product_bounds(factors: Iterable[tuple[int, int]]) -> tuple[int, int]:
    low = high = 1
    for first, last in factors:
        found = [a * b for a in (low, high) for b in (first, last)]
        low, high = max(min(found), -_FAR), min(max(found), _FAR)
    return low, high


def _term_text(atoms: Monomial, count: int) -> str:
    parts = [str(count)] if count != 1 or not atoms else []
    return "*".join((*parts, *map(str, atoms)))
