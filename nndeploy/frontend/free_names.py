# SPDX-License-Identifier: Apache-2.0
"""Names that nothing has yet: `name`, or `name_1`, `name_2`, ..."""

from collections.abc import Iterable


class FreeNames:
    """Gives out names; none of them twice, and none of those that were taken before."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def __call__(self, wish: str) -> str:
        """Returns `wish` where it is free, else `wish` with the first number that makes it so."""
        name, number = wish, self._next.get(wish, 1)
        while name in self._taken:
            name, number = f"{wish}_{number}", number + 1
        self._next[wish] = number
        self._taken.add(name)
        return name
