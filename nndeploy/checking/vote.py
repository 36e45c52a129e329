# SPDX-License-Identifier: Apache-2.0
"""Which engines are right about a model: a vote, since each of them has been wrong.

    outputs of each engine -> camps that agree -> the largest camp; the shapes that ONNX infers are one vote more
                                              -> equally large: the camp of ONNX's evaluator, which follows the text

An engine votes only where its own rules take every node of the model: what it is known to get wrong is written there
(`rules.py` of each backend), with a test for each rule. Law: where all agree, all are right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.values.types import Value

Outputs = Mapping[str, Value]
Ballots = Mapping[str, Sequence[Outputs]]
"""Engine -> its outputs on each sample, the engine to prefer first."""

Differs = Callable[[Sequence[Outputs], Sequence[Outputs]], str]
"""Says where the outputs of an engine differ from those of another, "" where they agree."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engines that are right, the preferred one first, and where each of the others differs from it.

    `outputs` are those of the first.
    """

    right: tuple[str, ...]
    wrong: Mapping[str, str]
    outputs: tuple[Outputs, ...]

    @property
    def warnings(self) -> list[str]:
        """A line for each engine that is wrong."""
        names = " and ".join(self.right)
        return [f"{engine} is not a reference here: against {names}, {where}" for engine, where in self.wrong.items()]


def verdict_of(
    ballots: Ballots,
    differs: Sequence[Differs],
    has_inferred_shapes: Callable[[Outputs], bool],
    specification: str,
) -> Verdict:
    """Returns who is right among at least one engine; `specification` is the engine that decides between equals.

    Of `differs` the first by which some engines agree counts: the strictest comes first.
    """
    names = list(ballots)
    for differ in differs:
        where = {(a, b): differ(ballots[b], ballots[a]) for a in names for b in names if a != b}
        if not all(where.values()):
            break

    def votes(camp: Sequence[str]) -> tuple[int, bool]:
        return len(camp) + all(map(has_inferred_shapes, ballots[camp[0]])), specification in camp

    camps = [[a, *(b for b in names if b != a and not where[a, b])] for a in names]
    right = max(camps, key=votes)  # of equals the first, which was preferred
    wrong = {name: where[right[0], name] for name in names if name not in right}
    return Verdict(tuple(right), wrong, tuple(ballots[right[0]]))
