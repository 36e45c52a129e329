# SPDX-License-Identifier: Apache-2.0
"""The points of a program, behind which its runs may sleep, and what is known of them before there are runs."""

from collections.abc import Sequence

from nndeploy.pacing.plan.node_names import NodeNames
from nndeploy.pacing.plan.pace_plan import PairShares
from nndeploy.pacing.plan.pairs import END, END_NAME, ChosenPair, Pair, PointNames, chosen, num_sharing, presets_of
from nndeploy.pacing.run.branches import Branches
from nndeploy.values.types import Array


class PacedPoints:
    """The operator before each point, whether it is done in parts, and between which runs may sleep."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.is_cut: list[bool] = []
        self.done: list[tuple[str, ...]] = []
        """The operators of the model that were done until each point, by kind and value, as far as is known."""
        self.pairs: list[Pair] = []
        """Between which runs may sleep, in the order of their points."""
        self.nodes: NodeNames = {}
        """What the model calls its nodes, where pairs are chosen by names."""
        self.branches: Branches | None = None
        """The submodels, where those that do not wait for each other run at once."""
        self.has_own = False
        """Whether some submodel passes points of its own; a short one may have a single one that is worth it."""

    def __len__(self) -> int:
        return len(self.names)

    def add(self, points: Sequence[tuple[str, bool]]) -> int:
        """Adds the points of a submodel: the operator before each, and whether it is done in parts.

        Returns the number of the first.
        """
        self.names += [name for name, _ in points]
        self.done += [()] * len(points)
        self.is_cut += [is_cut for _, is_cut in points]
        return len(self) - len(points)

    def choose(self, pairs: Sequence[Pair], wanted: Sequence[ChosenPair]) -> None:
        """Lets runs sleep between those pairs of a program that are wanted, all of them where none is.

        Raises:
            UsageError: an operator or a pair is wanted that is not there.
        """
        self.pairs = chosen(pairs, PointNames(self.names, self.done, self.nodes), wanted)

    @property
    def presets_ns(self) -> float:
        """The nanoseconds that a run sleeps where delays were set."""
        return float(sum(pair.preset_ns for pair in self.pairs))

    @property
    def can_sleep(self) -> bool:
        """Whether a run can sleep inside: between two submodels, or in one whose backend has points of its own."""
        return len(self) > 1 or self.has_own

    def length_ns(self, times: Array) -> float:
        """Returns how long a run is whose points take so long, without delays."""
        return float(times.sum()) if self.branches is None else self.branches.baseline_ns(times)

    def shares(self, passed: Array, *, is_chosen: bool) -> PairShares | None:
        """Returns what the pairs make of the points that are passed in this order, None where nobody says any."""
        if not self.pairs:
            return None
        return PairShares(self.num_sharing[passed], presets_of(self.pairs, len(self))[passed], is_chosen)

    @property
    def num_sharing(self) -> Array:
        """How many pairs of each point take their delay from what is granted."""
        return num_sharing(self.pairs, len(self))

    @property
    def followed_by(self) -> list[tuple[str, ...]]:
        """The operators that read what is made before each point, where runs may sleep in between."""
        found: list[list[str]] = [[] for _ in self.names]
        for pair in self.pairs:
            found[pair.source].append(END_NAME if pair.target == END else self.names[pair.target])
        return [tuple(names) for names in found]
