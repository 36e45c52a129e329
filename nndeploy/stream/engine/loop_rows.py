# SPDX-License-Identifier: Apache-2.0
"""Records of a loop in one call: a row each, with the states of all of them in common arrays.

The cache of a record is as long as what the record was given, so records that go round together differ in length. Those
that are shorter begin with zeros, in their cache and in each input whose length goes with the cache's, as a mask: so
the mask says of what was filled up that it is not there. Whether a model leaves such places out cannot be seen in it;
who calls it compares (`Runner.run_rows`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import and_, or_
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nndeploy.stream.records import Record

_Array: TypeAlias = np.ndarray[Any, Any]
_Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The states of records that went round together: a row each, the first `padding` places of its caches zeros."""

    values: _Values
    padding: tuple[int, ...] = (0,)


@dataclass(slots=True, eq=False)
class Going:
    """A record that goes round, with its state, a row of `states`, and what the model takes besides."""

    record: Record
    states: States
    row: int
    inputs: _Values = field(default_factory=dict)


class CacheAxes:
    """The axes along which the inputs of a state grow, by their names; of the others all is one size."""

    def __init__(self, first: _Values) -> None:
        """Takes the state in which a record begins: caches are empty there."""
        empty = {name: [axis for axis, size in enumerate(value.shape) if size == 0] for name, value in first.items()}
        self._axes = {name: axes[0] for name, axes in empty.items() if len(axes) == 1 and axes[0] > 0}

    def length(self, going: Going) -> int | None:
        """Returns how long the caches of a record are, None where they differ."""
        padding = going.states.padding[going.row]
        lengths = {going.states.values[name].shape[axis] - padding for name, axis in self._axes.items()}
        return lengths.pop() if len(lengths) == 1 else None if lengths else 0

    def are_alike(self, going: Going, other: Going) -> bool:
        """Returns whether the states of two records differ in the length of their caches alone."""
        if going.states is other.states:
            return True
        own, others = going.states.values, other.states.values
        return all(self._kind(name, value) == self._kind(name, others[name]) for name, value in own.items())

    def _kind(self, name: str, value: _Array) -> object:
        axis = self._axes.get(name)
        return value.dtype, [size for i, size in enumerate(value.shape) if i not in (0, axis)]

    def state(self, going: Going) -> _Values:
        """Returns the state of a record as it is without the others."""
        states, row = going.states, going.row
        if states.padding == (0,):
            return states.values
        return {
            name: self.without(name, value[row : row + 1], states.padding[row]) for name, value in states.values.items()
        }

    def without(self, name: str, value: _Array, padding: int) -> _Array:
        """Returns a value of the state, or another one under a name that is none of it, without what was filled up."""
        axis = self._axes.get(name)
        return value if axis is None else value[(slice(None),) * axis + (slice(padding, None),)]

    def joined(self, group: Sequence[Going]) -> States:
        """Returns the states of some records, in their order; nothing is copied where they went together before."""
        before = group[0].states
        if len(before.padding) == len(group) and all(g.states is before and g.row == i for i, g in enumerate(group)):
            return before
        states, lengths = [self.state(going) for going in group], [self.length(going) or 0 for going in group]
        padding = tuple(max(lengths) - length for length in lengths)
        return States({name: _side_by_side([one[name] for one in states]) for name in states[0]}, padding)


class Group:
    """Records that one call can take.

    Of each axis of an input either all have the same size, or it is longer by as much as the record's cache is.
    """

    def __init__(self, going: Going, caches: CacheAxes, most: int, *, may_fill_up: bool) -> None:
        """Begins with one record; at most `most` belong together, of one length where they may not be filled up."""
        self.members = [going]
        self._caches, self._may_fill_up = caches, may_fill_up
        self._length, self._form = caches.length(going), _form_of_row(going.inputs)
        self._most = 1 if self._length is None or self._form is None else most
        sizes = self._form.sizes if self._form is not None else ()
        self._is_same, self._follows = [True] * len(sizes), [True] * len(sizes)

    def take(self, going: Going) -> bool:
        """Takes one more record if it fits; returns whether it does."""
        first, before = self._form, self._length
        if len(self.members) >= self._most or first is None or before is None:
            return False
        form, length = _form_of_row(going.inputs), self._caches.length(going)
        if form is None or length is None or form.kinds != first.kinds or not (self._may_fill_up or length == before):
            return False
        own = list(zip(first.sizes, form.sizes, strict=True))
        is_same = [one == other for one, other in own]
        follows = [other - one == length - before for one, other in own]
        is_same, follows = _both(self._is_same, is_same), _both(self._follows, follows)
        if not all(map(or_, is_same, follows)) or not self._caches.are_alike(self.members[0], going):
            return False
        self.members.append(going)
        self._is_same, self._follows = is_same, follows
        return True


class _Form(NamedTuple):
    """What must be equal in records that go together, and the sizes of their inputs behind the first axis."""

    kinds: list[object]
    sizes: list[int]


def _form_of_row(inputs: _Values) -> _Form | None:
    """Returns the form of inputs of one row each, None where they are something else."""
    if not all(isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == 1 for value in inputs.values()):
        return None
    kinds: list[object] = [(name, value.dtype, value.ndim) for name, value in inputs.items()]
    return _Form(kinds, [size for value in inputs.values() for size in value.shape[1:]])


def _both(some: Sequence[bool], others: Sequence[bool]) -> list[bool]:
    return list(map(and_, some, others))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A call of several records, which a `Group` holds; the one with the shortest caches comes first."""

    group: Sequence[Going]
    states: States
    caches: CacheAxes

    @property
    def is_filled_up(self) -> bool:
        """Whether one of them begins with what is not its own."""
        return any(self.states.padding)

    def inputs(self) -> dict[str, _Array]:
        """Returns the inputs of the call."""
        own = [going.inputs for going in self.group]
        return {name: _side_by_side([one[name] for one in own]) for name in own[0]} | dict(self.states.values)

    def alone(self) -> list[dict[str, _Array]]:
        """Returns the inputs of each record by itself."""
        return [{**going.inputs, **self.caches.state(going)} for going in self.group]

    def apart(self, outputs: _Values, carry: Mapping[str, str]) -> list[dict[str, _Array]]:
        """Returns the outputs of each record, those that `carry` leads to a state without what was filled up."""
        padding = self.states.padding
        return [
            {
                name: self.caches.without(carry.get(name, ""), value[row : row + 1], padding[row])
                for name, value in outputs.items()
            }
            for row in range(len(self.group))
        ]


def _side_by_side(rows: Sequence[_Array]) -> _Array:
    """Returns one array of the rows, with zeros before those that are shorter along an axis."""
    shapes = [row.shape[1:] for row in rows]
    sizes = tuple(map(max, *shapes))
    if all(shape == sizes for shape in shapes):
        return np.concatenate(rows)
    joined = np.zeros((len(rows), *sizes), rows[0].dtype)
    for place, row, shape in zip(joined, rows, shapes, strict=True):
        place[tuple(slice(size - own, None) for size, own in zip(sizes, shape, strict=True))] = row[0]
    return joined
