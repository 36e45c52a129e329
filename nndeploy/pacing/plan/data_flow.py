# SPDX-License-Identifier: Apache-2.0
"""The data-flow graph of a program's pace points: which operator reads what which other one made.

Comes in, submodel by submodel: the names of values that stand at its points, and what the bundle says of its operators.
Goes out: the pairs of points, over all submodels. An operator that a backend fused belongs to the point behind which
its value stands, so a step of own kernels that does several is one end of a pair. Where a bundle does not say what
reads what, the points of a submodel are a row.
"""

from collections.abc import Sequence

from nndeploy.pacing.plan.operators import Operators
from nndeploy.pacing.plan.pairs import END, Pair


class DataFlow:
    """The graph of the points that were added until now, which are numbered through all submodels."""

    def __init__(self) -> None:
        """Begins without any point."""
        self._edges = set[tuple[int, int]]()
        self._makers = dict[str, int]()  # of each value between submodels: the point behind which it stands
        self._num_points = 0
        self.done = list[tuple[str, ...]]()
        """The operators that were done until each point since the one before, by kind and value, as far as is known."""

    def add(
        self,
        points: Sequence[Sequence[str]],
        operators: Operators | None,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        """Adds a submodel: of each of its points the values that were made since the one before, by name.

        `operators` is None where nobody says what they are; `inputs` and `outputs` are the submodel's.
        """
        first, last = self._num_points, self._num_points + len(points) - 1
        self._num_points += len(points)
        readers = {name: {first} for name in inputs}
        makers = dict.fromkeys(outputs, last)
        is_known = [False] * len(points)
        done: list[tuple[str, ...]] = [()] * len(points)
        if operators is not None:
            flow = operators.flow(points if len(points) > 1 else [list(outputs)])
            done = flow.done
            self._edges |= {(first + a, first + b) for a, b in flow.edges}
            readers |= {
                name: {first + point for point in flow.readers[name]} for name in inputs if name in flow.readers
            }
            makers |= {name: first + flow.makers[name] for name in outputs if name in flow.makers}
            is_known = flow.is_known
        self.done += done
        for point in range(1, len(points)):
            if not (is_known[point - 1] and is_known[point]):
                self._edges.add((first + point - 1, first + point))
        for name, points_that_read in readers.items():
            if name in self._makers:
                self._edges |= {(self._makers[name], reader) for reader in points_that_read}
        self._makers |= makers

    def pairs(self) -> list[Pair]:
        """Returns all pairs, in the order of their numbers; every point is the first of one, at least to the end."""
        ends = set(range(self._num_points)) - {a for a, _ in self._edges}
        return sorted([*(Pair(a, b) for a, b in self._edges), *(Pair(point, END) for point in ends)])
