# SPDX-License-Identifier: Apache-2.0
"""Calls with sizes that a chain was not built for: they run on the portable chain, which the first of them opens.

    image[8,1,8,8] -> the chain t4, built for N 1..8        image[9,1,8,8] -> the portable chain, on the CPU

Law: a call runs on one chain; nobody waits for the portable one, or holds its memory, before there is such a call.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import InputError, UnavailableError
from nndeploy.values.types import DimRange, Value

Run = Callable[[dict[str, Value]], dict[str, Value]]


class Sessions(Protocol):
    """What runs checked values on another chain of the same bundle."""

    def run_checked(self, values: dict[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""

    def close_sessions(self) -> None:
        """Frees what it opened."""


class OutsideSizes:
    """Hands the calls that a chain was not built for to another; `note` says which was the first, "" before it."""

    def __init__(
        self,
        inputs: Sequence[NamedType],
        chain: str,
        ranges: Mapping[str, DimRange],
        other: Callable[[], Sessions],
    ) -> None:
        """Takes the `ranges` that the `chain` was built for, and what opens the other or raises UnavailableError."""
        self._limits = tuple(
            (item.name, axis, symbol, ranges[symbol])
            for item in inputs
            for axis, symbol in item.open_axes
            if symbol in ranges
        )
        self._chain, self._open_other = chain, other
        self._other: Sessions | None = None
        self._lock = threading.Lock()
        self.note = ""

    def around(self, run: Run) -> Run:
        """Returns the call that runs on the chain, by `run`, what that was built for.

        It raises InputError where no other chain runs the rest.
        """

        def call(values: dict[str, Value]) -> dict[str, Value]:
            for name, axis, symbol, limits in self._limits:
                value: Any = values[name]
                if value is not None and not limits.holds(value.shape[axis]):
                    return self._elsewhere(values, name, axis, symbol, limits)
            return run(values)

        return call

    def _elsewhere(
        self, values: dict[str, Value], name: str, axis: int, symbol: str, limits: DimRange
    ) -> dict[str, Value]:
        size: int = values[name].shape[axis]
        what = f"input {name!r}: axis {axis} ({symbol}) is {size}, outside {limits} of the chain {self._chain}"
        try:
            with self._lock:
                self._other = self._other or self._open_other()
        except UnavailableError as err:
            raise InputError(f"{what}; {err}", hint=f"compile with --shape for another range of {symbol}") from err
        self.note = self.note or f"{what}: such calls run on the portable chain"
        return self._other.run_checked(values)

    def close(self) -> None:
        """Frees what was opened; no call may come later."""
        if self._other is not None:
            self._other.close_sessions()
