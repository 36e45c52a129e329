# SPDX-License-Identifier: Apache-2.0
"""A plan as people read it: what is granted, and the longest operators, each with those that read what it makes."""

from collections.abc import Iterable, Sequence

from nndeploy.pacing.plan.pairs import ARROW
from nndeploy.pacing.run.planned import PlannedPoint
from nndeploy.pacing.show.table import Table
from nndeploy.values.amounts import ms_text

SHOWN_READERS = 2


def edge(name: str, followed_by: Sequence[str], most: int | None = None) -> str:
    """Returns an operator and those that read what it makes: runs sleep between them, and between its parts.

    At most so many of the latter, and how many more there are.
    """
    if not followed_by:
        return name
    more = len(followed_by) - (most or len(followed_by))
    listed = ", ".join(followed_by[:most]) + f" and {more} more" * (more > 0)
    return f"{name} {ARROW} {listed}"


def plan_line(points: Sequence[PlannedPoint], budget_ms: float) -> str:
    """Returns how much a run works and sleeps in the time that it may take."""
    work_ms, sleep_ms = _sum_ms(one.amount_us for one in points), _sum_ms(one.delay_us for one in points)
    work_and_sleep = f"{ms_text(work_ms)} of work and {ms_text(sleep_ms)} of sleep"
    return f"{len(points)} points, {work_and_sleep} in {ms_text(budget_ms)}"


def plan_table(points: Sequence[PlannedPoint], num_shown: int | None) -> Table:
    """Returns the longest operators, each with the one behind it; all of them, in order, where no number is said."""
    work_ms = _sum_ms(one.amount_us for one in points)
    longest = sorted(points, key=lambda one: -one.amount_us)[:num_shown] if num_shown else points
    columns = ("us", "share", "parts", "sleep after it, us")
    rows = (
        (
            edge(one.name, one.followed_by, SHOWN_READERS),
            f"{one.amount_us:.0f}",
            f"{one.amount_us / 10 / work_ms:.1f}%",
            str(one.parts),
            f"{one.delay_us:.0f}",
        )
        for one in longest
    )
    return Table(
        f"the {len(longest)} longest operators" if num_shown else "operators", ("edge", *columns), rows, columns
    )


def _sum_ms(values_us: Iterable[float]) -> float:
    return sum(values_us) / 1e3
