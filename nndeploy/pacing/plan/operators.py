# SPDX-License-Identifier: Apache-2.0
"""What the operators of a submodel compute and move, counted from shapes when it was compiled.

A backend fuses operators, moves them, leaves some out; what it keeps are names of values. So an operator belongs to the
pace point behind which its value stands, and one without a point to that of its first reader. Values between operators
of one point are not counted as moved.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_OF_BYTES = re.compile("^Q[A-Z]|[qQ]uantize|Integer|NBits")
"""What kinds of operators compute with integers of few bits, or make them."""


class Amount(NamedTuple):
    """What is computed, a multiply-add counted as two, and the bytes that are read and written for it."""

    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of `kind` from values to values, by their numbers; one without flops only gives a value a new name.

    `constant_bytes` are those of its weights.
    """

    kind: str
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    flops: int
    constant_bytes: int


class PointFlow(NamedTuple):
    """What flows between the points of a submodel.

    `edges` are points of which the second reads what the first made; `readers` are those of each of the submodel's own
    inputs, `makers` the point behind which each value stands, by name. `done` says of each point which operators were
    done since the one before, by kind and value; `is_known`, whether they are known, or copy a value that is.
    """

    edges: set[tuple[int, int]]
    readers: dict[str, set[int]]
    makers: dict[str, int]
    done: list[tuple[str, ...]]
    is_known: list[bool]


