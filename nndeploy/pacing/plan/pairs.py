# SPDX-License-Identifier: Apache-2.0
"""Pairs of operators between which a run may sleep: the edges of the data-flow graph, and which of them a user chose.

Comes in: the edges of a program, and texts such as `Conv a -> Relu b=2ms`. Goes out: pairs, by the numbers of their
points. A delay lies between the end of the first operator and the start of the second; where operators run one after
another it is slept behind the first one, and delays add up. Law: whatever is chosen is an edge of the graph.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.options.texts import nanoseconds_in
from nndeploy.pacing.plan.node_names import NodeNames
from nndeploy.values.types import Array

END = -1
"""The target of a pair behind whose first operator no other one of the program reads what it made."""
END_NAME = "end"
ARROW = "->"
OPTION = "--pace-pair"
_SHOWN = 3


class Pair(NamedTuple):
    """Two points of a program, the second directly behind the first in the data-flow graph, or `END`.

    `preset_ns` is the delay that a user set, 0: it follows from what is granted.
    """

    source: int
    target: int
    preset_ns: int = 0


class ChosenPair(NamedTuple):
    """A pair as a user writes it: names with an arrow between them, and the delay, 0 where that is not said."""

    names: str
    preset_ns: int = 0


def pairs_in(texts: Iterable[str]) -> tuple[ChosenPair, ...]:
    """Returns the pairs that texts of the option say, `a->b` or `a->b=2ms`; whether they exist is not known here.

    Raises:
        UsageError: a text is no pair, or its delay is no time.
    """
    return tuple(map(_pair_in, texts))


def _pair_in(text: str) -> ChosenPair:
    names, equals, time = text.rpartition("=")
    if not equals or not time.strip()[:1].isdigit():  # a name may hold equal signs
        names, time = text, ""
    if not any(all(split) for split in _splits(names)):
        raise UsageError(f"{OPTION} {text!r:.80} is not A->B or A->B=TIME", hint="for example 'Conv a->Relu b=2ms'")
    return ChosenPair(names.strip(), nanoseconds_in(OPTION)(time) if time else 0)


def _splits(names: str) -> Iterator[tuple[str, str]]:
    """Yields the two names of every arrow in a text, for a name may hold one."""
    at = names.find(ARROW)
    while at >= 0:
        yield names[:at].strip(), names[at + len(ARROW) :].strip()
        at = names.find(ARROW, at + 1)


def pair_name(names: Sequence[str], pair: Pair) -> str:
    """Returns a pair as people read it."""
    return f"{names[pair.source]} {ARROW} {END_NAME if pair.target == END else names[pair.target]}"


class PointNames(NamedTuple):
    """What users may call the points of a program.

    `names` are those of the points, `done` the operators that were done until each, by kind and value: a point is also
    meant by such a name, by the value alone, or by what the model calls the node that makes it (`nodes`).
    """

    names: Sequence[str]
    done: Sequence[Sequence[str]]
    nodes: NodeNames = MappingProxyType({})

    def numbers(self, wanted: str) -> set[int]:
        """Returns the points of a name, all that have it.

        Raises:
            UsageError: it is the name of a node, and of another node or operator too.
        """
        named = {number for number, known in enumerate(self.all) if wanted in known}
        every = [named, *(self._done_by(value) for value in self.nodes.get(wanted, ()))]
        meanings = [points for points in every if points]
        if any(points != meanings[0] for points in meanings):
            kinds = [one for points in meanings for number in sorted(points) for one in self.done[number]]
            hint = f"write the kind and value of one: {', '.join(map(repr, dict.fromkeys(kinds))):.200}"
            raise UsageError(f"{OPTION}: {wanted!r:.80} names several operators", hint=hint)
        return meanings[0] if meanings else set()

    def _done_by(self, value: str) -> set[int]:
        """Returns the points until which the operator was done that makes a value."""
        return {number for number, done in enumerate(self.done) if any(one.partition(" ")[2] == value for one in done)}

    @property
    def all(self) -> list[set[str]]:
        """Every name of each point."""
        return [{name, *map(_value, done), *done} for name, done in zip(self.names, self.done, strict=True)]

    def nearest(self, wanted: str) -> str:
        """Returns a hint with the names that are most like one."""
        every = [*(name for names in self.all for name in sorted(names)), *self.nodes]
        near = difflib.get_close_matches(wanted, dict.fromkeys(every), n=_SHOWN, cutoff=0.5)
        if not near:
            return did_you_mean(wanted, dict.fromkeys(self.names))
        return "nearest: " + ", ".join(map(repr, near))


def _value(operator: str) -> str:
    """Returns the value of an operator; exporters of torch call the value of a node by the node's name and a suffix."""
    return operator.partition(" ")[2].removesuffix("_output_0")


def chosen(pairs: Sequence[Pair], points: PointNames, wanted: Sequence[ChosenPair]) -> list[Pair]:
    """Returns those of a program's pairs that a user chose, all of them where none was.

    Raises:
        UsageError: a name is not there, or two that are there are no pair.
    """
    if not wanted:
        return list(pairs)
    found = dict[tuple[int, int], int]()
    for one in wanted:
        for pair in _matching(pairs, points, one):
            if found.setdefault(pair[:2], one.preset_ns) != one.preset_ns:
                raise UsageError(f"{OPTION} sets two delays for {pair_name(points.names, pair)!r:.80}")
    return [pair._replace(preset_ns=found[pair[:2]]) for pair in pairs if pair[:2] in found]


def _matching(pairs: Sequence[Pair], points: PointNames, one: ChosenPair) -> list[Pair]:
    splits = list(_splits(one.names))
    for a, b in splits:
        sources, targets = points.numbers(a), points.numbers(b) | ({END} if b == END_NAME else set())
        if found := [pair for pair in pairs if pair.source in sources and pair.target in targets]:
            return found
    a, b = next(((a, b) for a, b in splits if points.numbers(a)), splits[0])
    for name in (a, b):
        if not points.numbers(name):
            raise UsageError(f"{OPTION}: no operator is named {name!r:.80}", hint=points.nearest(name))
    behind = [pair_name(points.names, pair) for pair in pairs if pair.source in points.numbers(a)]
    listed = ", ".join(repr(name) for name in behind[:_SHOWN]) + ", ..." * (len(behind) > _SHOWN)
    raise UsageError(f"{OPTION}: {b!r:.80} does not read what {a!r:.80} makes", hint=f"its pairs: {listed}")


def presets_of(pairs: Sequence[Pair], num_points: int) -> Array:
    """Returns how many nanoseconds are slept behind each point whatever else is, where one operator runs at a time."""
    presets = np.zeros(num_points)
    for pair in pairs:
        presets[pair.source] += pair.preset_ns
    return presets


def num_sharing(pairs: Sequence[Pair], num_points: int) -> Array:
    """Returns of each point how many of its pairs take their delay from what is granted."""
    counts = np.zeros(num_points)
    for pair in pairs:
        counts[pair.source] += not pair.preset_ns
    return counts
