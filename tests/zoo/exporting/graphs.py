# SPDX-License-Identifier: Apache-2.0
"""The list of graphs that are exported: each entry says how one ONNX file is made, and in which of two sizes.

Law: what is written follows from the name and the scale alone; every random number comes from a seed made of the name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """The size in which everything is made: as benches want it, or small enough to be kept in the repository."""

    small: bool

    def of(self, full: T, small: T) -> T:
        """Returns the one of the two that belongs to this scale."""
        return small if self.small else full


Make = Callable[[Path, Scale], Inputs]


@dataclass(frozen=True)
class Graph:
    """One ONNX file: `make` writes it to a path and returns inputs that run, by tensor name.

    `after` names the graphs whose files `make` reads beside its own.
    """

    name: str
    kind: str
    exporter: str
    make: Make
    after: tuple[str, ...] = ()


GRAPHS: dict[str, Graph] = {}
"""Every graph by its name, in the order in which the modules of the families list them."""


def graph(name: str, kind: str, exporter: str, *, after: tuple[str, ...] = ()) -> Callable[[Make], Make]:
    """Returns a decorator that enters a function into the list."""

    def enter(make: Make) -> Make:
        assert name not in GRAPHS, f"two graphs are called {name}"
        GRAPHS[name] = Graph(name, kind, exporter, make, after)
        return make

    return enter