@dataclass(frozen=True)
class Operators:
    """The operators of a submodel, in running order, and the names and bytes of the values between them."""

    values: tuple[tuple[str, int], ...]
    operators: tuple[Operator, ...]

    def each(self) -> list[tuple[str, Amount, str]]:
        """Returns every operator by itself: its kind and value, its amount, and its value alone."""
        return [
            (self._name(number), self._amount([number]), self.values[one.makes[0]][0])
            for number, one in enumerate(self.operators)
            if one.flops and one.makes
        ]

    def whole(self) -> Amount:
        """Returns the amount of all of them, done together."""
        return self._amount(range(len(self.operators)))

    def between(self, points: Sequence[Sequence[str]]) -> list[Amount]:
        """Returns the amount of each point, by the names of the values that were made since the one before.

        A value that stands there again is a copy of it in another layout; a name of the backend's own is nothing.
        """
        owners, copies, _ = self._owners(points)
        copied_bytes = [0] * len(points)
        for point, value in copies:
            copied_bytes[point] += 2 * self.values[value][1]
        amounts = zip(map(self._amount, self._groups(owners, len(points))), copied_bytes, strict=True)
        return [Amount(amount.flops, amount.bytes + copied) for amount, copied in amounts]

    def quantised(self, points: Sequence[Sequence[str]]) -> list[bool]:
        """Returns whether operators of each point compute with integers of few bits, for points as of `between`."""
        return [self.is_quantised(group) for group in self._groups(self._owners(points)[0], len(points))]

    def is_quantised(self, numbers: Iterable[int]) -> bool:
        """Returns whether any of some operators, by number, does."""
        return any(_OF_BYTES.search(self.operators[number].kind) for number in numbers)

    def flow(self, points: Sequence[Sequence[str]]) -> PointFlow:
        """Returns what flows between points, which are given as in `between`.

        Who reads a value by another name reads what was made, unless the operator that only names it has a point of its
        own; a value that no operator here makes is an input. A copy stands between who made the value and those who
        read it later.
        """
        owners, copies, named = self._owners(points)
        edges, readers, makers = set[tuple[int, int]](), dict[str, set[int]](), dict[str, int]()
        readers_of_source = dict[int, set[int]]()
        for number, (one, reader) in enumerate(zip(self.operators, owners, strict=True)):
            for value in one.reads if one.flops or number in named else ():
                if reader is None:
                    continue
                source = self._source(value, named)
                readers_of_source.setdefault(source, set()).add(reader)
                if source not in self._makers:
                    readers.setdefault(self.values[source][0], set()).add(reader)
                elif (point := owners[self._makers[source]]) is not None:
                    edges.add((point, reader))
        for number, (name, _) in enumerate(self.values):
            maker = self._makers.get(self._source(number, named))
            if maker is not None and (point := owners[maker]) is not None:
                makers[name] = point
        for copy, value in copies:
            if (name := self.values[value][0]) in makers:
                edges.add((makers[name], copy))
            else:
                readers.setdefault(name, set()).add(copy)
            edges |= {(copy, reader) for reader in readers_of_source.get(self._source(value, named), ())}
        makers |= {self.values[value][0]: copy for copy, value in copies if self.values[value][0] in makers}
        done = [tuple(self._name(number) for number in group) for group in self._groups(owners, len(points))]
        known = {*owners, *(point for point, _ in copies)}
        edges = {(a, b) for a, b in edges if a < b}
        return PointFlow(edges, readers, makers, done, [point in known for point in range(len(points))])

    def _source(self, value: int, named: Collection[int]) -> int:
        """Returns the value that one is another name of, itself where it is none; `named` make values of their own."""
        while True:
            maker = self._makers.get(value)
            if maker is None or maker in named or self.operators[maker].flops or not self.operators[maker].reads:
                return value
            value = self.operators[maker].reads[0]

    def _name(self, number: int) -> str:
        one = self.operators[number]
        return f"{one.kind} {self.values[one.makes[0]][0]}" if one.makes else one.kind

    @staticmethod
    def _groups(owners: Sequence[int | None], num_points: int) -> list[list[int]]:
        """Returns the numbers of the operators of each point."""
        groups: list[list[int]] = [[] for _ in range(num_points)]
        for number, owner in enumerate(owners):
            if owner is not None:
                groups[owner].append(number)
        return groups

    def _owners(
        self, points: Sequence[Sequence[str]]
    ) -> tuple[list[int | None], list[tuple[int, int]], frozenset[int]]:
        """Returns the point that each operator belongs to or None, (point, value) of each copy, and who is named.

        The latter are the operators whose values stand at a point.
        """
        numbers = {name: number for number, (name, _) in enumerate(self.values)}
        owners: list[int | None] = [None] * len(self.operators)
        copies = list[tuple[int, int]]()
        for point, value in (
            (point, numbers[name]) for point, names in enumerate(points) for name in names if name in numbers
        ):
            maker = self._makers.get(value)
            if maker is not None and owners[maker] is None:
                owners[maker] = point
            else:
                copies.append((point, value))
        named = frozenset(number for number, owner in enumerate(owners) if owner is not None)
        for number in reversed(range(len(owners))):
            if owners[number] is None:
                readers = (owners[reader] for reader in self._readers_of(number))
                owners[number] = next((point for point in readers if point is not None), None)
        return owners, copies, named

    @cached_property
    def _makers(self) -> dict[int, int]:
        """Who makes each value."""
        return {value: number for number, one in enumerate(self.operators) for value in one.makes}

    @cached_property
    def _readers(self) -> dict[int, list[int]]:
        """Who reads each value, in running order."""
        readers = dict[int, list[int]]()
        for number, one in enumerate(self.operators):
            for value in one.reads:
                readers.setdefault(value, []).append(number)
        return readers

    @cached_property
    def _in_memory(self) -> list[int]:
        """The value whose memory each value is in: that of another one where it is only a new name of it."""
        found = list(range(len(self.values)))
        for one in self.operators:
            if not one.flops and one.reads:
                for value in one.makes:
                    found[value] = found[one.reads[0]]
        return found

    @cached_property
    def _working_readers(self) -> dict[int, set[int]]:
        """Those who read each memory and compute something."""
        readers = dict[int, set[int]]()
        for number, one in enumerate(self.operators):
            for value in one.reads if one.flops else ():
                readers.setdefault(self._in_memory[value], set()).add(number)
        return readers

    def _readers_of(self, number: int) -> Iterator[int]:
        found = {reader for value in self.operators[number].makes for reader in self._readers.get(value, ())}
        yield from sorted(found)

    def _amount(self, numbers: Sequence[int]) -> Amount:
        """Returns what some operators do together: a value that nobody else reads stays between them."""
        working = {number for number in numbers if self.operators[number].flops}
        mine = [self.operators[number] for number in sorted(working)]
        made = {value for one in mine for value in one.makes}
        read = {self._in_memory[value] for one in mine for value in one.reads} - made
        readers = self._working_readers
        written = {value for value in made if not readers.get(value) or readers[value] - working}
        moved = sum(self.values[value][1] for value in read | written) + sum(one.constant_bytes for one in mine)
        return Amount(sum(one.flops for one in mine), moved)
