# SPDX-License-Identifier: Apache-2.0
"""Whether pacing kept to what was granted: the gate of `--strict`.

A latency is kept if the 99th percentile is within it, which is what plans are made for; a share of the processor if the
load is, over all runs. Law: what was granted is judged, or it is said why it cannot be.
"""

from collections.abc import Iterable, Sequence

from nndeploy.pacing.run.achieved import Achieved, achieved
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.pacing.run.pacer import Pacer
from nndeploy.pacing.run.protocol import ProgramPacing
from nndeploy.pacing.stream.paced_stream import AchievedItems, PacedStream
from nndeploy.pacing.stream.protocol import StreamPacing
from nndeploy.values.amounts import ms_text

SPARE_LOAD = 0.02
"""A load may be so much above its limit: the clocks of the wall and of a thread differ, and a sleep takes some work."""
NOT_PACED = "nothing was paced, so there is no budget to judge: too few runs to profile the operators at this shape"


def missed_goal(stream: StreamPacing, programs: Iterable[ProgramPacing]) -> str:
    """Returns in a line how a stream, or the programs that run alone, missed what was granted; "" if they did not."""
    if isinstance(stream, PacedStream):
        return _missed_by_items(stream)
    missed = (missed_by_runs(one.pacer) for one in programs if isinstance(one, PacedProgram))
    return next(filter(None, missed), "")


def missed_by_runs(pacer: Pacer) -> str:
    """Returns the same of the runs of one program."""
    return _missed("paced runs", [pacer])


def _missed_by_items(stream: PacedStream) -> str:
    if stream.budget_ns:
        found = stream.achieved()
        return NOT_PACED if found is None else _late("paced items", found, found.items)
    missed = (_missed(f"paced runs of {name!r}", pacers) for name, pacers in stream.pacers.items() if pacers)
    return next(filter(None, missed), "")


def _missed(what: str, pacers: Sequence[Pacer]) -> str:
    """Judges all runs of pacers that have one goal and one group."""
    found = achieved(record for pacer in pacers for record in pacer.records)
    if found is None:
        return NOT_PACED
    goal, group = pacers[0].goal, pacers[0].group
    if group is not None:
        shares = group.shares()
        return _too_busy(f"group {shares.name!r}", shares.all, shares.limit)
    if goal.cpu_limit:
        return _too_busy(f"the thread of {what}", found.load, goal.cpu_limit)
    return _late(what, found, found.runs)


def _late(what: str, found: Achieved | AchievedItems, count: int) -> str:
    if found.p99_ms <= found.cap_ms:
        return ""
    took = f"{what} took {ms_text(found.p99_ms)} (p99) of the {ms_text(found.cap_ms)} granted"
    return f"{took}; {found.over_cap:.1%} of {count:,} took longer"


def _too_busy(who: str, load: float, limit: float) -> str:
    return f"{who} worked {load:.1%} of the time, {limit:.1%} were granted" if load > limit + SPARE_LOAD else ""
