# SPDX-License-Identifier: Apache-2.0
"""A symbol of a program whose shapes are not fixed, solved from one axis of one input: what a call needs of it.

`nndeploy.values.solving` finds the symbols when a program is made.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nndeploy.errors import InputError

_FAR = 2**40


class SolvedSymbol(NamedTuple):
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


def solved_from_json(data: Any, ranks: Sequence[int]) -> tuple[SolvedSymbol, ...]:
    """Returns the symbols that plain data describes, for inputs of `ranks`.

    Raises:
        ValueError, TypeError, KeyError: it is malformed, or names an axis that is not there.
    """
    symbols = tuple(SolvedSymbol(*(_whole(one[name]) for name in SolvedSymbol._fields)) for one in data)
    for one in symbols:
        if not (0 <= one.number < len(ranks) and 0 <= one.axis < ranks[one.number]):
            raise ValueError(f"a symbol of axis {one.axis} of input {one.number}")
        if one.factor < 1 or one.low > one.high:
            raise ValueError(f"a symbol between {one.low} and {one.high} by {one.factor}")
    return symbols


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _FAR:
        raise ValueError(f"not a number: {value!r:.40}")
    return value
