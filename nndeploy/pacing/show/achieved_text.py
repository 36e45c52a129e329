# SPDX-License-Identifier: Apache-2.0
"""What pacing achieved, as lines and as plain data: of a bundle alone, or of the runners and items of a pipeline."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from nndeploy.pacing.plan.load_curve import WINDOW_NS
from nndeploy.pacing.run.achieved import Achieved, achieved
from nndeploy.pacing.run.group import GroupShares, PaceGroup
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.pacing.run.pacer import Pacer
from nndeploy.pacing.run.protocol import ProgramPacing
from nndeploy.pacing.stream.paced_stream import BASELINE_ITEMS, PacedStream
from nndeploy.pacing.stream.protocol import StreamPacing
from nndeploy.values.amounts import ms_text


def pace_lines(stream: StreamPacing, programs: Iterable[ProgramPacing]) -> list[str]:
    """Returns what pacing achieved in a stream, or in the program that runs alone; nothing where neither is paced."""
    if isinstance(stream, PacedStream):
        return _stream_lines(stream)
    return [line for one in programs if isinstance(one, PacedProgram) for line in run_lines(one.pacer)]


def pacing_to_json(stream: StreamPacing, programs: Iterable[ProgramPacing]) -> dict[str, Any]:
    """Returns the same as the field `pacing` of plain data, no field where nothing is paced."""
    if isinstance(stream, PacedStream):
        return {"pacing": _stream_to_json(stream)}
    found = [run_to_json(one.pacer) for one in programs if isinstance(one, PacedProgram)]
    return {"pacing": found[0]} if found else {}


def run_lines(pacer: Pacer) -> list[str]:
    """Returns what runs of a program achieved: of the time granted, and of the load."""
    found = achieved(pacer.records)
    if found is None:
        return ["nndeploy: not paced: too few runs to profile the operators at this shape"]
    lines = [f"nndeploy: paced: {pacer.adapted}"] if pacer.adapted else []
    latency = f"nndeploy: paced: runs took {ms_text(found.p50_ms)} (p50), {ms_text(found.p99_ms)} (p99)"
    if pacer.group is None:
        lines.append(f"{latency}, budget {ms_text(found.cap_ms)}; {found.over_cap:.1%} of {found.runs:,} exceeded it")
    else:
        lines += [latency, _group_text(pacer.group.shares())]
    no_slice = "" if pacer.has_slice else "; this kernel does not support longer time slices"
    lines.append(
        f"nndeploy: paced: load of the run's thread {found.load:.0%} on average, {found.p50_peak_load:.0%} in a run's "
        f"busiest {WINDOW_NS / 1e6:g} ms (p50; at most {found.peak_load:.0%}); {found.sleeps_a_run:.1f} sleeps per "
        f"run, which took {found.waiting:.1%} of its processor time, at most {ms_text(found.longest_run_ms)} of work "
        f"without one{_core_wait_text(found)}{no_slice}"
    )
    if (kept := pacer.kept_back()) is not None:
        lines.append(
            f"nndeploy: paced: kept back {ms_text(kept.ms)}, {kept.share:.0%} of the time granted, {kept.reason}"
        )
    return lines


def run_to_json(pacer: Pacer) -> dict[str, Any]:
    """Returns what pacing achieved as plain data."""
    found, baseline_ns = achieved(pacer.records), pacer.known()[0]
    figures: dict[str, Any] = {} if found is None else found.to_json()
    if (kept := pacer.kept_back()) is not None:
        figures["kept_back"] = dataclasses.asdict(kept)
    return {
        "calm_ms": baseline_ns / 1e6,
        "has_longer_slice": pacer.has_slice,
        "notes": [*pacer.notes, *filter(None, [pacer.adapted, pacer.busy_note])],
        **({} if pacer.group is None else {"group": dataclasses.asdict(pacer.group.shares())}),
        **figures,
    }


def _core_wait_text(found: Achieved) -> str:
    """Returns for how much of their time runs waited for a core; "" where nobody counts that."""
    return "" if found.core_wait is None else f"; waited for a core {found.core_wait:.0%} of the time"


def _group_text(found: GroupShares) -> str:
    """Returns what a group did while this process was one of its members."""
    members = f"{found.members} member{'s' * (found.members != 1)}"
    return (
        f"nndeploy: paced: group {found.name!r} used {found.all:.1%} of one core while this run was in it, "
        f"limit {100 * found.limit:.4g}%; this run {found.own:.1%}; {members} at the end"
    )


def _stream_lines(pacing: PacedStream) -> list[str]:
    """Returns what the runners of a pipeline and its items achieved."""
    items = pacing.achieved()
    if items is None:
        return [f"nndeploy: not paced: fewer than {BASELINE_ITEMS + 1} items are too few to profile the stages"]
    lines = [
        f"nndeploy: paced: runner of {name!r}: load {one.load:.0%}, peak in 10 ms {one.p50_peak_load:.0%}, "
        f"most {one.peak_load:.0%}; p50 {one.p50_ms:.3g} ms, p99 {one.p99_ms:.3g} ms; {one.sleeps_a_run:.1f} sleeps "
        f"per run, delay error {one.p50_delay_error_us:.0f} us{_core_wait_text(one)}"
        for name, one in _runners(pacing).items()
        if one is not None
    ]
    of_budget = f" of {items.cap_ms:.3g} ms, {items.over_cap:.1%} over" if items.cap_ms else ""
    baseline = f"; baseline {items.calm_ms:.3g} ms, one every {items.interval_ms:.3g} ms" if items.cap_ms else ""
    lines.append(
        f"nndeploy: paced: items: p50 {items.p50_ms:.3g} ms, p99 {items.p99_ms:.3g} ms{of_budget}{baseline}; "
        f"process load {items.process_load:.0%} of a core"
    )
    if pacing.busy_note:
        lines.append(f"nndeploy: paced: {pacing.busy_note}")
    group = _group(pacing)
    if group is not None:
        lines.append(_group_text(group.shares()))
    if not all(pacer.has_slice for pacers in pacing.pacers.values() for pacer in pacers):
        lines.append("nndeploy: this kernel does not support longer time slices")
    return lines


def _stream_to_json(pacing: PacedStream) -> dict[str, Any]:
    """Returns the same as plain data; without paced items there are no figures."""
    items, group = pacing.achieved(), _group(pacing)
    return {
        **({} if group is None else {"group": dataclasses.asdict(group.shares())}),
        "items": {} if items is None else dataclasses.asdict(items),
        "runners": {name: {} if one is None else one.to_json() for name, one in _runners(pacing).items()},
        "has_longer_slice": all(pacer.has_slice for pacers in pacing.pacers.values() for pacer in pacers),
        **({"notes": [pacing.busy_note]} if pacing.busy_note else {}),
    }


def _group(pacing: PacedStream) -> PaceGroup | None:
    """Returns the group that all runners are in, None where there is none."""
    return next((pacer.group for pacers in pacing.pacers.values() for pacer in pacers), None)


def _runners(pacing: PacedStream) -> dict[str, Achieved | None]:
    return {
        name: achieved(record for pacer in pacers for record in pacer.records) for name, pacers in pacing.pacers.items()
    }
