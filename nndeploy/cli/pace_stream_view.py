# SPDX-License-Identifier: Apache-2.0
"""What pacing achieved in a pipeline, as lines and as plain data: one of each runner, one of the items."""

import dataclasses
from typing import Any

from nndeploy.cli.pace_group_view import group_text
from nndeploy.pacing.achieved import Achieved, achieved
from nndeploy.pacing.group import PaceGroup
from nndeploy.stream.engine.pacing import BASELINE_ITEMS, StreamPacing


def pace_lines(pacing: StreamPacing) -> list[str]:
    """Returns what the runners of a pipeline and its items achieved."""
    items = pacing.achieved()
    if items is None:
        return [f"nndeploy: not paced: fewer than {BASELINE_ITEMS + 1} items are too few to profile the stages"]
    lines = [
        f"nndeploy: paced: runner of {name!r}: load {one.load:.0%}, peak in 10 ms {one.p50_peak_load:.0%}, "
        f"most {one.peak_load:.0%}; p50 {one.p50_ms:.3g} ms, p99 {one.p99_ms:.3g} ms; {one.sleeps_a_run:.1f} sleeps "
        f"per run, delay error {one.p50_delay_error_us:.0f} us"
        for name, one in _runners(pacing).items()
        if one is not None
    ]
    of_budget = f" of {items.cap_ms:.3g} ms, {items.over_cap:.1%} over" if items.cap_ms else ""
    baseline = f"; baseline {items.calm_ms:.3g} ms, one every {items.interval_ms:.3g} ms" if items.cap_ms else ""
    lines.append(
        f"nndeploy: paced: items: p50 {items.p50_ms:.3g} ms, p99 {items.p99_ms:.3g} ms{of_budget}{baseline}; "
        f"process load {items.process_load:.0%} of a core"
    )
    group = _group(pacing)
    if group is not None:
        lines.append(group_text(group.shares()))
    if not all(pacer.has_slice for pacers in pacing.pacers.values() for pacer in pacers):
        lines.append("nndeploy: this kernel does not support longer time slices")
    return lines


def stream_pace_to_json(pacing: StreamPacing) -> dict[str, Any]:
    """Returns the same as plain data; without paced items there are no figures."""
    items, group = pacing.achieved(), _group(pacing)
    return {
        **({} if group is None else {"group": dataclasses.asdict(group.shares())}),
        "items": {} if items is None else dataclasses.asdict(items),
        "runners": {name: {} if one is None else dataclasses.asdict(one) for name, one in _runners(pacing).items()},
        "has_longer_slice": all(pacer.has_slice for pacers in pacing.pacers.values() for pacer in pacers),
    }


def _group(pacing: StreamPacing) -> PaceGroup | None:
    """Returns the group that all runners are in, None where there is none."""
    return next((pacer.group for pacers in pacing.pacers.values() for pacer in pacers), None)


def _runners(pacing: StreamPacing) -> dict[str, Achieved | None]:
    return {
        name: achieved(record for pacer in pacers for record in pacer.records) for name, pacers in pacing.pacers.items()
    }
